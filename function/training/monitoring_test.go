// SPDX-License-Identifier: Apache-2.0

package training

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/scrape/scrapetest"
	"github.com/capstan-dev/capstan/function/training/names"
)

// What is scraped in each pod.
const (
	ofTheRun = `{port: state, path: /metrics, metricRelabelings: [
		{sourceLabels: [__name__], regex: capstan_training_.+, action: keep}, {regex: training_namespace, action: labeldrop}]}`
	labelled = `{sourceLabels: [__meta_kubernetes_pod_label_capstan_dev_training], targetLabel: training},
		{sourceLabels: [__meta_kubernetes_pod_label_capstan_dev_run], targetLabel: run},
		{sourceLabels: [__meta_kubernetes_pod_label_batch_kubernetes_io_job_completion_index], targetLabel: worker}`
)

// ofTheProgram is what is scraped on a port of the program.
func ofTheProgram(port, path string) string {
	return `{port: state, path: ` + path + `, metricRelabelings: [{sourceLabels: [__name__], regex: "capstan[_:].+", action: drop}], relabelings: [
		{sourceLabels: [__address__], regex: "(.+):\\d+", targetLabel: __address__, replacement: "$1:` + port + `"},
		{targetLabel: endpoint, replacement: metrics}, ` + labelled + `]}`
}

