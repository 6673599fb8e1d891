// SPDX-License-Identifier: Apache-2.0

package allow

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/input/v1alpha1"
)

// entries of a list, each with the namespaces behind an @.
func entries(names ...string) []v1alpha1.Allowed {
	all := []v1alpha1.Allowed{}
	for _, n := range names {
		name, namespace, ok := strings.Cut(n, "@")
		e := v1alpha1.Allowed{Name: name}
		if ok {
			e.Namespaces = []string{namespace}
		}
		all = append(all, e)
	}
	return all
}

func TestHost(t *testing.T) {
	cases := map[string]struct {
		reason string
		list   []v1alpha1.Allowed
		host   string
		want   bool
	}{
		"Unset":          {"Without a list everything is allowed.", nil, "login.example.org", true},
		"Empty":          {"An empty list allows nothing.", entries(), "login.example.org", false},
		"Exact":          {"A name is itself.", entries("www.example.org"), "www.example.org", true},
		"Below":          {"A name is not what is below it.", entries("example.org"), "www.example.org", false},
		"Wildcard":       {"A wildcard is every name below.", entries("*.example.org"), "a.b.example.org", true},
		"WildcardItself": {"A wildcard is not the name itself.", entries("*.example.org"), "example.org", false},
		"Suffix":         {"A wildcard ends at a dot.", entries("*.example.org"), "badexample.org", false},
		"Namespace":      {"The placeholder is the namespace.", entries("*.{namespace}.example.org"), "reco.shop.example.org", true},
		"OtherNamespace": {"Names of other namespaces are theirs.", entries("*.{namespace}.example.org"), "reco.bank.example.org", false},
		"ForOthers":      {"An entry can be for other namespaces.", entries("www.example.org@bank"), "www.example.org", false},
		"ForUs":          {"An entry can be for this namespace.", entries("www.example.org@shop"), "www.example.org", true},
		"AskedWildcard":  {"A host with a wildcard is allowed below an allowed one.", entries("*.{namespace}.example.org"), "*.shop.example.org", true},
		"AskedAbove":     {"A host with a wildcard takes no names beyond.", entries("*.{namespace}.example.org"), "*.example.org", false},
		"AskedExact":     {"A host with a wildcard is more than a name.", entries("shop.example.org"), "*.shop.example.org", false},
		"AskedAll":       {"Every host of a listener is more than some.", entries("*.{namespace}.example.org"), "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := List{Setting: "algorithm.allowed.hosts", Namespace: "shop", Entries: tc.list}.Host(tc.host)
			if (got == "") != tc.want {
				t.Errorf("%s\nHost(%q): want allowed %t, got %q", tc.reason, tc.host, tc.want, got)
			}
		})
	}
}

func TestName(t *testing.T) {
	cases := map[string]struct {
		reason string
		list   []v1alpha1.Allowed
		own    []string
		name   string
		want   bool
	}{
		"Unset":     {"Without a list everything is allowed.", nil, nil, "gateway/shared", true},
		"Same":      {"A name is itself.", entries("gateway/shared"), nil, "gateway/shared", true},
		"Other":     {"Another name is another.", entries("gateway/shared"), nil, "gateway/internal", false},
		"Own":       {"What the platform chose is allowed.", entries(), []string{"gateway/shared"}, "gateway/shared", true},
		"Group":     {"Every name of a group.", entries("gateway/*"), nil, "gateway/internal", true},
		"NotGroup":  {"A group ends at the slash.", entries("gateway/*"), nil, "gateway-2/internal", false},
		"Namespace": {"The placeholder is the namespace.", entries("{namespace}/*"), nil, "shop/own", true},
		"Foreign":   {"The placeholder is no other namespace.", entries("{namespace}/*"), nil, "bank/own", false},
		"All":       {"A star is everything.", entries("*"), nil, "anything", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := List{Setting: "x", Namespace: "shop", Own: tc.own, Entries: tc.list}.Name(tc.name)
			if (got == "") != tc.want {
				t.Errorf("%s\nName(%q): want allowed %t, got %q", tc.reason, tc.name, tc.want, got)
			}
		})
	}
}

