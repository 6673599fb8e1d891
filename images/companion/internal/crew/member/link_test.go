// SPDX-License-Identifier: Apache-2.0

package member

import (
	"net"
	"testing"
)

// remote is a connection with an address.
type remote struct {
	net.Conn

	at net.Addr
}

func (r remote) RemoteAddr() net.Addr { return r.at }

func TestMaster(t *testing.T) {
	at := func(address string) *net.TCPAddr { return &net.TCPAddr{IP: net.ParseIP(address), Port: 7700} }
	for name, tc := range map[string]struct {
		reason string
		at     net.Addr
		index  int
		want   string
	}{
		"Coordinator": {"The DNS need not answer once more.", at("10.1.2.3"), 0, "10.1.2.3"},
		"Mapped":      {"A socket of both families has it as one of IPv6.", at("::ffff:10.1.2.3"), 0, "10.1.2.3"},
		"IPv6":        {"Programs join it with the port, without brackets.", at("fd00::1"), 0, "pod"},
		"Other pod":   {"It is not what the link is with.", at("10.1.2.3"), 1, "pod"},
		"No TCP":      {"Such a link has no address.", &net.UnixAddr{Name: "socket"}, 0, "pod"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &link{conn: remote{at: tc.at}}
			if got := l.master(tc.index, func(int) string { return "pod" }); got != tc.want {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
