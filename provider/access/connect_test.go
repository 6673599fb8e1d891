// SPDX-License-Identifier: Apache-2.0

package access

import "testing"

func TestOwnHost(t *testing.T) {
	cases := map[string]struct {
		reason string
		host   string
		ok     bool
	}{
		"Own":       {reason: "A Service of the own namespace.", host: "orders-db-rw.shop.svc", ok: true},
		"Other":     {reason: "Another namespace.", host: "orders-db-rw.bank.svc"},
		"Long":      {reason: "A longer name could lead elsewhere.", host: "orders-db-rw.shop.svc.cluster.local"},
		"Outside":   {reason: "A name of the internet.", host: "shop.svc"},
		"Address":   {reason: "An address.", host: "10.0.0.1"},
		"Empty":     {reason: "No Service.", host: ".shop.svc"},
		"Subdomain": {reason: "A pod is not a Service.", host: "a.orders-db-pods.shop.svc"},
	}
	for name, tc := range cases {
		if err := ownHost(tc.host, "shop"); (err == nil) != tc.ok {
			t.Errorf("%s: %s ownHost(%q, shop): got %v", name, tc.reason, tc.host, err)
		}
	}
}
