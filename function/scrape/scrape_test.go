// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/capstan-dev/capstan/function/scrape/scrapetest"
)

// TestTargets lets Prometheus relabel targets as it finds them.
func TestTargets(t *testing.T) {
	label := Label("capstan_dev_pipeline", "pipeline")
	byPort, each := Program("state", 9090, "/metrics", label), AnyProgram(9249, "/metrics", label)
	const daily = `, endpoint="metrics", pipeline="daily"}`
	cases := map[string]struct {
		reason              string
		by                  monitoringv1.PodMetricsEndpoint
		address, ip, isInit string
		want                string // empty: no target
	}{
		"IPv4":        {reason: "Only the port changes.", by: byPort, address: "10.0.3.7:7701", want: `{__address__="10.0.3.7:9090"` + daily},
		"IPv6":        {reason: "An address of IPv6 keeps its brackets.", by: byPort, address: "[fd00::7701:7]:7701", want: `{__address__="[fd00::7701:7]:9090"` + daily},
		"PortOrNot":   {reason: "A container with a port is a target.", by: each, address: "10.0.3.7:7701", ip: "10.0.3.7", isInit: "false", want: `{__address__="10.0.3.7:9249"` + daily},
		"NoPort":      {reason: "So is one without.", by: each, address: "10.0.3.7", ip: "10.0.3.7", isInit: "false", want: `{__address__="10.0.3.7:9249"` + daily},
		"NoPortIPv6":  {reason: "An address of IPv6 gets brackets.", by: each, address: "fd00::7", ip: "fd00::7", isInit: "false", want: `{__address__="[fd00::7]:9249"` + daily},
		"Preparation": {reason: "It has ended, and its pod would be scraped twice.", by: each, address: "10.0.3.7", ip: "10.0.3.7", isInit: "true"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			target := labels.NewBuilder(labels.FromStrings(
				"__address__", tc.address, "endpoint", "state", "__meta_kubernetes_pod_ip", tc.ip,
				"__meta_kubernetes_pod_container_init", tc.isInit, "__meta_kubernetes_pod_label_capstan_dev_pipeline", "daily"))
			got := ""
			if relabel.ProcessBuilder(target, scrapetest.Rules(tc.by.RelabelConfigs)...) {
				target.Del("__meta_kubernetes_pod_ip", "__meta_kubernetes_pod_container_init", "__meta_kubernetes_pod_label_capstan_dev_pipeline")
				got = target.Labels().String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestForgedSeries: no pod of a tenant has series which the rules for alerts take for the provider's.
func TestForgedSeries(t *testing.T) {
	state := State("state", "/metrics", "capstan_stream_", "pipeline_namespace")
	program, each := Program("state", 9090, "/metrics"), AnyProgram(9090, "/metrics")
	cases := map[string]struct {
		reason string
		by     monitoringv1.PodMetricsEndpoint
		series labels.Labels
		want   string // empty: dropped
	}{
		"State":          {reason: "The companion's series are kept.", by: state, series: labels.FromStrings("__name__", "capstan_stream_running"), want: `{__name__="capstan_stream_running"}`},
		"OtherNamespace": {reason: "Alerts take the namespace from this label.", by: state, series: labels.FromStrings("__name__", "capstan_stream_phase", "pipeline_namespace", "ads"), want: `{__name__="capstan_stream_phase"}`},
		"OtherKind":      {reason: "The companion of a stream has no such series.", by: state, series: labels.FromStrings("__name__", "capstan_training_phase", "training_namespace", "ads")},
		"Program":        {reason: "Series of the program are kept.", by: program, series: labels.FromStrings("__name__", "rows_total"), want: `{__name__="rows_total"}`},
		"AsCapstan":      {reason: "A program has no series of Capstan.", by: program, series: labels.FromStrings("__name__", "capstan_pipeline_phase", "pipeline_namespace", "ads")},
		"AsRule":         {reason: "Nor recorded ones.", by: each, series: labels.FromStrings("__name__", "capstan:pipeline_phase")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			series, got := labels.NewBuilder(tc.series), ""
			if relabel.ProcessBuilder(series, scrapetest.Rules(tc.by.MetricRelabelConfigs)...) {
				got = series.Labels().String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
