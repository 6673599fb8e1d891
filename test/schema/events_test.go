// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"
)

// TestHookOfSignal shows that a Signal and a rule of a Receiver name a hook where they run one, and only there.
func TestHookOfSignal(t *testing.T) {
	const (
		target = `target: {kind: Database, name: orders}`
		until  = `expiresAt: "2026-01-01T00:00:00Z"`
	)
	rule := func(text string) string {
		return `{format: CloudEvents, secretName: s, rules: [{name: r, match: {type: t}, ` + target + `, ` + text + `}]}`
	}
	cases := map[string]struct{ reason, kind, parameters, want string }{
		"Signal":         {reason: "A hook is named.", kind: "Signal", parameters: `{` + target + `, do: Hook, hook: shed-load, ` + until + `}`},
		"SignalNameless": {reason: "Which one?", kind: "Signal", parameters: `{` + target + `, do: Hook, ` + until + `}`, want: "must be set for Hook, and for nothing else"},
		"SignalOther":    {reason: "It would have no effect.", kind: "Signal", parameters: `{` + target + `, do: Hold, hook: a, ` + until + `}`, want: "must be set for Hook, and for nothing else"},
		"SignalName":     {reason: "No hook has such a name.", kind: "Signal", parameters: `{` + target + `, do: Hook, hook: "a b", ` + until + `}`, want: "must be lower case letters"},
		"Rule":           {reason: "A hook is named.", kind: "Receiver", parameters: rule(`do: Hook, hook: shed-load`)},
		"RuleNameless":   {reason: "Which one?", kind: "Receiver", parameters: rule(`do: Hook`), want: "must be set for Hook, and for nothing else"},
		"RuleOther":      {reason: "It would have no effect.", kind: "Receiver", parameters: rule(`do: Backup, hook: a`), want: "must be set for Hook, and for nothing else"},
		"RuleName":       {reason: "No hook has such a name.", kind: "Receiver", parameters: rule(`do: Hook, hook: A`), want: "must be lower case letters"},
	}
	crds := map[string]string{"Signal": "signals", "Receiver": "receivers"}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := newAdmission(t, readCRD(t, "package/provider/crds/events.capstan.dev_"+crds[tc.kind]+".yaml"))
			_, errs := a.create(t, withParameters(t, "events.capstan.dev/v1alpha1", tc.kind, tc.parameters))
			if all := strings.Join(errs, "\n"); tc.want == "" && all != "" || !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want an error with %q, got %q", tc.reason, tc.want, all)
			}
		})
	}
}

// TestHookOfSignalStays shows that the hook of a Signal cannot be exchanged for another one, which would run as well.
func TestHookOfSignalStays(t *testing.T) {
	a := newAdmission(t, readCRD(t, "package/provider/crds/events.capstan.dev_signals.yaml"))
	signal := func(hook string) map[string]any {
		return withParameters(t, "events.capstan.dev/v1alpha1", "Signal", `{target: {kind: Algorithm, name: reco}, do: Hook, hook: `+hook+`, expiresAt: "2026-01-01T00:00:00Z"}`)
	}
	if errs := a.update(t, signal("a"), signal("b")); !strings.Contains(strings.Join(errs, "\n"), "target, do and hook cannot change") {
		t.Errorf("got %q", errs)
	}
}
