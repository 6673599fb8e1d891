// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"
)

func TestGuard(t *testing.T) {
	cases := map[string]struct {
		reason  string
		address string
		host    string
		allowed []netip.Prefix
		refused string
	}{
		"Public":           {reason: "Public addresses are what configs are for.", address: "93.184.216.34:443"},
		"PublicIPv6":       {reason: "Public addresses are what configs are for.", address: "[2606:2800:220:1::1]:443"},
		"Private":          {reason: "Pods and Services of others are there.", address: "10.1.2.3:9000", refused: "a private address"},
		"PrivateWide":      {reason: "Pods and Services of others are there.", address: "172.16.0.1:80", refused: "a private address"},
		"PrivateHome":      {reason: "Nodes are there.", address: "192.168.1.1:10255", refused: "a private address"},
		"PrivateIPv6":      {reason: "Pods and Services of others are there.", address: "[fd00::1]:80", refused: "a private address"},
		"PrivateMapped":    {reason: "It is the same in IPv6 clothes.", address: "[::ffff:10.1.2.3]:80", refused: "a private address"},
		"Carrier":          {reason: "Some clouds give these to pods.", address: "100.64.0.1:80", refused: "a private address"},
		"Benchmark":        {reason: "Some clusters have these.", address: "198.19.128.7:80", refused: "a private address"},
		"Service":          {reason: "A Service of the own namespace is the tenant's.", host: "hooks.shop.svc", address: "10.96.7.7:80"},
		"ServiceDomain":    {reason: "It has a longer name, too.", host: "hooks.shop.svc.cluster.local.", address: "10.96.7.7:80"},
		"ServiceElsewhere": {reason: "A name that leads elsewhere than its Service is a trick.", host: "hooks.shop.svc", address: "10.1.2.3:80", refused: "a private address"},
		"ServiceExternal":  {reason: "A Service of type ExternalName leads anywhere.", host: "external.shop.svc", address: "10.1.2.3:80", refused: "a private address"},
		"ServiceOfOthers":  {reason: "A Service of another namespace is theirs.", host: "hooks.bank.svc", address: "10.96.7.7:80", refused: "a private address"},
		"ServiceLoopback":  {reason: "No name makes loopback addresses good.", host: "tools.example.org", address: "127.0.0.1:80", refused: "a loopback address"},
		"ServiceMetadata":  {reason: "No name makes metadata services good.", host: "tools.example.org", address: "169.254.169.254:80", refused: "a link-local address"},
		"HostAPIServer":    {reason: "No name makes the API server good.", host: "tools.example.org", address: "10.96.0.1:443", refused: "the API server"},
		"Host":             {reason: "The platform may allow a host.", host: "tools.example.org", address: "10.1.2.3:443"},
		"HostBelow":        {reason: "A host is not what is below it.", host: "a.tools.example.org", address: "10.1.2.3:443", refused: "a private address"},
		"HostEnd":          {reason: "The platform may allow all hosts with an end.", host: "ci.build.svc", address: "10.1.2.3:443"},
		"HostNamespace":    {reason: "The end may have the namespace.", host: "a.shop.example.org", address: "10.1.2.3:443"},
		"HostOfOthers":     {reason: "Hosts of other namespaces are theirs.", host: "a.bank.example.org", address: "10.1.2.3:443", refused: "a private address"},
		"AllowedPrivate": {
			reason: "The platform may allow a range.", address: "10.1.2.3:443", allowed: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
		},
		"Loopback":         {reason: "The provider itself is nobody's to ask.", address: "127.0.0.1:8080", refused: "a loopback address"},
		"LoopbackAnywhere": {reason: "All of 127.0.0.0/8 is loopback.", address: "127.9.9.9:80", refused: "a loopback address"},
		"LoopbackIPv6":     {reason: "The provider itself is nobody's to ask.", address: "[::1]:8080", refused: "a loopback address"},
		"Mapped":           {reason: "An IPv4 address in IPv6 clothes is the same.", address: "[::ffff:127.0.0.1]:80", refused: "a loopback address"},
		"Compatible":       {reason: "The older clothes are no better.", address: "[::127.0.0.1]:80", refused: "a loopback address"},
		"Translated":       {reason: "A NAT64 gateway would make it 169.254.169.254.", address: "[64:ff9b::a9fe:a9fe]:80", refused: "a link-local address"},
		"Metadata":         {reason: "The metadata service hands out credentials of the node.", address: "169.254.169.254:80", refused: "a link-local address"},
		"MetadataAmazon":   {reason: "It has an IPv6 address that is not link-local.", address: "[fd00:ec2::254]:80", refused: "the metadata service of a cloud"},
		"MetadataAlibaba":  {reason: "It is not link-local.", address: "100.100.100.200:80", refused: "the metadata service of a cloud"},
		"MetadataAzure":    {reason: "The wire server is not link-local.", address: "168.63.129.16:80", refused: "the metadata service of a cloud"},
		"LinkLocalIPv6":    {reason: "Neighbours of the node are not outside.", address: "[fe80::1%eth0]:80", refused: "a link-local address"},
		"Multicast":        {reason: "Many are nobody.", address: "224.0.0.1:80", refused: "a link-local address"},
		"MulticastWide":    {reason: "Many are nobody.", address: "239.1.1.1:80", refused: "a multicast address"},
		"Unspecified":      {reason: "Linux takes it for loopback.", address: "0.0.0.0:80", refused: "no address of a host"},
		"UnspecifiedIPv6":  {reason: "Linux takes it for loopback.", address: "[::]:80", refused: "no address of a host"},
		"ThisNetwork":      {reason: "0.0.0.0/8 is no host.", address: "0.1.2.3:80", refused: "no address of a host"},
		"Broadcast":        {reason: "All are nobody.", address: "255.255.255.255:80", refused: "no address of a host"},
		"APIServer":        {reason: "The API server knows the provider.", address: "10.96.0.1:443", refused: "the API server"},
		"APIServerMapped":  {reason: "It is the same in IPv6 clothes.", address: "[::ffff:10.96.0.1]:443", refused: "the API server"},
		"APIServerPort":    {reason: "What else runs on a control plane node is not outside either.", address: "10.96.0.1:10250", refused: "the API server"},
		"Allowed": {
			reason:  "The platform may allow what it likes.",
			address: "127.0.0.1:9000",
			allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		},
		"NotAllowed": {
			reason:  "An allowed range allows nothing else.",
			address: "169.254.169.254:80",
			allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			refused: "a link-local address",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := &Guard{
				Allowed: tc.allowed,
				Hosts:   []string{"tools.example.org", "*.build.svc", "*.{namespace}.example.org"},
				Services: func(_ context.Context, namespace, name string) ([]netip.Addr, error) {
					if namespace != "shop" || name != "hooks" {
						return nil, nil
					}
					return []netip.Addr{netip.MustParseAddr("10.96.7.7")}, nil
				},
				APIServer: func(context.Context) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr("10.96.0.1")}, nil
				},
			}
			err := g.check(t.Context(), target{namespace: "shop", host: tc.host}, tc.address)
			e := (*AddressError)(nil)
			if errors.As(err, &e) != (tc.refused != "") || e != nil && e.Kind != tc.refused {
				t.Errorf("\n%s\ncheck(%q): want refused %q, got %v", tc.reason, tc.address, tc.refused, err)
			}
		})
	}
}

