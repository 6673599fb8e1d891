// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/internal/addresses"
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
// a cloud, the API server, and what is in private networks, as the pods and Services of other namespaces are. It looks at the address
// that is dialled and not at the URL, so names that resolve to such an address, at first or later, do not help.
type Guard struct {
	// Allowed addresses are never refused.
	Allowed []netip.Prefix

	// Hosts may have private addresses: names, or *. and the end of names. {namespace} in them is the tenant's namespace.
	Hosts []string

	// Services returns the addresses of a Service itself. A tenant reaches Services of its own namespace. A Service of
	// type ExternalName has no address of its own.
	Services func(ctx context.Context, namespace, name string) ([]netip.Addr, error)

	// APIServer returns the addresses of the API server.
	APIServer func(context.Context) ([]netip.Addr, error)

	mu        sync.Mutex
	addresses []netip.Addr
	fresh     time.Time
}

// remember is how long the addresses of the API server are.
const remember = time.Minute

// A target of a connection: a host that a tenant named.
type target struct{ namespace, host string }

// A Dial function connects with an address.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer of connections on behalf of a tenant. The host is what the tenant named, or empty when it is in the address that is dialled.
func (g *Guard) Dialer(d net.Dialer, namespace, host string) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to := target{namespace: namespace, host: host}
		if h, _, err := net.SplitHostPort(address); err == nil && host == "" {
			to.host = h
		}
		guarded := d // a copy: connections are made at the same time
		guarded.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			return g.check(ctx, to, address)
		}
		return guarded.DialContext(ctx, network, address)
	}
}

// PodDialer of connections with pods, whose addresses come from the API server. Pods have private addresses, so these are allowed, and
// all else that Dialer refuses is refused.
func (g *Guard) PodDialer(d net.Dialer) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		guarded := d // a copy: connections are made at the same time
		guarded.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			_, _, err := g.reachable(ctx, address)
			return err
		}
		return guarded.DialContext(ctx, network, address)
	}
}

// check an address before a connection is made.
func (g *Guard) check(ctx context.Context, from target, address string) error {
	a, allowed, err := g.reachable(ctx, address)
	if err != nil || allowed || !addresses.IsPrivate(a) {
		return err
	}
	return g.private(ctx, from, a)
}

// reachable refuses the addresses at which no tenant has a server. Otherwise it returns the address, and whether the platform allows it.
func (g *Guard) reachable(ctx context.Context, address string) (a netip.Addr, allowed bool, err error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return a, false, &net.AddrError{Err: "not an address", Addr: address}
	}
	a = addresses.Plain(to.Addr())
	if slices.ContainsFunc(g.Allowed, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return a, true, nil
	}
	if kind := refused(a); kind != "" {
		return a, false, &AddressError{Kind: kind}
	}
	api, err := g.apiServer(ctx)
	if err != nil {
		return a, false, InCluster("cannot distinguish the API server's addresses from others: %w", err)
	}
	if slices.Contains(api, a) {
		return a, false, &AddressError{Kind: "the API server"}
	}
	return a, false, nil
}

// private addresses are refused, except hosts that the platform allows and Services of the tenant's namespace.
func (g *Guard) private(ctx context.Context, from target, a netip.Addr) error {
	if slices.ContainsFunc(g.Hosts, from.matches) {
		return nil
	}
	if service := from.service(); service != "" && g.Services != nil {
		own, err := g.Services(ctx, from.namespace, service)
		if err != nil {
			return InCluster("cannot get the address of a Service: %w", err)
		}
		if slices.ContainsFunc(own, func(o netip.Addr) bool { return addresses.Plain(o) == a }) {
			return nil
		}
	}
	return &AddressError{Kind: "a private address"}
}

// matches reports whether a pattern of the platform is about the host.
func (t target) matches(pattern string) bool {
	host := strings.ToLower(strings.TrimSuffix(t.host, "."))
	pattern = strings.ReplaceAll(pattern, "{namespace}", t.namespace)
	if end, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(host, end)
	}
	return host == pattern
}

// service of the tenant's namespace that the host names, as <Service>.<namespace>.svc with or without the domain of the cluster.
func (t target) service() string {
	parts := strings.Split(strings.ToLower(strings.TrimSuffix(t.host, ".")), ".")
	if len(parts) < 3 || parts[1] != t.namespace || parts[2] != "svc" {
		return ""
	}
	return parts[0]
}

// refused kind of address, or "" when every tenant may reach it.
func refused(a netip.Addr) string {
	if a.IsLoopback() {
		return "a loopback address"
	}
	return addresses.Reserved(a)
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
		g.addresses = append(g.addresses, addresses.Plain(a))
	}
	return g.addresses, nil
}
