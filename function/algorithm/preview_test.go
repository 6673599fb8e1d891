// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// TestPreview shows where a candidate can be tried, from its first replica until all requests reach it.
func TestPreview(t *testing.T) {
	const (
		green = "{image: %, replicas: 2, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {canaryWeight: 100, approval: BeforePromotion, bake: 10m}@}"
		here  = "http://reco-slot-b.shop.svc"
	)
	spec := func(image, acts string) string {
		return strings.NewReplacer("%", image, "@", acts).Replace(green)
	}
	w := serving(t, spec("x", ""))
	w.accept()
	expect := func(reason, phase, preview string) {
		t.Helper()
		r := rolloutOf(t, w.plan())
		if got := string(r.Phase) + "/" + r.Reason; !strings.HasPrefix(got, phase) || r.PreviewURL != preview {
			t.Errorf("%s: want %s and preview %q, got %s and %q: %s", reason, phase, preview, got, r.PreviewURL, r.Message)
		}
	}
	expect("without a candidate there is none", "Stable", "")
	w.edit(spec("z", ""))
	expect("its address comes with its first objects", "Preparing", here)
	for range 4 {
		w.settle()
	}
	expect("the candidate waits at weight 0, and can be tried", "Holding/AwaitingApproval", here)
	if got := scene(t, w.plan()); !strings.Contains(got, "callers=a reco-slot-a:100 reco-slot-b:0") {
		t.Errorf("no request should reach it before, got %s", got)
	}
	deployed := w.request.Observed[names.Deployment(names.SlotB)]
	delete(w.request.Observed, names.SlotService(names.SlotB))
	expect("an address needs its Service", "Holding/AwaitingApproval", "")
	w.settle()
	w.request.Observed[names.Deployment(names.SlotB)] = deployed
	w.edit(spec("z", ", rollout: {approve: ["+rolloutOf(t, w.plan()).Candidate+"]}"))
	for range 4 {
		w.settle()
	}
	expect("after promotion it is the Service's", "Baking", "")
}
