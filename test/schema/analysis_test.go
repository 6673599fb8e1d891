// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const analysisCRD = "package/provider/crds/observe.capstan.dev_analyses.yaml"

// analysis with these parameters besides the Algorithm.
func analysis(t *testing.T, parameters string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(parameters), &values); err != nil {
		t.Fatalf("bad YAML in a test: %v", err)
	}
	values["algorithm"] = "reco"
	return map[string]any{
		"apiVersion": "observe.capstan.dev/v1alpha1",
		"kind":       "Analysis",
		"metadata":   map[string]any{"name": "reco", "namespace": "shop"},
		"spec":       map[string]any{"forProvider": whole(values)},
	}
}

func TestAnalysisAccepted(t *testing.T) {
	a := newAdmission(t, readCRD(t, analysisCRD))
	secrets := make([]string, 17)
	for i := range secrets {
		secrets[i] = fmt.Sprintf("secret-%d", i)
	}
	cases := map[string]struct {
		reason     string
		parameters string
	}{
		"Smallest":  {reason: "The Algorithm is enough.", parameters: `{}`},
		"Secrets":   {reason: "As many as an Algorithm may have, with that of its model.", parameters: `secrets: [` + strings.Join(secrets, ", ") + `]`},
		"Slots":     {reason: "Metrics of two slots.", parameters: `metrics: {slots: [a, b]}`},
		"Intervals": {reason: "From ten seconds to hours.", parameters: `metrics: {slots: [a], interval: 10s, window: 6h}`},
		"Checks": {reason: "Each kind, with the bounds that it has.", parameters: `
metrics:
  slots: [a]
  checks:
  - {name: success, kind: SuccessRatio, min: 0.99}
  - {name: p50, kind: Latency, percentile: 50, max: 50}
  - {name: p99, kind: Latency, percentile: 99, min: 0, max: 500.5}
  - {name: rate, kind: RequestRate}
  - {name: in-flight-1, kind: InFlight, max: 0}
  - {name: queue, kind: Query, query: "avg(queue_length)", min: -1, max: -1}`},
		"DataDrift": {reason: "The live slot and what it told before.", parameters: `metrics: {slots: [a], checks: [{name: d, kind: Drift, query: q, max: 0.2, reference: 720h}]}`},
		"Canary": {reason: "A revision that is tried, beside the one before it.", parameters: `
metrics:
  slots: [a, b]
  canary:
    epoch: 41
    slot: b
    baseline: a
    settle: 0s
    minSamples: 1
    checks:
    - {name: success, kind: SuccessRatio, min: 0.99}
    - {name: success-against-baseline, kind: SuccessRatio, relativeTo: Baseline}
    - {name: latency, kind: Latency, max: 50}
    - {name: latency-against-baseline, kind: Latency, max: 1.1, relativeTo: Baseline}
    - {name: drift, kind: Drift, query: q, method: KS, max: 0.1, relativeTo: Baseline}
    - {name: revenue, kind: Query, query: "sum(revenue)", min: 0.98, relativeTo: Baseline}`},
		"Baking":    {reason: "All callers reach it, and nothing is beside it.", parameters: `metrics: {slots: [b], canary: {epoch: 42, slot: b, checks: [{name: success, kind: SuccessRatio, min: 0.99}]}}`},
		"Queries":   {reason: "Queries of one's own.", parameters: `metrics: {slots: [a], queries: {requests: r, failures: f, latency: l, inFlight: i}}`},
		"Scaling":   {reason: "A target to learn from.", parameters: `metrics: {slots: [a], scaling: {slot: a, targetLatencyMs: 50, percentile: 99}}`},
		"Given":     {reason: "A load that is asked for.", parameters: `metrics: {slots: [a], scaling: {slot: a, signal: InFlight, perReplica: 0.001}}`},
		"LoadQuery": {reason: "A load of one's own.", parameters: `metrics: {slots: [a], scaling: {slot: a, signal: Query, query: "sum(queue_length)", perReplica: 6}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, errs := a.create(t, analysis(t, tc.parameters)); len(errs) > 0 {
				t.Errorf("\n%s\ncreate(...): %s", tc.reason, strings.Join(errs, "\n"))
			}
		})
	}
}

func TestAnalysisRefused(t *testing.T) {
	a := newAdmission(t, readCRD(t, analysisCRD))
	check := func(c string) string { return `metrics: {slots: [a], checks: [` + c + `]}` }
	scaling := func(s string) string { return `metrics: {slots: [a], scaling: {slot: a, ` + s + `}}` }
	canary := func(c string) string { return `metrics: {slots: [a, b], canary: {` + c + `}}` }
	tooMany := make([]string, 25)
	for i := range tooMany {
		tooMany[i] = fmt.Sprintf(`{name: c%d, kind: RequestRate}`, i)
	}
	cases := map[string]struct {
		reason     string
		parameters string
		want       string
	}{
		"NoSlot":         {reason: "Metrics are those of a slot.", parameters: `metrics: {slots: []}`, want: "spec.forProvider.metrics.slots: Invalid value"},
		"ThreeSlots":     {reason: "There are two.", parameters: `metrics: {slots: [a, b, c]}`, want: "must have at most 2 items"},
		"SlotTwice":      {reason: "Each once.", parameters: `metrics: {slots: [a, a]}`, want: "Duplicate value"},
		"IntervalShort":  {reason: "A look each second would be a load.", parameters: `metrics: {slots: [a], interval: 9s}`, want: "must be from 10s to 1h"},
		"IntervalLong":   {reason: "One a day is none.", parameters: `metrics: {slots: [a], interval: 25h}`, want: "must be from 10s to 1h"},
		"WindowShort":    {reason: "It must hold scrapes.", parameters: `metrics: {slots: [a], window: 19s}`, want: "must be from 20s to 6h"},
		"WindowLong":     {reason: "It must be about now.", parameters: `metrics: {slots: [a], window: 7h}`, want: "must be from 20s to 6h"},
		"QueryLong":      {reason: "A query is short.", parameters: `metrics: {slots: [a], queries: {requests: ` + strings.Repeat("a", 2049) + `}}`, want: "may not be more than 2048"},
		"SecretsMany":    {reason: "Each is a watch.", parameters: `secrets: [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, s17]`, want: "must have at most 17 items"},
		"SecretName":     {reason: "A name is no path.", parameters: `secrets: [../x]`, want: "must be names of Secrets"},
		"SecretTwice":    {reason: "Each once.", parameters: `secrets: [a, a]`, want: "Duplicate value"},
		"ChecksMany":     {reason: "Status has room for forty-eight.", parameters: `metrics: {slots: [a], checks: [` + strings.Join(tooMany, ", ") + `]}`, want: "must have at most 24 items"},
		"CheckTwice":     {reason: "A name is a check.", parameters: check(`{name: a, kind: RequestRate}, {name: a, kind: InFlight}`), want: "Duplicate value"},
		"CheckName":      {reason: "A name is a label.", parameters: check(`{name: A_b, kind: RequestRate}`), want: "must be lower case letters, digits and '-', start with a letter and end with a letter or digit"},
		"CheckKind":      {reason: "Of kinds there are eleven.", parameters: check(`{name: a, kind: Errors}`), want: `Unsupported value: "Errors"`},
		"DriftOfWhat":    {reason: "A distribution is asked for.", parameters: check(`{name: a, kind: Drift, max: 0.2, reference: 24h}`), want: "query is required for the kinds Query and Drift, and only for them"},
		"DriftAlone":     {reason: "A distance is one of two.", parameters: check(`{name: a, kind: Drift, query: q, max: 0.2}`), want: "relativeTo, reference: kind Drift needs one of them to compare with"},
		"DriftOfThree":   {reason: "A distance is one of two.", parameters: check(`{name: a, kind: Drift, query: q, max: 0.2, reference: 24h, relativeTo: Baseline}`), want: "relativeTo, reference: kind Drift needs one of them to compare with"},
		"DriftBoundless": {reason: "Any distance would pass.", parameters: check(`{name: a, kind: Drift, query: q, reference: 24h}`), want: "min, max: set at least one, otherwise nothing is checked"},
		"DriftMethod":    {reason: "Of methods there are two.", parameters: check(`{name: a, kind: Drift, query: q, max: 1, reference: 24h, method: JS}`), want: `Unsupported value: "JS"`},
		"PastOfLatency":  {reason: "Only a distribution has one.", parameters: check(`{name: a, kind: Latency, max: 1, reference: 24h}`), want: "reference is only for kind Drift: remove it"},
		"PastIsNow":      {reason: "It would be compared with itself.", parameters: check(`{name: a, kind: Drift, query: q, max: 1, reference: 59s}`), want: "must be from 1m to 720h"},
		"PastIsGone":     {reason: "Few keep metrics for as long.", parameters: check(`{name: a, kind: Drift, query: q, max: 1, reference: 721h}`), want: "must be from 1m to 720h"},
		"RelativeTo":     {reason: "Only the revision before is beside it.", parameters: check(`{name: a, kind: Latency, max: 1, relativeTo: Yesterday}`), want: `Unsupported value: "Yesterday"`},
		"ShareAlone":     {reason: "Without a bound or a baseline there is nothing to check.", parameters: check(`{name: a, kind: SuccessRatio}`), want: "min, max: set at least one, otherwise nothing is checked"},
		"CanaryEpoch":    {reason: "Epochs are counted from one.", parameters: canary(`epoch: 0, slot: b, checks: [{name: a, kind: Latency, max: 1}]`), want: "greater than or equal to 1"},
		"CanarySlot":     {reason: "Whose evidence?", parameters: canary(`epoch: 1, checks: [{name: a, kind: Latency, max: 1}]`), want: "canary.slot: Required value"},
		"CanaryNothing":  {reason: "Nothing is no evidence.", parameters: canary(`epoch: 1, slot: b, checks: []`), want: "should have at least 1 items"},
		"CanaryMany":     {reason: "Sixteen of one's own, and ours.", parameters: canary(`epoch: 1, slot: b, checks: [` + strings.Join(tooMany, ", ") + `]`), want: "must have at most 24 items"},
		"CanarySettle":   {reason: "It would never begin.", parameters: canary(`epoch: 1, slot: b, settle: 2h, checks: [{name: a, kind: Latency, max: 1}]`), want: "must be at most 1h"},
		"CanarySamples":  {reason: "Nothing is no evidence.", parameters: canary(`epoch: 1, slot: b, minSamples: 0, checks: [{name: a, kind: Latency, max: 1}]`), want: "greater than or equal to 1"},
		"Boundless":      {reason: "Without a bound there is nothing to check.", parameters: check(`{name: a, kind: Latency}`), want: "min, max: set at least one, otherwise nothing is checked"},
		"Crossed":        {reason: "Nothing is within these.", parameters: check(`{name: a, kind: InFlight, min: 2, max: 1}`), want: "min must not be above max: lower min or raise max"},
		"QueryMissing":   {reason: "Kind Query compares one.", parameters: check(`{name: a, kind: Query, max: 1}`), want: "query is required for the kinds Query and Drift, and only for them"},
		"QueryElsewhere": {reason: "And no other does.", parameters: check(`{name: a, kind: Latency, max: 1, query: q}`), want: "query is required for the kinds Query and Drift, and only for them"},
		"ShareMin":       {reason: "More than all cannot succeed.", parameters: check(`{name: a, kind: SuccessRatio, min: 99}`), want: "min, max: must be from 0 to 1 for kind SuccessRatio"},
		"ShareMax":       {reason: "Nor less than none.", parameters: check(`{name: a, kind: SuccessRatio, max: -0.1}`), want: "min, max: must be from 0 to 1 for kind SuccessRatio"},
		"Percentile":     {reason: "Those that are recorded.", parameters: check(`{name: a, kind: Latency, max: 1, percentile: 75}`), want: "Unsupported value: 75"},
		"ScalePercent":   {reason: "There, too.", parameters: scaling(`percentile: 1`), want: "Unsupported value: 1"},
		"Signal":         {reason: "Of signals there are five.", parameters: scaling(`signal: Latency`), want: `Unsupported value: "Latency"`},
		"LoadMissing":    {reason: "Signal Query has one.", parameters: scaling(`signal: Query`), want: "query is required for signal Query, and only for it"},
		"LoadElsewhere":  {reason: "And no other does.", parameters: scaling(`signal: CPU, query: q`), want: "query is required for signal Query, and only for it"},
		"LoadByDefault":  {reason: "The default is no query either.", parameters: scaling(`query: q`), want: "query is required for signal Query, and only for it"},
		"PerReplica":     {reason: "A replica bears something.", parameters: scaling(`signal: InFlight, perReplica: 0`), want: "must be at least 0.001"},
		"TargetZero":     {reason: "Nothing takes no time.", parameters: scaling(`targetLatencyMs: 0`), want: "greater than or equal to 1"},
		"TargetLong":     {reason: "An hour is long.", parameters: scaling(`targetLatencyMs: 3600001`), want: "less than or equal to 3600000"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, analysis(t, tc.parameters))
			if all := strings.Join(errs, "\n"); !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want an error with %q, got %q", tc.reason, tc.want, all)
			}
		})
	}
}

func TestAnalysisConfigRefused(t *testing.T) {
	a := newAdmission(t, readCRD(t, analysisCRD))
	for want, ref := range map[string]map[string]any{
		"providerConfigRef.kind: Secret is neither ProviderConfig nor ClusterProviderConfig": {"kind": "Secret", "name": "prometheus"},
		"providerConfigRef.name: ../x is not the name of a config":                           {"kind": "ProviderConfig", "name": "../x"},
	} {
		o := analysis(t, `{}`)
		o["spec"].(map[string]any)["providerConfigRef"] = ref
		if _, errs := a.create(t, o); !strings.Contains(strings.Join(errs, "\n"), want) {
			t.Errorf("create(...): want an error with %q, got %q", want, errs)
		}
	}
}

// TestAnalysisDefaults shows what is measured when little is said.
func TestAnalysisDefaults(t *testing.T) {
	a := newAdmission(t, readCRD(t, analysisCRD))
	got, errs := a.create(t, analysis(t, `metrics: {slots: [a], checks: [{name: p, kind: Latency, max: 5}], scaling: {slot: a}, canary: {epoch: 1, slot: b, checks: [{name: q, kind: Query, query: q, max: 5}]}}`))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := runtime.DeepCopyJSON(map[string]any{
		"managementPolicies": []any{"Observe"},
		"providerConfigRef":  map[string]any{"kind": "ClusterProviderConfig", "name": "prometheus"},
		"forProvider": map[string]any{
			"algorithm": "reco", "container": "algorithm",
			"metrics": map[string]any{
				"slots": []any{"a"}, "interval": "30s", "window": "2m",
				"checks": []any{map[string]any{"name": "p", "kind": "Latency", "percentile": int64(95), "method": "PSI", "max": int64(5)}},
				"canary": map[string]any{
					"epoch": int64(1), "slot": "b", "settle": "30s", "minSamples": int64(100),
					"checks": []any{map[string]any{"name": "q", "kind": "Query", "query": "q", "percentile": int64(95), "method": "PSI", "max": int64(5)}},
				},
				"scaling": map[string]any{"slot": "a", "signal": "Auto", "percentile": int64(95)},
			},
		},
	})
	if diff := cmp.Diff(want, got["spec"]); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
