// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// An AddressError means that a namespace's own config leads to an address that it must not reach.
type AddressError struct {
	// Kind of address, for people.
	Kind string
}

// Error does not contain the address: a tenant could learn from it what the names of others resolve to.
func (e *AddressError) Error() string {
	return fmt.Sprintf("the URL leads to %s, which a ProviderConfig must not reach", e.Kind)
}

// A Guard keeps the connections of tenants away from what only the provider can reach: itself, its node, the metadata service of
// a cloud, the API server. It looks at the address that is dialled and not at the URL, so names that resolve to such an address,
// at first or later, do not help.
type Guard struct {
	// Allowed addresses are never refused.
	Allowed []netip.Prefix

	// APIServer returns the addresses of the API server.
	APIServer func(context.Context) ([]netip.Addr, error)

	mu        sync.Mutex
	addresses []netip.Addr
	fresh     time.Time
}

// remember is how long the addresses of the API server are.
const remember = time.Minute

// metadata services of clouds that are not at link-local addresses.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::254/128"),  // Amazon
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.0/24"),       // Oracle, and other protocol assignments
}

// embedded are IPv6 prefixes after which an IPv4 address follows (RFC 6052, RFC 3056 has it elsewhere).
var embedded = []netip.Prefix{
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("::/96"),
}

// Control is for net.Dialer: it runs before each connection is made.
func (g *Guard) Control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &net.AddrError{Err: "not an address", Addr: address}
	}
	a := plain(to.Addr())
	if slices.ContainsFunc(g.Allowed, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return nil
	}
	if kind := private(a); kind != "" {
		return &AddressError{Kind: kind}
	}
	api, err := g.apiServer(ctx)
	if err != nil {
		return InCluster("cannot distinguish the API server's addresses from others: %w", err)
	}
	if slices.Contains(api, a) {
		return &AddressError{Kind: "the API server"}
	}
	return nil
}

// private says what kind of address a is, or "" when every tenant may reach it.
func private(a netip.Addr) string {
	switch {
	case a.IsLoopback():
		return "a loopback address"
	case a.IsLinkLocalUnicast(), a.IsLinkLocalMulticast(), a.IsInterfaceLocalMulticast():
		return "a link-local address"
	case a.IsMulticast():
		return "a multicast address"
	case !a.IsValid(), a.IsUnspecified(), a.Is4() && a.As4()[0] == 0, a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "no address of a host"
	case slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(a) }):
		return "a metadata service"
	default:
		return ""
	}
}

// plain address: without zone, and the IPv4 address that an IPv6 address stands for.
func plain(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	for _, p := range embedded {
		if p.Contains(a) && a != netip.IPv6Loopback() && a != netip.IPv6Unspecified() {
			b := a.As16()
			return netip.AddrFrom4([4]byte(b[12:]))
		}
	}
	return a
}

func (g *Guard) apiServer(ctx context.Context) ([]netip.Addr, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.fresh) < remember {
		return g.addresses, nil
	}
	all, err := g.APIServer(ctx)
	if err != nil {
		return nil, err
	}
	g.addresses, g.fresh = make([]netip.Addr, 0, len(all)), time.Now()
	for _, a := range all {
		g.addresses = append(g.addresses, plain(a))
	}
	return g.addresses, nil
}
