// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"testing"

	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
)

// TestObjectsComeTogether: an object that comes or goes alone is another generation of the Algorithm, and a change of the Analysis has an
// answer of the provider. So both change with what they belong to. What a share of requests needs comes with the share.
func TestObjectsComeTogether(t *testing.T) {
	const spec = "{image: %s, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {canaryWeight: 20}}"
	w := serving(t, fmt.Sprintf(spec, "x"))
	w.settle()
	w.settle()
	route := ledgerText(w.request.Observed[names.Route])
	w.edit(fmt.Sprintf(spec, "z"))
	steps := []struct {
		reason, standing string
		tries            bool
		divides          bool
	}{
		{"The candidate has no budget, which would change with each pod, and is not pinned: no request reaches it.", "Preparing", true, false},
		{"Its share is not in force yet: the trial stays.", "Stepping/Applying", true, true},
		{"Evidence takes the place of the trial.", "Stepping/Soaking", false, true},
	}
	for _, s := range steps {
		p := w.plan()
		if got := standsAt(t, p); got != s.standing && rolloutOf(t, p).Phase != "Preparing" {
			t.Fatalf("%s want %s, got %s", s.reason, s.standing, got)
		}
		if object(t, p, names.Deployment(names.SlotB)) == nil {
			t.Errorf("%s its Deployment should be there", s.reason)
		}
		pinned := object(t, p, names.RevisionPrefix+rolloutOf(t, p).Candidate)
		if budget := object(t, p, names.Budget(names.SlotB)); (budget != nil) != s.divides || (pinned != nil) != s.divides {
			t.Errorf("%s budget and pinned revision: got %t and %t", s.reason, budget != nil, pinned != nil)
		}
		trial := compose.List(object(t, p, names.Analysis), "spec", "forProvider", "metrics", "trial")
		if tries := len(trial) > 0; tries != s.tries {
			t.Errorf("%s tried: got %t", s.reason, tries)
		}
		if divides := ledgerText(object(t, p, names.Route)) != route; divides != s.divides {
			t.Errorf("%s the route has another ledger: got %t", s.reason, divides)
		}
		w.settle()
	}
}
