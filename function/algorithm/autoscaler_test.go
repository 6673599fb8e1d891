// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

const byLoad = "{image: x, scaling: {minReplicas: 2, maxReplicas: 9, signal: CPU}}"

// provided world: the provider is installed, and keeps autoscalers.
func (w *world) provided(a compose.Availability) {
	w.request.Kinds = maps.Clone(w.request.Kinds)
	w.request.Kinds[observev1alpha1.AutoscalerGroupVersionKind] = a
}

// takeOver what was composed directly, as the provider does: then another object controls it, and Crossplane observes it no more.
func (w *world) takeOver(slot string) {
	w.request.Observed = maps.Clone(w.request.Observed)
	delete(w.request.Observed, names.ComposedAutoscaler(slot))
}

// TestAutoscalerIsHandedOver shows that there is always something that scales, while the provider takes over what an earlier version
// composed, and that no plan leaves out what Crossplane observes: it would be deleted.
func TestAutoscalerIsHandedOver(t *testing.T) {
	const quiet, direct = "autoscaler-a", "hpa-a"
	w := serving(t, byLoad)
	scalers := func() string {
		t.Helper()
		p := w.plan()
		var all []string
		for _, name := range []string{quiet, direct} {
			if _, ok := p.Objects[name]; ok {
				all = append(all, name)
			} else if w.request.Observed[name] != nil {
				all = append(all, "-"+name)
			}
		}
		return strings.Join(all, " ")
	}
	steps := []struct {
		reason string
		do     func()
		want   string
	}{
		{"Without the provider it is composed directly.", func() {}, direct},
		{"While it is not known whether there is a provider, nothing changes.", func() { w.provided(compose.AvailabilityUnknown) }, direct},
		{"The provider's is asked for, and the one that scales stays.", func() { w.provided(compose.Available) }, quiet + " " + direct},
		{"As long as the provider takes.", func() { w.compose(w.plan()); w.later(time.Hour) }, quiet + " " + direct},
		{"An edit still reaches it.", func() { w.edit(strings.Replace(byLoad, "9", "12", 1)); w.compose(w.plan()) }, quiet + " " + direct},
		{"Then it is the provider's.", func() { w.takeOver(names.SlotA) }, quiet},
		{"And stays so.", func() { w.compose(w.plan()) }, quiet},
		{"Also where the provider goes.", func() { w.provided(compose.Unavailable) }, quiet},
		{"A spec that is refused keeps it.", func() { w.edit(strings.Replace(byLoad, "2", "20", 1)) }, quiet},
		{"Without scaling there is none.", func() { w.edit("{image: x}") }, "-" + quiet},
	}
	for _, s := range steps {
		s.do()
		if got := scalers(); got != s.want {
			t.Fatalf("%s want %q, got %q", s.reason, s.want, got)
		}
		if strings.Contains(s.reason, "An edit") {
			for _, at := range [][]string{{direct, "spec"}, {quiet, "spec", "forProvider", "autoscaler"}} {
				if n := compose.Number(w.request.Observed[at[0]].Map(), 0, append(at[1:], "maxReplicas")...); n != 12 {
					t.Errorf("%s want 12 replicas at most in %s, got %d", s.reason, at[0], n)
				}
			}
		}
	}
}

// TestAutoscalerIsTheSame shows that the provider gets what would be composed directly.
func TestAutoscalerIsTheSame(t *testing.T) {
	w := serving(t, byLoad)
	direct := object(t, w.plan(), "hpa-a")
	w.provided(compose.Available)
	w.takeOver(names.SlotA)
	quiet := object(t, w.plan(), "autoscaler-a")
	if diff := cmp.Diff(compose.Map(direct, "spec"), compose.Map(quiet, "spec", "forProvider", "autoscaler")); diff != "" {
		t.Errorf("-composed, +the provider's:\n%s", diff)
	}
	for _, field := range []string{"name", "labels"} {
		if diff := cmp.Diff(compose.Map(direct, "metadata")[field], compose.Map(quiet, "metadata")[field]); diff != "" {
			t.Errorf("metadata.%s: -composed, +the provider's:\n%s", field, diff)
		}
	}
}

// TestAutoscalerIsReported shows what an Autoscaler's status becomes.
func TestAutoscalerIsReported(t *testing.T) {
	failed := func(since time.Time) map[string]any {
		return map[string]any{
			"conditions": []any{map[string]any{"type": "Synced", "status": "True"}},
			"atProvider": map[string]any{"failure": map[string]any{
				"reason": "FailedGetResourceMetric", "message": "no metrics returned", "since": since.Format(time.RFC3339),
			}},
		}
	}
	refused := func(since time.Time) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{
			"type": "Synced", "status": "False", "message": "cannot apply", "lastTransitionTime": since.Format(time.RFC3339),
		}}}
	}
	cases := map[string]struct {
		reason  string
		status  map[string]any
		created time.Time
		want    string
	}{
		"Scales":      {"Nothing is wrong, and nothing to report.", map[string]any{"conditions": []any{map[string]any{"type": "Synced", "status": "True"}}}, now.Add(-time.Hour), ""},
		"Failing":     {"It has no metrics.", failed(now.Add(-time.Hour)), now.Add(-time.Hour), "no metrics returned: check the metrics server"},
		"FailingYet":  {"A new one has none at first.", failed(now.Add(-time.Second)), now.Add(-time.Hour), ""},
		"Refused":     {"The API server refuses it.", refused(now.Add(-time.Hour)), now.Add(-time.Hour), "cannot apply: see the conditions of Autoscaler reco-a"},
		"RefusedOnce": {"It is tried again.", refused(now.Add(-time.Second)), now.Add(-time.Hour), ""},
		"Unseen":      {"The provider is down.", nil, now.Add(-time.Hour), "the provider has not looked at it: see the conditions of Autoscaler reco-a"},
		"UnseenYet":   {"The provider will look.", nil, now.Add(-time.Second), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, byLoad)
			w.provided(compose.Available)
			w.compose(w.plan())
			w.change(names.Autoscaler(names.SlotA), func(o composetest.Object) {
				compose.Map(o, "metadata")["creationTimestamp"] = tc.created.Format(time.RFC3339)
				if tc.status != nil {
					o["status"] = tc.status
				}
			})
			c := condition(w.plan(), v1alpha1.TypeMetricsAvailable)
			if tc.want == "" && c.Type != "" || !strings.Contains(c.Message, tc.want) || tc.want != "" && c.Reason != v1alpha1.ReasonNotScaling {
				t.Errorf("\n%s\nwant %q, got %+v", tc.reason, tc.want, c)
			}
		})
	}
}