func TestGuardWithoutAPIServer(t *testing.T) {
	g := &Guard{APIServer: func(context.Context) ([]netip.Addr, error) { return nil, errors.New("boom") }}
	if err := g.check(t.Context(), target{}, "93.184.216.34:443"); err == nil {
		t.Error("When nobody knows what the API server is, nobody connects")
	}
}

func TestGuardWithoutServices(t *testing.T) {
	g := &Guard{
		APIServer: func(context.Context) ([]netip.Addr, error) { return nil, nil },
		Services:  func(context.Context, string, string) ([]netip.Addr, error) { return nil, errors.New("boom") },
	}
	if err := g.check(t.Context(), target{namespace: "shop", host: "hooks.shop.svc"}, "10.1.2.3:80"); err == nil {
		t.Error("When nobody knows whose Service it is, nobody connects")
	}
}

// TestDialerKnowsTheHost shows that the guard sees what a tenant named: in the address that is dialled, or before it was looked up.
func TestDialerKnowsTheHost(t *testing.T) {
	g := &Guard{Hosts: []string{"10.96.7.7", "db.shop.svc"}, APIServer: func(context.Context) ([]netip.Addr, error) { return nil, nil }}
	for name, tc := range map[string]struct {
		host, address string
		refused       bool
	}{
		"InTheAddress":     {"", "10.96.7.7:80", false},
		"AnotherAddress":   {"", "10.96.7.8:80", true},
		"LookedUp":         {"db.shop.svc", "10.96.7.8:80", false},
		"AnotherLookedUp":  {"db.bank.svc", "10.96.7.8:80", true},
		"NameCountsAndNot": {"db.bank.svc", "10.96.7.7:80", true},
	} {
		t.Run(name, func(t *testing.T) {
			// Nobody answers there.
			c, err := g.Dialer(net.Dialer{Timeout: 10 * time.Millisecond}, "shop", tc.host)(t.Context(), "tcp", tc.address)
			if err == nil {
				_ = c.Close()
			}
			if e := (*AddressError)(nil); errors.As(err, &e) != tc.refused {
				t.Errorf("want refused %t, got %v", tc.refused, err)
			}
		})
	}
}

func TestGuardRemembers(t *testing.T) {
	asked := 0
	g := &Guard{APIServer: func(context.Context) ([]netip.Addr, error) {
		asked++
		return nil, nil
	}}
	for range 3 {
		if err := g.check(t.Context(), target{}, "93.184.216.34:443"); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("The API server's addresses were asked for %d times in a moment", asked)
	}
	g.fresh = time.Now().Add(-2 * remember)
	if err := g.check(t.Context(), target{}, "93.184.216.34:443"); err != nil || asked != 2 {
		t.Errorf("They should be asked for again after %s: asked %d times, %v", remember, asked, err)
	}
}

// TestGuardHoldsAtDialTime shows that what counts is the address that is dialled and not the name in the URL: names that resolve
// to something else the second time do not help.
func TestGuardHoldsAtDialTime(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	g := &Guard{APIServer: func(context.Context) ([]netip.Addr, error) { return nil, nil }}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, host := range []string{"localhost", "127.0.0.1"} {
		c, err := g.Dialer(net.Dialer{}, "shop", "")(t.Context(), "tcp", net.JoinHostPort(host, port))
		if e := (*AddressError)(nil); !errors.As(err, &e) {
			t.Errorf("Dialling %s should be refused, got %v", host, err)
		}
		if c != nil {
			_ = c.Close()
		}
	}
}
