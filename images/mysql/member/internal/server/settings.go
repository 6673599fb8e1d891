// SPDX-License-Identifier: Apache-2.0

// Package server makes the data and the configuration of a member's server, and starts it.
package server

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
)

// plugins of every member: the group, copies of data, and logins by the user of the container.
var plugins = []string{"group_replication.so", "mysql_clone.so", "auth_socket.so"}

// Settings of a member's server: what is the same for all members, and behind it what is the member's own.
func Settings(n layout.Names, c mysqlmember.Config, base string) (string, error) {
	id, err := n.ServerID(c.Generation)
	if err != nil {
		return "", err
	}
	host := layout.Host(n.Name, c.Domain)
	own := [][2]string{
		{"server_id", strconv.FormatUint(uint64(id), 10)},
		{"datadir", mysqlmember.FolderData},
		{"socket", mysqlmember.FileSocket},
		{"pid_file", mysqlmember.FolderPrivate + "/mysqld.pid"},
		{"tmpdir", layout.Temporary},
		// No client is let in before the member is part of a group with a majority.
		{"offline_mode", "ON"},

		{"bind_address", n.Listen},
		{"admin_address", n.IP},
		{"report_host", host},
		// Members copy data and catch up by the port of members, too.
		{"report_port", strconv.Itoa(mysqlmember.PortMembers)},
		// It is whose certificates of clients count: the one of members opens an account, and an issuer of the platform may sign any name.
		{"ssl_ca", mysqlmember.FileMemberCA},
		{"ssl_cert", mysqlmember.FileServerCert},
		{"ssl_key", mysqlmember.FileServerKey},
	}
	for _, prefix := range []string{"admin_ssl_", "clone_ssl_", "group_replication_recovery_ssl_"} {
		own = append(own, [2]string{prefix + "ca", mysqlmember.FileMemberCA}, [2]string{prefix + "cert", mysqlmember.FileMemberCert},
			[2]string{prefix + "key", mysqlmember.FileMemberKey})
	}
	for _, p := range plugins {
		own = append(own, [2]string{"plugin_load_add", p})
	}
	own = append(own, [2]string{"group_replication_group_name", n.GroupName(c.Generation)},
		// No name: the thread of the group that does everything looks names up as well, up to ten times. With a server of the DNS gone it would
		// do nothing else for so long that the others take this member for lost.
		[2]string{"group_replication_local_address", layout.Inner(n.IP)},
		// No certificate has an address. All members share one certificate, and no other one of their authority is for a server.
		[2]string{"group_replication_ssl_mode", "VERIFY_CA"},
		// Not 0, which means max_binlog_size. With 0 the server takes the lock of the replication channels to set max_binlog_size, while it holds
		// the lock of the global variables. START GROUP_REPLICATION takes both the other way round, so that the server would hang for ever.
		// This is the least that max_binlog_size has: a relay log is removed when the next one begins.
		[2]string{"max_relay_log_size", "67108864"})
	if c.Backup != nil && c.Backup.Enabled {
		// Binary logs stay until the archive has them. The program removes them, also at a start.
		own = append(own, [2]string{"binlog_expire_logs_auto_purge", "OFF"})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n[mysqld]\n", strings.TrimSuffix(base, "\n"))
	for _, o := range own {
		fmt.Fprintf(&b, "%s=%s\n", o[0], o[1])
	}
	return b.String(), nil
}

// Parameters of a configuration, by name. Those that may come several times are in it once.
func Parameters(file string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		name, value, found := strings.Cut(line, "=")
		if !found || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "[") {
			continue
		}
		out[strings.ReplaceAll(strings.TrimSpace(name), "-", "_")] = strings.TrimSpace(value)
	}
	return out
}
