// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mysql

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/test/grafana"
	"github.com/capstan-dev/capstan/test/outside"
)

// TestSeries: the exporter of the image, with the arguments and the rights that it has in a member, has every series that the alerts and the
// dashboard ask for.
func TestSeries(t *testing.T) {
	s := grouped(t)
	s.SQL("CREATE USER '" + mysqlmember.AccountExporter + "'@'localhost'")
	s.SQL(mysqlmember.ExporterRights()...)
	has := names(t, s)
	asks := func(what string, selector *parser.VectorSelector) {
		if strings.HasPrefix(selector.Name, "mysql_") && !slices.Contains(has, selector.Name) {
			t.Errorf("%s: the exporter has no series %s", what, selector.Name)
		}
	}
	n := 0
	alerts := New().Alerts(engine.Watched{Series: `namespace="shop",database="orders-db"`, Replicas: 3, LagSeconds: 60})
	for _, a := range slices.Concat(alerts.Leader, alerts.Server, alerts.Standbys) {
		e, err := parser.NewParser(parser.Options{}).ParseExpr(a.Expr)
		if err != nil {
			t.Errorf("%s: %v", a.Name, err)
			continue
		}
		parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
			if selector, ok := node.(*parser.VectorSelector); ok {
				n++
				asks(a.Name, selector)
			}
			return nil
		})
	}
	grafana.Read(t, "../../../../package/monitoring/dashboard-database-mysql.json").Queries(t, strings.NewReplacer("$namespace", "shop", "$database", "orders-db"),
		func(p grafana.Panel, selector *parser.VectorSelector) { n++; asks(p.Title, selector) })
	if n < 20 {
		t.Errorf("want the series of all alerts and panels, got %d", n)
	}
}

// grouped server: one that is a group by itself.
func grouped(t *testing.T) *outside.MySQLServer {
	t.Helper()
	s := outside.MySQL(t, "localhost")
	s.SQL("INSTALL PLUGIN group_replication SONAME 'group_replication.so'", "SET GLOBAL enforce_gtid_consistency = ON",
		"SET GLOBAL group_replication_group_name = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa'", "SET GLOBAL group_replication_local_address = '"+free(t)+"'",
		"SET GLOBAL group_replication_bootstrap_group = ON", "START GROUP_REPLICATION")
	return s
}

// names of all series that the exporter has for a server.
func names(t *testing.T, s *outside.MySQLServer) []string {
	t.Helper()
	e, address := New().Traits().Exporter, free(t)
	args := []string{"--web.listen-address=" + address}
	for _, a := range e.Args {
		args = append(args, strings.Replace(a, mysqlmember.FileSocket, s.Socket(), 1))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(os.Getenv("CAPSTAN_PROGRAM_MYSQL"), e.Command[0]), args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); _ = cmd.Wait() }()
	text, err := "", error(nil)
	for until := time.Now().Add(time.Minute); time.Now().Before(until) && !strings.Contains(text, "\nmysql_up 1\n"); time.Sleep(200 * time.Millisecond) {
		text, err = scrape(ctx, "http://"+address+"/metrics")
	}
	if !strings.Contains(text, "\nmysql_up 1\n") {
		t.Fatalf("the exporter does not reach the server: %v: %s", err, log.String())
	}
	var out []string
	for line := range strings.Lines(text) {
		if name, _, found := strings.Cut(strings.TrimSpace(line), " "); found && !strings.HasPrefix(line, "#") {
			name, _, _ = strings.Cut(name, "{")
			out = append(out, name)
		}
	}
	return out
}

func scrape(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d: %s", resp.StatusCode, body)
	}
	return string(body), err
}

// free address on this machine.
func free(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
