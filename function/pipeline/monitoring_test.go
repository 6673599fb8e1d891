// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/pipeline/names"
)

// TestMonitor shows which PodMonitor there is, and which port the namespaces that scrape can reach.
func TestMonitor(t *testing.T) {
	endpoint := func(port, path string) string {
		return `{port: state, path: ` + path + `, metricRelabelings: [{sourceLabels: [__name__], regex: "capstan[_:].+", action: drop}], relabelings: [
			{sourceLabels: [__address__], regex: "(.+):\\d+", targetLabel: __address__, replacement: "$1:` + port + `"}, {targetLabel: endpoint, replacement: metrics},
			{sourceLabels: [__meta_kubernetes_pod_label_batch_kubernetes_io_job_completion_index], regex: "0", action: keep},
			{sourceLabels: [__meta_kubernetes_pod_label_capstan_dev_pipeline], targetLabel: pipeline},
			{sourceLabels: [__meta_kubernetes_pod_label_batch_kubernetes_io_job_name], targetLabel: run}]}`
	}
	for name, tc := range map[string]struct {
		reason    string
		spec      string
		metrics   string
		kind      compose.Availability
		scrapes   []string // namespaces
		endpoints string   // none: no PodMonitor
		open      []any
	}{
		"NotWanted":          {reason: "Nothing is scraped without the field.", spec: cronSpec, kind: compose.Available, scrapes: []string{"monitoring"}},
		"Program":            {reason: "The port of the program.", spec: cronSpec, metrics: `{port: 9090}`, kind: compose.Available, scrapes: []string{"monitoring"}, endpoints: endpoint("9090", "/metrics"), open: []any{float64(9090)}},
		"Spark":              {reason: "The driver has the metrics of all executors.", spec: sparkSpec, metrics: `{port: 4040, path: /metrics/executors/prometheus}`, kind: compose.Available, scrapes: []string{"monitoring"}, endpoints: endpoint("4040", "/metrics/executors/prometheus"), open: []any{float64(4040)}},
		"WithoutTheOperator": {reason: "Another Prometheus can scrape.", spec: streamSpec, metrics: `{port: 9090}`, kind: compose.Unavailable, scrapes: []string{"monitoring"}, open: []any{float64(9090)}},
		"NotYetKnown":        {reason: "An object of a kind that the cluster may not have would end the pass.", spec: byIDSpec, metrics: `{port: 9090}`, kind: compose.AvailabilityUnknown, scrapes: []string{"monitoring"}, open: []any{float64(9090)}},
		"NoOneScrapes":       {reason: "No port is open to others.", spec: byIDSpec, metrics: `{port: 9090}`, kind: compose.Available, endpoints: endpoint("9090", "/metrics")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			w.podMonitors, w.scrapes = tc.kind, tc.scrapes
			if tc.metrics != "" {
				w.edit(`{metrics: ` + tc.metrics + `}`)
			}
			w.settle()
			var got, want map[string]any
			if tc.endpoints != "" {
				want = composetest.Parse(t, `{namespaceSelector: {}, selector: {matchLabels: {capstan.dev/pipeline: daily}}, podMetricsEndpoints: [`+tc.endpoints+`]}`)
			}
			if o := w.Composed[names.Monitor]; o != nil {
				got = compose.Map(o.Map(), "spec")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s PodMonitor: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.open, composetest.Open(w.Composed[names.NetworkPolicy], "monitoring")); diff != "" {
				t.Errorf("%s ports: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMonitorGoes shows that a PodMonitor goes with the field, and that neither starts a stream again.
func TestMonitorGoes(t *testing.T) {
	w := newWorld(t, streamSpec)
	w.podMonitors = compose.Available
	w.edit(`{metrics: {port: 9090}}`)
	w.settle()
	there := w.Composed[names.Monitor] != nil
	w.edit(`{metrics: null}`)
	w.settle()
	if diff := cmp.Diff([]string{"daily-s1"}, w.jobs()); diff != "" || !there || w.Composed[names.Monitor] != nil {
		t.Errorf("the PodMonitor was there: %t, is there: %t, Jobs -want, +got:\n%s", there, w.Composed[names.Monitor] != nil, diff)
	}
}

// TestMetricsPorts shows which ports a program cannot have.
func TestMetricsPorts(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, port, want string }{
		"Own":       {reason: "A port of the program.", spec: cronSpec, port: "7077", want: "True/Valid"},
		"State":     {reason: "The provider asks there.", spec: cronSpec, port: "7701", want: "False/InvalidSpec"},
		"Master":    {reason: "The master of Spark listens there.", spec: sparkSpec, port: "7077", want: "False/InvalidSpec"},
		"Driver":    {reason: "Spark's own page has metrics.", spec: sparkSpec, port: "4040", want: "True/Valid"},
		"Rest":      {reason: "It cancels jobs.", spec: flinkSpec, port: "8081", want: "False/InvalidSpec"},
		"FirstRPC":  {reason: "Each revision has a port.", spec: flinkSpec, port: "6200", want: "False/InvalidSpec"},
		"LastRPC":   {reason: "A hundred of them.", spec: flinkSpec, port: "6299", want: "False/InvalidSpec"},
		"AfterRPC":  {reason: "No more than a hundred.", spec: flinkSpec, port: "6300", want: "True/Valid"},
		"Reporters": {reason: "The usual port of Flink's reporter.", spec: flinkSpec, port: "9249", want: "True/Valid"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			w.edit(`{metrics: {port: ` + tc.port + `}}`)
			w.plan = w.ask()
			if diff := cmp.Diff(tc.want, w.condition(v1alpha1.TypeAccepted)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
