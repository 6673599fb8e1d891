// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/pipeline/flink/names"
)

// TestMonitor shows which PodMonitor there is, and which ports the namespaces that scrape can reach. None of it begins a revision.
func TestMonitor(t *testing.T) {
	const (
		labelled = `{sourceLabels: [__meta_kubernetes_pod_label_capstan_dev_pipeline], targetLabel: pipeline},
			{sourceLabels: [__meta_kubernetes_pod_label_capstan_dev_stream_revision], targetLabel: revision}`
		ofTheStream = `{port: state, path: /metrics, relabelings: [` + labelled + `], metricRelabelings: [
			{sourceLabels: [__name__], regex: capstan_stream_.+, action: keep}, {regex: pipeline_namespace, action: labeldrop}]}`
		ofFlink = `{path: /metrics, metricRelabelings: [{sourceLabels: [__name__], regex: "capstan[_:].+", action: drop}], relabelings: [
			{sourceLabels: [__meta_kubernetes_pod_container_init], regex: "true", action: drop},
			{sourceLabels: [__meta_kubernetes_pod_ip], regex: "([^:]+)", targetLabel: __address__, replacement: "$1:9249"},
			{sourceLabels: [__meta_kubernetes_pod_ip], regex: "(.+:.+)", targetLabel: __address__, replacement: "[$1]:9249"},
			{targetLabel: endpoint, replacement: metrics}, ` + labelled + `,
			{sourceLabels: [__meta_kubernetes_pod_label_capstan_dev_stream_role], targetLabel: role}]}`
	)
	for name, tc := range map[string]struct {
		reason, metrics string
		kind            compose.Availability
		endpoints       string
		open            []any
	}{
		"NotWanted":          {reason: "The port of the state is open without the field.", metrics: `null`, kind: compose.Available, open: []any{float64(7701)}},
		"Stream":             {reason: "The companion has metrics of its own.", metrics: `{}`, kind: compose.Available, endpoints: ofTheStream, open: []any{float64(7701)}},
		"Flink":              {reason: "Each pod of Flink serves its own.", metrics: `{port: 9249}`, kind: compose.Available, endpoints: ofTheStream + `, ` + ofFlink, open: []any{float64(7701), float64(9249)}},
		"WithoutTheOperator": {reason: "Another Prometheus can scrape.", metrics: `{port: 9249}`, kind: compose.Unavailable, open: []any{float64(7701), float64(9249)}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, usualSpec)
			w.podMonitors = tc.kind
			w.settle()
			w.edit(`{metrics: ` + tc.metrics + `}`)
			w.settle()
			var got, want map[string]any
			if tc.endpoints != "" {
				want = composetest.Parse(t, `{namespaceSelector: {}, selector: {matchLabels: {capstan.dev/pipeline: clicks}}, podMetricsEndpoints: [`+tc.endpoints+`]}`)
			}
			if o := w.composed[names.Monitor]; o != nil {
				got = compose.Map(o.Map(), "spec")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s PodMonitor: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.open, composetest.Open(w.composed[names.NetworkPolicy], "monitoring")); diff != "" {
				t.Errorf("%s ports: -want, +got:\n%s", tc.reason, diff)
			}
			if r := w.stream().Revision; r != 1 {
				t.Errorf("%s want revision 1, got %d", tc.reason, r)
			}
		})
	}
}