func TestToleration(t *testing.T) {
	cases := map[string]struct {
		reason string
		list   []v1alpha1.Allowed
		t      corev1.Toleration
		want   bool
	}{
		"Key":        {"A key is all its values.", entries("dedicated"), corev1.Toleration{Key: "dedicated", Value: "gpu"}, true},
		"KeyExists":  {"A key is all its values.", entries("dedicated"), corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists}, true},
		"Value":      {"One value is allowed.", entries("dedicated=gpu"), corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "gpu"}, true},
		"OtherValue": {"Another value is not.", entries("dedicated=gpu"), corev1.Toleration{Key: "dedicated", Value: "db"}, false},
		"AllValues":  {"All values are more than one.", entries("dedicated=gpu"), corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists}, false},
		"Everything": {"No key is every taint.", entries("dedicated"), corev1.Toleration{Operator: corev1.TolerationOpExists}, false},
		"AllowedAll": {"A star is every taint.", entries("*"), corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := List{Setting: "x", Namespace: "shop", Entries: tc.list}.Toleration(tc.t)
			if (got == "") != tc.want {
				t.Errorf("%s\nToleration(%v): want allowed %t, got %q", tc.reason, tc.t, tc.want, got)
			}
		})
	}
}

func TestMessage(t *testing.T) {
	l := List{Setting: "algorithm.allowed.gateways", Namespace: "shop", Own: []string{"gateway/shared"}, Entries: entries("{namespace}/*", "bank/b@bank")}
	want := "the platform allows only gateway/shared, shop/* for namespace shop: change it, or ask the platform team to add it to " +
		"algorithm.allowed.gateways of its settings"
	if got := l.Name("bank/b"); got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	l = List{Setting: "x", Namespace: "shop", Entries: entries("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")}
	if got := l.Name("z"); !strings.Contains(got, "h and 2 more") {
		t.Errorf("A long list should be cut, got %q", got)
	}
	if got := (List{Setting: "x", Namespace: "shop", Entries: entries()}).Name("z"); !strings.Contains(got, "only nothing here for") {
		t.Errorf("An empty list should be told, got %q", got)
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason     string
		algorithms v1alpha1.AllowedToAlgorithms
		databases  v1alpha1.AllowedToDatabases
		want       string
	}{
		"Unset": {reason: "No lists are fine."},
		"Good": {
			reason: "All forms are accepted.",
			algorithms: v1alpha1.AllowedToAlgorithms{
				Hosts: entries("*.{namespace}.example.org", "api-{namespace}.example.org@shop"), Gateways: entries("gateway/shared", "{namespace}/*"),
				PriorityClasses: entries("batch", "*"), ServiceAccounts: entries("reader"), Tolerations: entries("*", "a", "example.org/a=b"),
			},
			databases: v1alpha1.AllowedToDatabases{Hostnames: entries("db.example.org"), Issuers: entries("Issuer/*", "ClusterIssuer/platform")},
		},
		"Host":       {reason: "A star is only in front.", algorithms: v1alpha1.AllowedToAlgorithms{Hosts: entries("a.*.example.org")}, want: `"a.*.example.org"`},
		"AnyHost":    {reason: "To allow every host, leave the list out.", algorithms: v1alpha1.AllowedToAlgorithms{Hosts: entries("*")}, want: `"*"`},
		"Gateway":    {reason: "A Gateway has a namespace.", algorithms: v1alpha1.AllowedToAlgorithms{Gateways: entries("shared")}, want: "gateway/shared"},
		"Class":      {reason: "A class is a name.", algorithms: v1alpha1.AllowedToAlgorithms{PriorityClasses: entries("A B")}, want: `"A B"`},
		"Account":    {reason: "An account is a name.", algorithms: v1alpha1.AllowedToAlgorithms{ServiceAccounts: entries("a/b")}, want: `"a/b"`},
		"Toleration": {reason: "A taint has a key.", algorithms: v1alpha1.AllowedToAlgorithms{Tolerations: entries("=a")}, want: `"=a"`},
		"Namespace":  {reason: "Namespaces are names.", algorithms: v1alpha1.AllowedToAlgorithms{Hosts: entries("a.example.org@A")}, want: `"A" is not the name of a namespace`},
		"Hostname":   {reason: "A host name is one.", databases: v1alpha1.AllowedToDatabases{Hostnames: entries("a b")}, want: `"a b"`},
		"Issuer":     {reason: "An issuer has a kind.", databases: v1alpha1.AllowedToDatabases{Issuers: entries("platform")}, want: "ClusterIssuer/platform"},
		"IssuerKind": {reason: "There are two kinds.", databases: v1alpha1.AllowedToDatabases{Issuers: entries("Vault/a")}, want: "begin with Issuer/"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{CheckAlgorithms(tc.algorithms), CheckDatabases(tc.databases)} {
				if err == nil {
					continue
				}
				if tc.want == "" || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
				}
				return
			}
			if tc.want != "" {
				t.Errorf("%s\nwant %q, got no error", tc.reason, tc.want)
			}
		})
	}
}
