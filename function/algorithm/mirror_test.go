// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

const mirroring = "{image: %s, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, " +
	"lifecycle: {steps: [10, 50], soak: 1m, bake: 10m, mirrorPercent: 100%s}}"

// offers features by the class of the Gateway.
func (w *world) offers(features ...any) *world {
	w.request.Required = map[string]compose.Object{
		requiredGateway:      composetest.Object{"spec": map[string]any{"gatewayClassName": "public"}},
		requiredGatewayClass: composetest.Object{"status": map[string]any{"supportedFeatures": features}},
	}
	return w
}

func feature(name string) map[string]any { return map[string]any{"name": name} }

// mirroredTo is the Service that a plan's route copies requests to, and the percent.
func mirroredTo(tb testing.TB, p *compose.Plan) string {
	tb.Helper()
	rules := compose.List(object(tb, p, names.Route), "spec", "rules")
	filters := compose.List(rules[len(rules)-1].(map[string]any), "filters")
	if len(filters) == 0 {
		return ""
	}
	m := compose.Map(filters[0].(map[string]any), "requestMirror")
	return fmt.Sprintf("%s %d", compose.Text(m, "backendRef", "name"), compose.Number(m, 100, "percent"))
}

// TestMirror copies requests to a revision before any caller meets it.
func TestMirror(t *testing.T) {
	const all, some = "HTTPRouteRequestMirror", "HTTPRouteRequestPercentageMirror"
	cases := map[string]struct {
		reason   string
		features []any
		spec     string
		do       func(w *world)
		want     string
		mirrored string
	}{
		"Copies":     {"The Gateway offers it.", []any{feature(all)}, mirroring, nil, "Mirroring", "reco-slot-b 100"},
		"Texts":      {"So did Gateways of before.", []any{all}, mirroring, nil, "Mirroring", "reco-slot-b 100"},
		"Some":       {"It can copy some of them.", []any{feature(all), feature(some)}, strings.Replace(mirroring, "mirrorPercent: 100", "mirrorPercent: 25", 1), nil, "Mirroring", "reco-slot-b 25"},
		"AllOrNone":  {"More than was asked for would be too many.", []any{feature(all)}, strings.Replace(mirroring, "mirrorPercent: 100", "mirrorPercent: 25", 1), nil, "Holding/MirrorNotOffered", ""},
		"NotOffered": {"A filter that the Gateway does not know would take the whole route down.", []any{feature("HTTPRouteHostRewrite")}, mirroring, nil, "Holding/MirrorNotOffered", ""},
		"TooEarly": {"It has passed, and it has not lasted long enough.", []any{feature(all)}, mirroring, func(w *world) {
			w.judge("PPP")
		}, "Mirroring", "reco-slot-b 100"},
		"Passed": {"The first callers meet it.", []any{feature(all)}, mirroring, func(w *world) {
			w.later(3 * time.Minute)
			w.judge("PPP")
		}, "Stepping/Applying", ""},
		"PassedByStep": {"The first step needs nobody's agreement.", []any{feature(all)}, strings.Replace(mirroring, "%s}}", ", approval: EveryStep%s}}", 1), func(w *world) {
			w.later(3 * time.Minute)
			w.judge("PPP")
		}, "Stepping/Applying", ""},
		"Unknown": {"Too little is known, and nobody has met it.", []any{feature(all)}, mirroring, func(w *world) {
			w.later(2 * time.Hour)
			w.judge("III")
		}, "Holding/Inconclusive", "reco-slot-b 100"},
		"Failed": {"It fails, and no caller has met it.", []any{feature(all)}, mirroring, func(w *world) {
			w.judge("PFF")
		}, "RollingBack/MetricFailed", ""},
		"Lost": {"The Gateway does not offer it any more.", []any{feature(all)}, mirroring, func(w *world) {
			w.offers(feature("HTTPRouteHostRewrite"))
		}, "RollingBack/MirrorNotOffered", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, fmt.Sprintf(tc.spec, "x", "")).offers(tc.features...)
			w.settle()
			w.edit(fmt.Sprintf(tc.spec, "z", ""))
			for range 5 {
				if text := callersOf(t, w.plan()); text != "reco-slot-a:100 reco-slot-b:0" {
					t.Fatalf("no caller should meet it, got %s", text)
				}
				w.settle()
			}
			if tc.do != nil {
				tc.do(w)
			}
			p := w.plan()
			if diff := cmp.Diff([]string{tc.want, tc.mirrored}, []string{standsAt(t, p), mirroredTo(t, p)}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, rolloutOf(t, p).Message)
			}
			if want := 2; len(p.Requires) != want || p.Requires[requiredGatewayClass].Name != "public" {
				t.Errorf("the Gateway and its class are asked for in each pass, got %v", p.Requires)
			}
		})
	}
}

// TestMirrorPromoted goes on without evidence, and back to the beginning when the name is taken away before the candidate is
// large enough.
func TestMirrorPromoted(t *testing.T) {
	w := serving(t, fmt.Sprintf(strings.Replace(mirroring, "replicas: 4", "replicas: 9", 1), "x", "")).offers(feature("HTTPRouteRequestMirror"))
	spec := strings.Replace(mirroring, "replicas: 4", "replicas: 9", 1)
	w.settle()
	w.edit(fmt.Sprintf(spec, "z", ""))
	for range 5 {
		w.settle()
	}
	candidate := rolloutOf(t, w.plan()).Candidate
	w.edit(fmt.Sprintf(spec, "z", acts("promote: "+candidate)))
	if r := rolloutOf(t, w.plan()); r.LastDecision.Reason != string(v1alpha1.ReasonPromoted) {
		t.Errorf("somebody is sure of it, got %s: %s", r.Phase, r.Message)
	}
}

// TestMirrorNotAsked requires nothing that Crossplane would need rights for.
func TestMirrorNotAsked(t *testing.T) {
	w := serving(t, "{image: x, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {}}")
	if p := w.plan(); len(p.Requires) != 0 {
		t.Errorf("nobody asks for copies, and %v is required", p.Requires)
	}
}
