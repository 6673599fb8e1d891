// SPDX-License-Identifier: Apache-2.0

package addresses

import (
	"net/netip"
	"testing"
)

func TestKinds(t *testing.T) {
	cases := map[string]struct {
		reason   string
		address  string
		reserved string
		private  bool
	}{
		"Public":      {"Servers are there.", "192.0.2.1", "", false},
		"PublicIPv6":  {"Servers are there, too.", "2001:db8::1", "", false},
		"Loopback":    {"It is the program's own machine.", "127.0.0.1", "", true},
		"Private":     {"Pods and Services have such addresses.", "10.0.0.1", "", true},
		"Local":       {"So do they with IPv6.", "fd00::1", "", true},
		"Carrier":     {"Some clouds give them to pods.", "100.64.0.1", "", true},
		"Benchmark":   {"Nobody routes them, so some clusters use them.", "198.19.0.1", "", true},
		"LinkLocal":   {"Most clouds have their metadata service there.", "169.254.169.254", "a link-local address", false},
		"Zone":        {"A zone changes nothing.", "fe80::1%eth0", "a link-local address", false},
		"Amazon":      {"Its IPv6 address is a private one.", "fd00:ec2::254", "the metadata service of a cloud", true},
		"Azure":       {"The wire server is at a public address.", "168.63.129.16", "the metadata service of a cloud", false},
		"Alibaba":     {"Its service is at an address of carriers.", "100.100.100.200", "the metadata service of a cloud", true},
		"Mapped":      {"An IPv4 address within an IPv6 address is itself.", "::ffff:169.254.169.254", "a link-local address", false},
		"Translated":  {"NAT64 leads to the IPv4 address.", "64:ff9b::a9fe:a9fe", "a link-local address", false},
		"Compatible":  {"The old form does, too.", "::a9fe:a9fe", "a link-local address", false},
		"Multicast":   {"Many hosts have it.", "224.0.0.251", "a link-local address", false},
		"Multicasts":  {"Many hosts have it.", "239.1.1.1", "a multicast address", false},
		"Broadcast":   {"All hosts have it.", "255.255.255.255", "no address of a host", false},
		"Unspecified": {"It is the machine itself for some systems.", "0.0.0.0", "no address of a host", false},
		"This":        {"So are its neighbours.", "0.1.2.3", "no address of a host", false},
		"Nothing":     {"It is unspecified, and not an IPv4 address.", "::", "no address of a host", false},
		"LoopbackIPv": {"It is the loopback address, and not an IPv4 address.", "::1", "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := Plain(netip.MustParseAddr(tc.address))
			if got := Reserved(a); got != tc.reserved {
				t.Errorf("%s\nReserved(%s): got %q, want %q", tc.reason, a, got, tc.reserved)
			}
			if got := IsPrivate(a); got != tc.private {
				t.Errorf("%s\nIsPrivate(%s): got %t, want %t", tc.reason, a, got, tc.private)
			}
		})
	}
}
