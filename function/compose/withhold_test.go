// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 500, time.UTC)

const (
	forbidden = `poddisruptionbudgets.policy "reco-a" is forbidden: User "system:serviceaccount:crossplane-system:crossplane" ` +
		`cannot patch resource "poddisruptionbudgets" in API group "policy" in the namespace "shop"`
	refused = `cannot compose resources: cannot apply composed resource "pdb-a": ` + forbidden
)

func TestWithhold(t *testing.T) {
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	entry := func(resource, message string, d time.Duration) v1alpha1.Withheld {
		return v1alpha1.Withheld{Resource: resource, Message: message, Until: metav1.NewTime(now.Add(d).Truncate(time.Second))}
	}
	cases := map[string]struct {
		reason     string
		synced     string
		remembered []any
		observed   []string
		want       []v1alpha1.Withheld
		leavesOut  []string
	}{
		"Nothing": {
			reason: "what was not refused is asked for",
		},
		"Refused": {
			reason:    "the pass that learns of a refusal asks for nothing new, so that the status is sure to be written",
			synced:    refused,
			want:      []v1alpha1.Withheld{entry("pdb-a", forbidden, time.Minute)},
			leavesOut: []string{"hpa-a", "pdb-a", "service"},
		},
		"Reviewed": {
			reason:    "Crossplane's own review on a second line repeats the first",
			synced:    refused + "\n" + `user "crossplane" is not allowed to [patch]`,
			want:      []v1alpha1.Withheld{entry("pdb-a", forbidden, time.Minute)},
			leavesOut: []string{"hpa-a", "pdb-a", "service"},
		},
		"Remembered": {
			reason:     "once it is in the status, only the refused one is left out, and its time stays",
			synced:     refused,
			remembered: []any{map[string]any{"resource": "pdb-a", "message": "m", "until": at(10 * time.Second)}},
			want:       []v1alpha1.Withheld{entry("pdb-a", "m", 10*time.Second)},
			leavesOut:  []string{"pdb-a"},
		},
		"SecondRefusal": {
			reason:     "another refusal is added",
			synced:     strings.ReplaceAll(refused, "pdb-a", "hpa-a"),
			remembered: []any{map[string]any{"resource": "pdb-a", "message": "m", "until": at(10 * time.Second)}},
			want:       []v1alpha1.Withheld{entry("hpa-a", forbidden, time.Minute), entry("pdb-a", "m", 10*time.Second)},
			leavesOut:  []string{"hpa-a", "pdb-a", "service"},
		},
		"Expired": {
			reason:     "it is asked for again",
			remembered: []any{map[string]any{"resource": "pdb-a", "message": "m", "until": at(0)}},
		},
		"Appeared": {
			reason:     "what exists is not left out, and what was refused of it waits like anything else",
			want:       []v1alpha1.Withheld{entry("pdb-a", "m", 10*time.Second)},
			remembered: []any{map[string]any{"resource": "pdb-a", "message": "m", "until": at(10 * time.Second)}},
			observed:   []string{"pdb-a"},
		},
		"ObservedRefused": {
			reason:    "what exists is never left out, even when a change of it is refused: nothing new is asked for in this pass",
			synced:    refused,
			observed:  []string{"pdb-a"},
			want:      []v1alpha1.Withheld{entry("pdb-a", forbidden, time.Minute)},
			leavesOut: []string{"hpa-a", "service"},
		},
		"ObservedWhileLearning": {
			reason:    "what exists is kept while nothing new is asked for",
			synced:    refused,
			observed:  []string{"service"},
			want:      []v1alpha1.Withheld{entry("pdb-a", forbidden, time.Minute)},
			leavesOut: []string{"hpa-a", "pdb-a"},
		},
		"FarFuture": {
			reason:     "a time that a clock gone wrong has set is forgotten",
			remembered: []any{map[string]any{"resource": "pdb-a", "message": "m", "until": at(time.Hour)}},
		},
		"Unreadable": {
			reason:     "what cannot be read is forgotten",
			remembered: []any{map[string]any{"resource": "pdb-a", "until": "tomorrow"}},
		},
		"NoMapping": {
			reason: "a kind that is not served is named in other words",
			synced: `cannot compose resources: cannot check if composed resource "hpa-a" is namespaced (a HPA named reco): no matches for kind "HPA"`,
			want: []v1alpha1.Withheld{
				entry("hpa-a", `no matches for kind "HPA"`, time.Minute),
			},
			leavesOut: []string{"hpa-a", "pdb-a", "service"},
		},
		"LongRefusal": {
			reason: "a long refusal is cut, at the end of a character",
			synced: `cannot compose resources: cannot apply composed resource "pdb-a": ` + strings.Repeat("é", 400),
			want: []v1alpha1.Withheld{
				entry("pdb-a", strings.Repeat("é", 254)+"…", time.Minute),
			},
			leavesOut: []string{"hpa-a", "pdb-a", "service"},
		},
		"LongNames": {
			reason: "of two names as long as names may be, the remedy is kept",
			synced: `cannot compose resources: cannot apply composed resource "pdb-a": poddisruptionbudgets.policy "` + strings.Repeat("a", 63) +
				`" is forbidden: ValidatingAdmissionPolicy 'capstan-takeover' with binding 'capstan-takeover' denied request: ` + takeover(strings.Repeat("a", 63)),
			want:      []v1alpha1.Withheld{entry("pdb-a", takeover(strings.Repeat("a", 63)), time.Minute)},
			leavesOut: []string{"hpa-a", "pdb-a", "service"},
		},
		"OtherTrouble": {
			reason: "a message that names no object withholds none",
			synced: `cannot compose resources: cannot get existing composed resources: timeout`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr := composetest.Object{"status": map[string]any{"withheld": tc.remembered}}
			if tc.synced != "" {
				xr["status"].(map[string]any)["conditions"] = []any{
					map[string]any{"type": "Ready", "status": "False", "message": refused},
					map[string]any{"type": "Synced", "status": "False", "reason": "ReconcileError", "message": tc.synced},
				}
			}
			observed := map[string]compose.Object{}
			for _, resource := range tc.observed {
				observed[resource] = composetest.Object{}
			}
			w := compose.Withhold(compose.Request{Now: now, Composite: xr, Observed: observed})
			resources := []string{"service", "pdb-a", "hpa-a"}
			asked := make([]compose.Asked, 0, len(resources))
			var out []string
			for _, resource := range resources {
				asked = append(asked, compose.Asked{Resource: resource})
				if w.LeavesOut(resource) {
					out = append(out, resource)
				}
			}
			slices.Sort(out)
			if diff := cmp.Diff(tc.want, w.Entries(asked), cmp.Transformer("UTC", func(t metav1.Time) string { return t.UTC().String() })); diff != "" {
				t.Errorf("%s\nEntries: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.leavesOut, out); diff != "" {
				t.Errorf("%s\nLeavesOut: -want, +got:\n%s", tc.reason, diff)
			}
			if got := w.Entries(nil); got != nil {
				t.Errorf("what is no longer asked for is still withheld: %v", got)
			}
		})
	}
}

