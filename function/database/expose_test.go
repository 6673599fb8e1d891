// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// assign an address to the load balancer.
func (w *world) assign(key, address string) {
	w.request.Observed[names.External].Map()["status"] = map[string]any{
		"loadBalancer": map[string]any{"ingress": []any{map[string]any{key: address}}},
	}
}

func TestExpose(t *testing.T) {
	const head = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, expose: {sourceRanges: [203.0.113.0/24, "2001:db8::/32"]`
	for name, tc := range map[string]struct {
		reason                    string
		spec                      string
		key, address              string
		status, because, endpoint string
		selects                   string
		certificate, names, ips   string
		policy, closed            string
	}{
		"Pending": {
			reason: "Without an address there is nothing to connect to.", spec: head + `}}`,
			status: "False", because: "AddressPending",
			selects: "capstan.dev/role:leader", certificate: names.MembersCertificate, policy: names.NetworkPolicy,
		},
		"Address": {
			reason: "The certificate is for the address.", spec: head + `}}`, key: "ip", address: "198.51.100.7",
			status: "True", because: "AddressAssigned", endpoint: "198.51.100.7:5432",
			selects: "capstan.dev/role:leader", certificate: names.MembersCertificate, ips: "198.51.100.7", policy: names.NetworkPolicy,
		},
		"Name": {
			reason: "Some load balancers have a name.", spec: head + `}}`, key: "hostname", address: "lb.example.net",
			status: "True", because: "AddressAssigned", endpoint: "lb.example.net:5432",
			selects: "capstan.dev/role:leader", certificate: names.MembersCertificate, names: "lb.example.net", policy: names.NetworkPolicy,
		},
		"Hostname": {
			reason: "The name that is asked for is the one that clients are told.", spec: head + `, hostname: db.example.org}}`, key: "ip", address: "2001:db8::7",
			status: "True", because: "AddressAssigned", endpoint: "db.example.org:5432",
			selects: "capstan.dev/role:leader", certificate: names.MembersCertificate, names: "db.example.org", ips: "2001:db8::7", policy: names.NetworkPolicy,
		},
		"Issuer": {
			reason: "The platform's issuer signs what clients see.", spec: head + `, hostname: db.example.org}, tls: {issuerRef: {name: company}}}`, key: "ip", address: "198.51.100.7",
			status: "True", because: "AddressAssigned", endpoint: "db.example.org:5432",
			selects: "capstan.dev/role:leader", certificate: names.ServerCertificate, names: "db.example.org", policy: names.NetworkPolicy,
		},
		"Pooler": {
			reason: "With poolers clients outside come to them, and members stay closed.", spec: head + `, hostname: db.example.org}, pooler: {}}`, key: "ip", address: "198.51.100.7",
			status: "True", because: "AddressAssigned", endpoint: "db.example.org:5432",
			selects: "capstan.dev/pooler:orders-db", certificate: names.PoolerCertificate, names: "db.example.org", ips: "198.51.100.7",
			policy: names.PoolerNetworkPolicy, closed: names.NetworkPolicy,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, tc.spec)
			if tc.address != "" {
				w.assign(tc.key, tc.address)
			}
			w.pass()
			p := w.plan()
			if status, reason, message := condition(p, string(v1alpha1.TypeExposed)); status != tc.status || reason != tc.because {
				t.Errorf("%s: %s, %s: %s, want %s, %s", tc.reason, status, reason, message, tc.status, tc.because)
			}
			if st := told(t, p); st.Endpoints.External != tc.endpoint {
				t.Errorf("%s: endpoint %q, want %q", tc.reason, st.Endpoints.External, tc.endpoint)
			}
			host, _, _ := strings.Cut(tc.endpoint, ":5432")
			if got := fmt.Sprint(compose.List(w.request.Observed[names.ConsumerPrefix+"app"].Map(), "spec", "forProvider", "connection", "endpoints")); strings.Contains(got, "name:external") != (host != "") || !strings.Contains(got, host) {
				t.Errorf("%s: a consumer is told %s", tc.reason, got)
			}
			service := w.request.Observed[names.External].Map()
			if got := fmt.Sprint(compose.Map(service, "spec", "selector")); !strings.Contains(got, tc.selects) {
				t.Errorf("%s: the Service leads to %s, want %s", tc.reason, got, tc.selects)
			}
			if _, always := compose.Map(service, "spec")["publishNotReadyAddresses"]; always == strings.Contains(tc.spec, "pooler") {
				t.Errorf("%s: readiness decides %t about the leader's clients, and has to about the poolers' alone", tc.reason, !always)
			}
			if got := fmt.Sprint(compose.List(service, "spec", "loadBalancerSourceRanges"), " ", compose.Text(service, "spec", "type"), " ", compose.Text(service, "spec", "externalTrafficPolicy")); got != "[203.0.113.0/24 2001:db8::/32] LoadBalancer Local" {
				t.Errorf("%s: the Service is %s", tc.reason, got)
			}
			spec := compose.Map(w.request.Observed[tc.certificate].Map(), "spec")
			if names := fmt.Sprint(compose.List(spec, "dnsNames")); !strings.Contains(names, tc.names) {
				t.Errorf("%s: the certificate is for %s, want %s among them", tc.reason, names, tc.names)
			}
			if ips := fmt.Sprint(compose.List(spec, "ipAddresses")); !strings.Contains(ips, tc.ips) {
				t.Errorf("%s: the certificate is for %s, want %s", tc.reason, ips, tc.ips)
			}
			if !strings.Contains(fmt.Sprint(w.request.Observed[tc.policy].Map()), "203.0.113.0/24") {
				t.Errorf("%s: %s does not let them in", tc.reason, tc.policy)
			}
			if tc.closed != "" && strings.Contains(fmt.Sprint(w.request.Observed[tc.closed].Map()), "203.0.113.0/24") {
				t.Errorf("%s: %s lets them in", tc.reason, tc.closed)
			}
		})
	}
}

// TestExposeRestartsNoMember, and leaves nothing.
func TestExposeRestartsNoMember(t *testing.T) {
	w := running(t, basic)
	before := w.revisions()
	w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, expose: {sourceRanges: [0.0.0.0/0]}}`)
	w.pass()
	w.pass()
	if w.request.Observed[names.External] == nil {
		t.Error("there is no Service")
	}
	w.edit(basic)
	w.pass()
	if w.request.Observed[names.External] != nil {
		t.Error("the Service is left")
	}
	if fmt.Sprint(w.revisions()) != fmt.Sprint(before) {
		t.Errorf("members are at %v, want %v", w.revisions(), before)
	}
}

func TestCheckExpose(t *testing.T) {
	for name, tc := range map[string]struct{ reason, expose, want string }{
		"Everybody": {"The whole Internet has to be said.", `{sourceRanges: [0.0.0.0/0, "::/0"]}`, ""},
		"Nobody":    {"No range is no default.", `{}`, "spec.expose.sourceRanges"},
		"Bits":      {"A range has no bits behind it.", `{sourceRanges: [203.0.113.7/24]}`, "spec.expose.sourceRanges[0]"},
		"NoRange":   {"A name is no range.", `{sourceRanges: [example.org]}`, "spec.expose.sourceRanges[0]"},
		"NoName":    {"A name is one of DNS.", `{sourceRanges: [0.0.0.0/0], hostname: "a_b.c"}`, "spec.expose.hostname"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, `{engine: postgres, version: "17", replicas: 1, storage: 50Gi, expose: `+tc.expose+`}`)
			_, reason, message := condition(w.plan(), string(v1alpha1.TypeAccepted))
			if tc.want == "" && reason != "Valid" || !strings.Contains(message, tc.want) {
				t.Errorf("%s: %s: %s, want %q", tc.reason, reason, message, tc.want)
			}
		})
	}
}
