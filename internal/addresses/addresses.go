// SPDX-License-Identifier: Apache-2.0

// Package addresses says what kind of address an IP address is. The provider and the companion connect to servers that users
// name, and keep those connections away from what only a node or a cloud may reach.
package addresses

import (
	"net/netip"
	"slices"
)

// metadata services of clouds that are not at link-local addresses.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::254/128"),  // Amazon
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.0/24"),       // Oracle, and other protocol assignments
}

// embedded are IPv6 prefixes after which an IPv4 address follows (RFC 6052, RFC 4291).
var embedded = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::/96")}

// carriers share these addresses among their customers, and some clouds among pods and Services (RFC 6598).
var carriers = netip.MustParsePrefix("100.64.0.0/10")

// benchmarks have these addresses, which are not routed on the Internet (RFC 2544), and so have some clusters.
var benchmarks = netip.MustParsePrefix("198.18.0.0/15")

// Plain address: without a zone, and the IPv4 address that an IPv6 address stands for. Reserved and IsPrivate want plain ones.
func Plain(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	for _, p := range embedded {
		if p.Contains(a) && a != netip.IPv6Loopback() && a != netip.IPv6Unspecified() {
			b := a.As16()
			return netip.AddrFrom4([4]byte(b[12:]))
		}
	}
	return a
}

// Reserved is the kind of an address at which no server of a user can be, in words that follow "leads to", or "". Loopback and
// private addresses are not among them.
func Reserved(a netip.Addr) string {
	switch {
	case slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(a) }):
		return "the metadata service of a cloud"
	case a.IsLinkLocalUnicast(), a.IsLinkLocalMulticast(), a.IsInterfaceLocalMulticast():
		return "a link-local address"
	case a.IsMulticast():
		return "a multicast address"
	case !a.IsValid(), a.IsUnspecified(), a.Is4() && a.As4()[0] == 0, a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "no address of a host"
	default:
		return ""
	}
}

// IsPrivate reports whether an address belongs to a network of its own: loopback, RFC 1918, RFC 2544, RFC 4193 or RFC 6598.
func IsPrivate(a netip.Addr) bool {
	return a.IsLoopback() || a.IsPrivate() || carriers.Contains(a) || benchmarks.Contains(a)
}
