// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"net"
	"testing"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// TestIPv6: where pods have addresses of IPv6 only, members lead, report, serve clients and take backups.
func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatalf("this test needs the loopback address of IPv6: %v", err)
	}
	_ = l.Close()
	s := newStore(t)
	c := newClusterWith(t, []string{"a"}, func(c *cluster) { archives(c); c.ipv6 = true })
	s.connection(c, "bucket")
	c.want(pgmember.Config{Backup: new(c.settings("a"))})
	begin(t, c, "a")
	if got := c.query("a", "select host(inet_server_addr())"); got != "::1" {
		t.Errorf("clients come to %s", got)
	}
	if err := c.probe("a", "/readyz"); err != nil {
		t.Errorf("it is not ready: %v", err)
	}
	if first, said := c.backup(); first.Type != pgbackrest.Full {
		t.Errorf("no backup: %s", said)
	}
}