// takeover is refused with these words.
func takeover(name string) string {
	return "PodDisruptionBudget " + name + " exists, and Algorithm " + name + " did not make it: rename one of the two, " +
		"or hand it over with the annotation capstan.dev/adopt=" + name
}

func TestComposed(t *testing.T) {
	missing := []compose.Asked{
		{Resource: "service", Kind: "Service", Name: "reco", Observed: true},
		{Resource: "pdb-a", Kind: "PodDisruptionBudget", Name: "reco-a"},
	}
	existing := []compose.Asked{missing[0], {Resource: "pdb-a", Kind: "PodDisruptionBudget", Name: "reco-a", Observed: true}}
	withRefusal := func(s string) string {
		return `cannot compose resources: cannot apply composed resource "pdb-a": ` + s
	}
	cases := map[string]struct {
		reason string
		asked  []compose.Asked
		synced string
		want   xpv2.ConditionReason
		words  []string
	}{
		"All":     {"everything exists", existing, "", v1alpha1.ReasonComposed, nil},
		"Waiting": {"one was just asked for", missing, "", v1alpha1.ReasonComposing, []string{`waiting for PodDisruptionBudget "reco-a"`}},
		"NotAllowed": {
			"the right is missing", missing, refused, v1alpha1.ReasonNotAllowedToCompose,
			[]string{`PodDisruptionBudget "reco-a"`, "cannot patch", "package/platform.yaml"},
		},
		"Quota": {
			"a quota refuses with the word forbidden, too, and no right would help", missing,
			withRefusal(`services "reco" is forbidden: exceeded quota: q`), v1alpha1.ReasonRefused,
			[]string{"exceeded quota", "Raise the quota"},
		},
		"Policy": {
			"a policy refuses", missing, withRefusal(`admission webhook "w" denied the request: no`), v1alpha1.ReasonRefused,
			[]string{"denied the request", "policy"},
		},
		"Takeover": {
			"an object of the name is somebody else's, and the policy says what to do", missing,
			withRefusal(`networkpolicies.networking.k8s.io "default-deny" is forbidden: ValidatingAdmissionPolicy 'capstan-takeover' ` +
				`with binding 'capstan-takeover' denied request: NetworkPolicy default-deny exists, and Algorithm default-deny did not make it: ` +
				`rename one of the two, or hand it over with the annotation capstan.dev/adopt=default-deny`), v1alpha1.ReasonRefused,
			[]string{`was refused: NetworkPolicy default-deny exists, and`, "capstan.dev/adopt=default-deny. Capstan tries again within a minute"},
		},
		"NoKind": {
			"the kind is not served", missing, withRefusal(`no matches for kind "X" in version "y"`), v1alpha1.ReasonRefused,
			[]string{"Install"},
		},
		"Other": {
			"anything else", missing, withRefusal("already exists."), v1alpha1.ReasonRefused,
			[]string{"already exists. Remove", "rename"},
		},
		"Invalid": {
			"Crossplane goes on after an invalid object, and names it in other words", existing,
			"Unsynced resources: pdb-a", v1alpha1.ReasonRefused,
			[]string{`PodDisruptionBudget "reco-a"`, "invalid", "events"},
		},
		"InvalidAmongOthers": {
			"the last of three is written with and", existing,
			"Unsynced resources: a, b, and pdb-a", v1alpha1.ReasonRefused,
			[]string{"PodDisruptionBudget"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr := composetest.Object{}
			if tc.synced != "" {
				xr["status"] = map[string]any{"conditions": []any{
					map[string]any{"type": "Synced", "status": "False", "message": tc.synced},
				}}
			}
			r := compose.Request{Now: now, Composite: xr}
			c := compose.Composed(r, tc.asked, compose.Withhold(r), true)
			if c.Reason != tc.want || (c.Status == corev1.ConditionTrue) != (tc.want == v1alpha1.ReasonComposed) {
				t.Errorf("%s\nComposed: got %s %s, want %s", tc.reason, c.Status, c.Reason, tc.want)
			}
			for _, w := range tc.words {
				if !strings.Contains(c.Message, w) {
					t.Errorf("%s\nmessage %q lacks %q", tc.reason, c.Message, w)
				}
			}
		})
	}
}

func TestComposedNotAccepted(t *testing.T) {
	cases := map[string]struct {
		reason   string
		observed map[string]compose.Object
		want     xpv2.Condition
	}{
		"Nothing": {
			reason: "Who waits for objects learns that none is made.",
			want: xpv2.Condition{
				Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonComposing, Message: "nothing is made until the spec is accepted",
			},
		},
		"Something": {
			reason:   "What exists is not touched, and nobody waits for more.",
			observed: map[string]compose.Object{"service": composetest.Object{}},
			want: xpv2.Condition{
				Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonComposed, Message: "what exists is kept as it is until the spec is accepted",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := compose.Request{Now: now, Composite: composetest.Object{}, Observed: tc.observed}
			tc.want.Type = v1alpha1.TypeComposed
			if diff := cmp.Diff(tc.want, compose.Composed(r, nil, compose.Withhold(r), false)); diff != "" {
				t.Errorf("%s\nComposed(…): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
