// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
)

func TestGuard(t *testing.T) {
	cases := map[string]struct {
		reason  string
		address string
		inside  bool // the server that the spec names is inside
		left    bool // the request was redirected to another server
		want    string
	}{
		"Public":           {reason: "A CDN.", address: "203.0.113.7", left: true},
		"OwnService":       {reason: "The spec may name a Service.", address: "10.96.0.7"},
		"Sidecar":          {reason: "Or a proxy in the pod.", address: "127.0.0.1"},
		"InsideToInside":   {reason: "A server of the cluster may redirect to another.", address: "10.96.0.8", inside: true, left: true},
		"PublicToInside":   {reason: "A stranger must not use the pod's network.", address: "10.96.0.8", left: true, want: "redirects to a private address"},
		"PublicToLoopback": {reason: "Nor its sidecars.", address: "::1", left: true, want: "redirects to a private address"},
		"PublicToShared":   {reason: "Some clouds have their Services there.", address: "100.64.1.1", left: true, want: "private"},
		"Mapped":           {reason: "Another way to write it.", address: "::ffff:10.0.0.1", left: true, want: "private"},
		"NAT64":            {reason: "And another.", address: "64:ff9b::a00:1", left: true, want: "private"},
		"Metadata":         {reason: "It hands out the identity of the node.", address: "169.254.169.254", want: "stands for a link-local address"},
		"MetadataInside":   {reason: "Also to servers inside.", address: "169.254.169.254", inside: true, left: true, want: "redirects to a link-local address"},
		"MetadataIPv6":     {reason: "Amazon's other address.", address: "fd00:ec2::254", inside: true, left: true, want: "metadata service"},
		"Unspecified":      {reason: "It means this pod.", address: "0.0.0.0", left: true, want: "no address of a host"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := &guard{}
			g.inside.Store(tc.inside)
			tr := &trail{}
			tr.left.Store(tc.left)
			ctx := context.WithValue(t.Context(), redirected{}, tr)
			err := g.control(ctx, "tcp", net.JoinHostPort(tc.address, "443"), nil)
			if tc.want == "" && err != nil || tc.want != "" && (!failure.Is(err, failure.Invalid) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s\ncontrol(%s): want %q, got %v", tc.reason, tc.address, tc.want, err)
			}
			if tc.want != "" && strings.Contains(err.Error(), tc.address) {
				t.Errorf("the address is told: %v", err)
			}
			if tc.want == "" && !tc.left && g.inside.Load() != netip.MustParseAddr(tc.address).IsPrivate() && !netip.MustParseAddr(tc.address).IsLoopback() {
				t.Errorf("inside is %t for %s", g.inside.Load(), tc.address)
			}
		})
	}
}

// TestRedirect shows what is sent to the server that another one leads to.
func TestRedirect(t *testing.T) {
	var got http.Header
	cdn := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		_, _ = w.Write([]byte("model"))
	})
	// The same address by another name: a host is its name here.
	other := strings.Replace(cdn.URL, "127.0.0.1", "localhost", 1)
	target := other + "/blob?X-Signature=s"
	hub := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/m.bin" {
			http.Redirect(w, r, "/here", http.StatusTemporaryRedirect)
			return
		}
		http.Redirect(w, r, target, http.StatusFound)
	})
	var log bytes.Buffer
	o := Options{Credentials: Credentials{Token: "secret"}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	found, err := fetchAll(t, hub.URL+"/m.bin?token=query", o)
	if err != nil || found["m.bin"] != "model" {
		t.Fatalf("want the model from the other server, got %v, %v", found, err)
	}
	for _, name := range []string{"Authorization", "Cookie", "Referer"} {
		if got.Get(name) != "" {
			t.Errorf("the other server gets %s: %s", name, got.Get(name))
		}
	}

	for name, tc := range map[string]struct{ reason, target, want string }{
		"Metadata": {"It hands out the identity of the node.", "http://169.254.169.254/latest?a=secret", "redirects to a link-local address"},
		"Scheme":   {"No file of the pod is a model.", "file:///etc/passwd", "file://"},
		"Endless":  {"It never ends.", hub.URL + "/again", "redirects more than"},
	} {
		t.Run(name, func(t *testing.T) {
			target = tc.target
			start := time.Now()
			_, err := fetchAll(t, hub.URL+"/m.bin", o)
			if !failure.Is(err, failure.Invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("%s\nit is not worth another try, but took %s", tc.reason, took)
			}
		})
	}
	if strings.Contains(log.String(), "secret") || strings.Contains(log.String(), "query") {
		t.Errorf("the log has a secret: %s", &log)
	}
}

// TestDowngrade refuses to leave TLS.
func TestDowngrade(t *testing.T) {
	parse := func(s string) *http.Request {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return (&http.Request{URL: u, Header: http.Header{}}).WithContext(followed(t.Context()))
	}
	g := &guard{}
	if err := g.redirect(parse("http://a.example.org/m"), []*http.Request{parse("https://a.example.org/m")}); !failure.Is(err, failure.Invalid) {
		t.Errorf("from https to http: want %s, got %v", failure.Invalid, err)
	}
	if err := g.redirect(parse("https://a.example.org/m"), []*http.Request{parse("http://a.example.org/m")}); err != nil {
		t.Errorf("from http to https: want nothing against it, got %v", err)
	}
	// Go itself keeps secrets for hosts below.
	r := parse("https://cdn.a.example.org/m")
	r.Header.Set("Authorization", "Bearer secret")
	if err := g.redirect(r, []*http.Request{parse("https://a.example.org/m")}); err != nil || r.Header.Get("Authorization") != "" {
		t.Errorf("to a host below: want no secret, got %q, %v", r.Header.Get("Authorization"), err)
	}
}
