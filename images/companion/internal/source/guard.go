// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/internal/addresses"
)

// A guard keeps servers from leading a pod to addresses that only the pod can reach. The server that the spec names may be inside of
// the cluster or of the pod's network. A redirect from a public server must not lead there, and nothing may lead to a link-local
// address, where clouds hand out the identity of a node. It looks at the address that is dialled, so that names do not help.
type guard struct {
	// inside reports that the server that the spec names has a private address.
	inside atomic.Bool
}

// redirected is the key of a context that belongs to a request that a server has redirected.
type redirected struct{}

// trail of a request and its redirects.
type trail struct{ left atomic.Bool }

// check an address before it is dialled, or named by a redirect.
func (g *guard) check(a netip.Addr, left bool) error {
	a = addresses.Plain(a)
	kind := addresses.Reserved(a)
	if kind == "" && addresses.IsPrivate(a) {
		if !left {
			g.inside.Store(true)
		} else if !g.inside.Load() {
			kind = "a private address"
		}
	}
	if kind == "" {
		return nil
	}
	cause := "the server's name stands for " + kind
	if left {
		cause = "the server redirects to " + kind
	}
	return failure.New(failure.Invalid, cause+", from which no model is downloaded", "name a server that hands out the model itself, or redirects to a public one")
}

// control is for net.Dialer: it runs before each connection is made.
func (g *guard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &net.AddrError{Err: "not an address", Addr: address}
	}
	t, _ := ctx.Value(redirected{}).(*trail)
	return g.check(to.Addr(), t != nil && t.left.Load())
}

// maxRedirects of a request.
const maxRedirects = 10

// redirect checks where a server leads to. What opens the first server is for no other one.
func (g *guard) redirect(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) >= maxRedirects {
		return failure.New(failure.Invalid, fmt.Sprintf("%s redirects more than %d times", strconv.Quote(first.Host), maxRedirects), "look at the server")
	}
	if r.URL.Scheme != first.Scheme && r.URL.Scheme != schemeHTTPS {
		return failure.New(failure.Invalid, fmt.Sprintf("%s redirects from https:// to %s://", strconv.Quote(first.Host), r.URL.Scheme), "name a server that does not")
	}
	// It has the query of the URL before, which may hold a signature.
	r.Header.Del("Referer")
	if r.URL.Host == first.Host && r.URL.Scheme == first.Scheme {
		return nil
	}
	for _, secret := range []string{"Authorization", "Cookie"} {
		r.Header.Del(secret)
	}
	if t, ok := r.Context().Value(redirected{}).(*trail); ok {
		t.left.Store(true)
	}
	// A proxy dials in place of this program, so that the guard of the dialler does not see the address.
	if a, err := netip.ParseAddr(r.URL.Hostname()); err == nil {
		return g.check(a, true)
	}
	return nil
}

// guarded client: its requests need a context of the guard's own.
func (g *guard) client(t *http.Transport) *http.Client {
	t.DialContext = (&net.Dialer{Timeout: dialTimeout, ControlContext: g.control}).DialContext
	return &http.Client{Transport: t, CheckRedirect: g.redirect}
}

// followed is the context of a request whose redirects are checked.
func followed(ctx context.Context) context.Context {
	return context.WithValue(ctx, redirected{}, &trail{})
}