// TestMonitor shows which PodMonitor there is, and which ports the namespaces that scrape can reach.
func TestMonitor(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		metrics   string // added to the spec
		kind      compose.Availability
		namespace string // that scrapes, or empty for none
		endpoints string // none: no PodMonitor
		open      []any  // ports
	}{
		"NotWanted": {
			reason: "nothing is scraped that no one wants", kind: compose.Available, namespace: "monitoring", open: []any{"state"},
		},
		"OfTheRun": {
			reason: "the companion has metrics without a port of the program", metrics: `{metrics: {}}`, kind: compose.Available, namespace: "monitoring",
			endpoints: ofTheRun, open: []any{"state"},
		},
		"OfTheProgram": {
			reason: "the port is that of the program, and its series have labels", metrics: `{metrics: {port: 9090}}`, kind: compose.Available,
			namespace: "monitoring", endpoints: ofTheRun + ", " + ofTheProgram("9090", "/metrics"), open: []any{"state", float64(9090)},
		},
		"AtAPath": {
			reason: "a program chooses its path", metrics: `{metrics: {port: 9090, path: /internal/prometheus}}`, kind: compose.Available,
			namespace: "monitoring", endpoints: ofTheRun + ", " + ofTheProgram("9090", "/internal/prometheus"), open: []any{"state", float64(9090)},
		},
		"WithoutTheOperator": {
			reason: "another Prometheus can scrape, so the port is open", metrics: `{metrics: {port: 9090}}`, kind: compose.Unavailable,
			namespace: "monitoring", open: []any{"state", float64(9090)},
		},
		"NotYetKnown": {
			reason: "an object of a kind that the cluster may not have would end the pass", metrics: `{metrics: {port: 9090}}`,
			kind: compose.AvailabilityUnknown, namespace: "monitoring", open: []any{"state", float64(9090)},
		},
		"NoOneScrapes": {
			reason: "without namespaces that scrape no port is open to others", metrics: `{metrics: {port: 9090}}`, kind: compose.Available,
			endpoints: ofTheRun + ", " + ofTheProgram("9090", "/metrics"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usualSpec)
			w.podMonitors = tc.kind
			w.settings.Algorithm.MetricsNamespaces = nil
			if tc.namespace != "" {
				w.settings.Algorithm.MetricsNamespaces = []string{tc.namespace}
			}
			if tc.metrics != "" {
				w.edit(tc.metrics)
			}
			w.settle()

			var want map[string]any
			if tc.endpoints != "" {
				want = composetest.Parse(t, `{namespaceSelector: {}, selector: {matchLabels: {capstan.dev/training: fraud}}, podMetricsEndpoints: [`+tc.endpoints+`]}`)
			}
			var got map[string]any
			if o := w.Composed[names.Monitor]; o != nil {
				got = compose.Map(o.Map(), "spec")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: PodMonitor: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.open, composetest.Open(w.Composed[names.NetworkPolicy], "monitoring")); diff != "" {
				t.Errorf("%s: ports: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMonitorGoes shows that a PodMonitor goes with the field, and that neither restarts a run.
func TestMonitorGoes(t *testing.T) {
	w := newWorld(t, usualSpec)
	w.podMonitors = compose.Available
	w.settle()
	w.kubernetes(started)
	w.report(running)
	w.edit(`{metrics: {port: 9090}}`)
	w.settle()
	if w.Composed[names.Monitor] == nil {
		t.Error("want a PodMonitor of an active run, got none")
	}
	delete(w.spec, "metrics")
	w.settle()
	if w.Composed[names.Monitor] != nil || w.run() != 1 || w.phase() != v1alpha1.TrainingRunning {
		t.Errorf("want run 1 to continue without a PodMonitor, got run %d in phase %s, PodMonitor %v", w.run(), w.phase(), w.Composed[names.Monitor])
	}
}

// TestMetricsPorts shows which ports a program cannot have.
func TestMetricsPorts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, port, want string
	}{
		"Own":         {reason: "a port of the program", port: "9090", want: "True/Valid"},
		"Crew":        {reason: "what scrapes must not speak for a member of the crew", port: "7700", want: "False/InvalidSpec"},
		"State":       {reason: "it would be scraped twice", port: "7701", want: "False/InvalidSpec"},
		"FirstMaster": {reason: "what scrapes must not reach the ranks", port: "29400", want: "False/InvalidSpec"},
		"LastMaster":  {reason: "attempts use a hundred ports", port: "29499", want: "False/InvalidSpec"},
		"AfterMaster": {reason: "no more than a hundred", port: "29500", want: "True/Valid"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usualSpec)
			w.edit(`{metrics: {port: ` + tc.port + `}}`)
			w.settle()
			if diff := cmp.Diff(tc.want, w.condition(v1alpha1.TypeAccepted)); diff != "" {
				t.Errorf("%s: Accepted: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// relabelings of an endpoint of the PodMonitor, as Prometheus applies them.
func relabelings(t *testing.T, endpoint int, field string) []*relabel.Config {
	t.Helper()
	w := newWorld(t, usualSpec)
	w.podMonitors = compose.Available
	w.edit(`{metrics: {port: 9090}}`)
	w.settle()
	endpoints, _ := w.Composed[names.Monitor].Field("spec", "podMetricsEndpoints").([]any)
	if endpoint >= len(endpoints) {
		t.Fatalf("want endpoint %d, got %v", endpoint, endpoints)
	}
	raw, err := json.Marshal(endpoints[endpoint])
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &rules); err != nil {
		t.Fatal(err)
	}
	var written []monitoringv1.RelabelConfig
	if err := json.Unmarshal(rules[field], &written); err != nil {
		t.Fatal(err)
	}
	return scrapetest.Rules(written)
}

// TestTargetOfTheProgram lets Prometheus relabel targets as it finds them by the port of the state.
func TestTargetOfTheProgram(t *testing.T) {
	for name, tc := range map[string]struct{ reason, found, want string }{
		"IPv4": {reason: "only the port changes", found: "10.0.3.7:7701", want: "10.0.3.7:9090"},
		"IPv6": {reason: "an address of IPv6 keeps its brackets", found: "[fd00::7701:7]:7701", want: "[fd00::7701:7]:9090"},
	} {
		t.Run(name, func(t *testing.T) {
			target := labels.NewBuilder(labels.FromStrings(
				"__address__", tc.found, "endpoint", "state", "__meta_kubernetes_pod_label_capstan_dev_training", "fraud",
				"__meta_kubernetes_pod_label_capstan_dev_run", "3", "__meta_kubernetes_pod_label_batch_kubernetes_io_job_completion_index", "2"))
			relabel.ProcessBuilder(target, relabelings(t, 1, "relabelings")...)
			got := map[string]string{}
			for _, l := range []string{"__address__", "endpoint", "training", "run", "worker"} {
				got[l] = target.Get(l)
			}
			want := map[string]string{"__address__": tc.want, "endpoint": "metrics", "training": "fraud", "run": "3", "worker": "2"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestForgedSeries shows that no pod of a tenant has series which the rules for alerts take for the provider's. A pod can have the labels of
// a Training.
func TestForgedSeries(t *testing.T) {
	const ofTheState, ofTheProgram = 0, 1
	for name, tc := range map[string]struct {
		reason   string
		endpoint int
		series   labels.Labels
		want     string // empty: dropped
	}{
		"State":            {reason: "the companion's series are kept", endpoint: ofTheState, series: labels.FromStrings("__name__", "capstan_training_step", "run", "1"), want: `{__name__="capstan_training_step", run="1"}`},
		"OtherNamespace":   {reason: "alerts take the namespace from this label", endpoint: ofTheState, series: labels.FromStrings("__name__", "capstan_training_phase", "training_namespace", "ads"), want: `{__name__="capstan_training_phase"}`},
		"OtherKind":        {reason: "the companion of a Training has no such series", endpoint: ofTheState, series: labels.FromStrings("__name__", "capstan_stream_phase", "pipeline_namespace", "ads")},
		"Program":          {reason: "series of the program are kept", endpoint: ofTheProgram, series: labels.FromStrings("__name__", "batches_total"), want: `{__name__="batches_total"}`},
		"ProgramAsCapstan": {reason: "a program has no series of Capstan", endpoint: ofTheProgram, series: labels.FromStrings("__name__", "capstan_training_phase", "training_namespace", "ads")},
		"ProgramAsRule":    {reason: "nor recorded ones", endpoint: ofTheProgram, series: labels.FromStrings("__name__", "capstan:training_silent")},
	} {
		t.Run(name, func(t *testing.T) {
			series, got := labels.NewBuilder(tc.series), ""
			if relabel.ProcessBuilder(series, relabelings(t, tc.endpoint, "metricRelabelings")...) {
				got = series.Labels().String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
