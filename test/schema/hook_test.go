// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"
)

func TestHook(t *testing.T) {
	a := newAdmission(t, readCRD(t, "package/provider/crds/observe.capstan.dev_hooks.yaml"))
	const request = `requests: [{key: a-1, body: "{}", until: "2026-01-01T00:00:00Z"}]`
	cases := map[string]struct{ reason, parameters, want string }{
		"Full":    {reason: "As an Algorithm asks.", parameters: `{url: "http://a.shop.svc/b", secretName: s, ` + request + `}`},
		"Secret":  {reason: "A Secret may have the URL.", parameters: `{secretName: s}`},
		"Nowhere": {reason: "Requests go somewhere.", parameters: `{` + request + `}`, want: "set url or secretName"},
		"User":    {reason: "Credentials are in Secrets.", parameters: `{url: "http://a:b@c"}`, want: "without a user"},
		"File":    {reason: "Only HTTP is sent.", parameters: `{url: "file:///etc/passwd"}`, want: "must be an http or https URL"},
		"Header":  {reason: "A key is in a header.", parameters: `{url: "http://a", requests: [{key: "a\r\nb", body: "", until: "2026-01-01T00:00:00Z"}]}`, want: "letters, digits"},
		"Twice":   {reason: "A key is sent once.", parameters: `{url: "http://a", requests: [{key: a, body: "", until: "2026-01-01T00:00:00Z"}, {key: a, body: "", until: "2026-01-01T00:00:00Z"}]}`, want: "Duplicate value"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, withParameters(t, "observe.capstan.dev/v1alpha1", "Hook", tc.parameters))
			if all := strings.Join(errs, "\n"); tc.want == "" && all != "" || !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want an error with %q, got %q", tc.reason, tc.want, all)
			}
		})
	}
}
