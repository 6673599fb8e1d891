// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
)

func TestSettings(t *testing.T) {
	n := layout.Names{Name: "orders-db-c", IP: "10.0.0.7", Identity: "3f2a9c1b", Listen: "*"}
	first, err := Settings(n, mysqlmember.Config{Generation: 1, Domain: "orders-db-pods.shop.svc"}, "[mysqld]\nport=3306\n")
	if err != nil {
		t.Fatal(err)
	}
	second, err := Settings(n, mysqlmember.Config{Generation: 2, Domain: "orders-db-g2-pods.shop.svc"}, "[mysqld]\nport=3306\n")
	if err != nil {
		t.Fatal(err)
	}
	id, err := n.ServerID(1)
	if err != nil {
		t.Fatal(err)
	}
	a, b := Parameters(first), Parameters(second)
	want := map[string]string{
		"port": "3306", "server_id": strconv.FormatUint(uint64(id), 10), "report_host": "orders-db-c-0.orders-db-pods.shop.svc", "admin_address": "10.0.0.7",
		"group_replication_local_address": "10.0.0.7:33062", "datadir": "/data/mysql", "offline_mode": "ON",
		"admin_ssl_key": "/run/capstan/tls/members.key", "ssl_key": "/run/capstan/tls/server.key",
		"max_relay_log_size": "67108864",
	}
	got := map[string]string{}
	for name := range want {
		got[name] = a[name]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if b["server_id"] == a["server_id"] || b["group_replication_group_name"] == a["group_replication_group_name"] {
		t.Errorf("generations share the id %s or the group %s: a server skips events of its own id, and two histories would share transactions",
			b["server_id"], b["group_replication_group_name"])
	}
	for enabled, want := range map[bool]string{true: "OFF", false: ""} {
		c := mysqlmember.Config{Generation: 1, Backup: &mysqlmember.Backup{Enabled: enabled}}
		file, err := Settings(n, c, "[mysqld]\nport=3306\n")
		if got := Parameters(file)["binlog_expire_logs_auto_purge"]; err != nil || got != want {
			t.Errorf("with backups %t a server purges its binary logs at its start: %q (%v), want %q", enabled, got, err, want)
		}
	}
	for _, name := range []string{"orders-db", "orders-db-q", "orders-db-A"} {
		if _, err := Settings(layout.Names{Name: name}, mysqlmember.Config{Generation: 1}, ""); err == nil {
			t.Errorf("a server has an id for the name %q", name)
		}
	}
}

func TestLines(t *testing.T) {
	var got []string
	l := &lines{to: discard{}, note: func(line []byte) { got = append(got, string(line)) }}
	for _, part := range []string{"one\ntw", "o\n", "\nthr", "ee"} {
		if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if diff := cmp.Diff([]string{"one", "two", ""}, got); diff != "" {
		t.Errorf("lines come in parts: -want +got:\n%s", diff)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
