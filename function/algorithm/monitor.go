// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"strconv"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/capstan-dev/capstan/function/compose"
)

// Kinds of the Prometheus Operator.
var (
	ServiceMonitorGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.ServiceMonitorsKind)
	PrometheusRuleGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PrometheusRuleKind)
)

// monitor lets Prometheus scrape the pods, and labels what it finds there with
// Algorithm and slot.
func monitor(s *state) error {
	if !s.measures() || s.Kinds[ServiceMonitorGVK] != compose.Available && s.Observed[nameMonitor] == nil {
		return nil
	}

	port := portName
	if s.metricsPort() != *s.spec.Port {
		port = portMetrics
	}

	label := func(pod, series string) monitoringv1.RelabelConfig {
		return monitoringv1.RelabelConfig{
			SourceLabels: []monitoringv1.LabelName{monitoringv1.LabelName("__meta_kubernetes_pod_label_" + pod)},
			TargetLabel:  series,
		}
	}

	s.offer(nameMonitor, compose.NewManifest(ServiceMonitorGVK.GroupVersion().String(), ServiceMonitorGVK.Kind, s.metadata(s.name),
		monitoringv1.ServiceMonitorSpec{
			Selector: metav1.LabelSelector{
				MatchLabels:      map[string]string{labelAlgorithm: s.name},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: labelSlot, Operator: metav1.LabelSelectorOpExists}},
			},
			Endpoints: []monitoringv1.Endpoint{{
				Port: port,
				Path: s.spec.Metrics.Path,
				RelabelConfigs: []monitoringv1.RelabelConfig{
					label("capstan_dev_algorithm", seriesAlgorithm),
					label("capstan_dev_slot", seriesSlot),
				},
			}},
		}))

	return nil
}

// rules record the load that a query of one's own tells, so that the autoscaler
// can follow it, and raise alerts for what the spec asks.
func rules(s *state) error {
	if s.Kinds[PrometheusRuleGVK] != compose.Available && s.Observed[nameRules] == nil {
		return nil
	}

	var rs []monitoringv1.Rule

	if s.measures() {
		rs = append(s.recorded(), s.alerts()...)
	}

	// What records the load stays while what it is made of is not known.
	if s.recordsOwn() && len(s.learned().expressions) == 0 {
		if s.Observed[nameRules] != nil {
			s.keep(nameRules)
		}

		return nil
	}

	if len(rs) == 0 {
		return nil
	}

	s.offer(nameRules, compose.NewManifest(PrometheusRuleGVK.GroupVersion().String(), PrometheusRuleGVK.Kind, s.metadata(s.name),
		monitoringv1.PrometheusRuleSpec{
			Groups: []monitoringv1.RuleGroup{{Name: "capstan-" + s.name, Rules: rs}},
		}))

	return nil
}

// recorded load, of each slot that the Analysis has narrowed the query to. The
// expressions are its, because it knows PromQL.
func (s *state) recorded() []monitoringv1.Rule {
	if !s.recordsOwn() {
		return nil
	}

	expressions := s.learned().expressions

	rs := make([]monitoringv1.Rule, 0, len(expressions))
	for _, e := range expressions {
		rs = append(rs, monitoringv1.Rule{
			Record: e.series,
			Expr:   intstr.FromString(e.text),
			Labels: map[string]string{"namespace": s.namespace, seriesAlgorithm: s.name, seriesSlot: e.slot},
		})
	}

	return rs
}

// alerts about what the spec asks. Only callers matter, so that both slots count
// by what they serve.
func (s *state) alerts() []monitoringv1.Rule {
	var rs []monitoringv1.Rule

	of := fmt.Sprintf("{namespace=%q,algorithm=%q}", s.namespace, s.name)

	alert := func(name, expr, summary string) {
		rs = append(rs, monitoringv1.Rule{
			Alert:  name,
			Expr:   intstr.FromString(expr),
			For:    new(monitoringv1.Duration("10m")),
			Labels: map[string]string{"severity": "warning", "namespace": s.namespace, seriesAlgorithm: s.name},
			Annotations: map[string]string{
				"summary":     summary,
				"description": fmt.Sprintf("kubectl -n %s describe algorithm %s tells more.", s.namespace, s.name),
			},
		})
	}

	if sc := s.spec.Scaling; sc != nil && sc.TargetLatencyMs != nil {
		alert("AlgorithmLatencyAboveTarget",
			fmt.Sprintf("max(%s%s) > %d", strings.Replace(s.latencyMetric(), "_", ":", 1), of, *sc.TargetLatencyMs),
			fmt.Sprintf("Algorithm %s of namespace %s answers p%d of its requests slower than %d ms.", s.name, s.namespace, sc.Percentile, *sc.TargetLatencyMs))
	}

	if r := s.spec.Metrics.SuccessRatio; r != nil {
		failures := strconv.FormatFloat(1-*r, 'g', 6, 64)
		alert("AlgorithmRequestsFail",
			fmt.Sprintf("sum(capstan:failures_per_second%s) / sum(capstan:requests_per_second%s) > %s", of, of, failures),
			fmt.Sprintf("Algorithm %s of namespace %s fails more of its requests than %s.", s.name, s.namespace, failures))
	}

	return append(rs, s.sloRules()...)
}
