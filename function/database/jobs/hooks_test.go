// SPDX-License-Identifier: Apache-2.0

package jobs

import "testing"

func TestDestination(t *testing.T) {
	for text, want := range map[string]string{
		"http://chat/done":                              "invalid IP shop 80",
		"https://chat.tools.svc/done":                   "invalid IP tools 443",
		"http://chat.tools.svc.cluster.local.:8080/":    "invalid IP tools 8080",
		"https://hooks.example.org/x":                   "invalid IP  443",
		"https://example.org":                           "invalid IP  443",
		"http://192.0.2.7:8443/x":                       "192.0.2.7  8443",
		"http://[2001:db8::1]/x":                        "2001:db8::1  80",
		"https://hooks.example.org:8443/a?b=c#fragment": "invalid IP  8443",
	} {
		if d, ok := destinationOf(text, "shop"); !ok || d.String() != want {
			t.Errorf("%s: want %q, got %q", text, want, d)
		}
	}
}
