// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/measure"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/pods"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/scrape"
	"github.com/capstan-dev/capstan/internal/runbook"
)

type analysisSpec struct {
	ProviderConfigReference *xpv2.ProviderConfigReference      `json:"providerConfigRef,omitempty"`
	ForProvider             observev1alpha1.AnalysisParameters `json:"forProvider"`
}

// analysis looks at the pods, their metrics and their Secrets. Without it an Algorithm serves just as well, and can report less
// when it does not: so it exists only where the provider is installed, and nothing waits for it.
func analysis(d *compose.Draft, p *pass) {
	if !p.observes {
		return
	}
	spec := analysisSpec{ForProvider: observev1alpha1.AnalysisParameters{
		Algorithm: p.Name,
		Container: names.Container,
		Secrets:   p.neededSecrets(),
		Metrics:   measure.Parameters(&p.spec, p.rollout.Experiment, p.decision, p.analysis.UncountedFailures()),
	}}
	if p.measures() {
		spec.ProviderConfigReference = p.spec.Metrics.ProviderConfigReference
	}
	apiVersion, kind := observev1alpha1.AnalysisGroupVersionKind.ToAPIVersionAndKind()
	metadata := p.Metadata(p.Name)
	// As an annotation, because it is nothing to look at: evidence that was gathered must not be lost for it.
	if text := p.decision.Annotation(); text != "" {
		metadata.WithAnnotations(map[string]string{observev1alpha1.AnnotationRollout: text})
	}
	d.Offer(names.Analysis, compose.NewManifest(apiVersion, kind, metadata, spec))
}

// neededSecrets are those without which pods cannot start, though they do not report so: the kubelet reports a Secret that it
// cannot mount in events only.
func (p *pass) neededSecrets() []string {
	var secrets []string
	for _, m := range p.spec.Secrets {
		secrets = append(secrets, m.Name)
	}
	if m := p.spec.Model; m != nil && m.Credentials != "" && pods.Downloads(m) && !slices.Contains(secrets, m.Credentials) {
		secrets = append(secrets, m.Credentials)
	}
	return secrets
}

// load that the autoscaler follows.
func (f *facts) load() v1alpha1.ScalingStatus {
	return measure.Load(&f.spec, f.learned, f.observes)
}

// seriesOtherNamespaces are labels for the namespace in series of the provider. Alerts believe them.
const seriesOtherNamespaces = "(algorithm|pipeline|training)_namespace"

// monitor lets Prometheus scrape the pods, and labels what it finds there with Algorithm and slot. What a tenant's pod serves cannot raise
// alerts in the name of another namespace.
func monitor(d *compose.Draft, p *pass) {
	if !p.measures() || !p.available(ServiceMonitorGVK, names.Monitor) {
		return
	}
	port := names.PortHTTP
	if measure.OwnPort(&p.spec) {
		port = names.PortMetrics
	}
	d.Offer(names.Monitor, compose.NewManifest(ServiceMonitorGVK.GroupVersion().String(), ServiceMonitorGVK.Kind, p.Metadata(p.Name),
		monitoringv1.ServiceMonitorSpec{
			Selector: metav1.LabelSelector{
				MatchLabels:      p.Pods(),
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: names.LabelSlot, Operator: metav1.LabelSelectorOpExists}},
			},
			Endpoints: []monitoringv1.Endpoint{{
				Port: port,
				Path: p.spec.Metrics.Path,
				RelabelConfigs: []monitoringv1.RelabelConfig{
					scrape.Label("capstan_dev_algorithm", measure.SeriesAlgorithm),
					scrape.Label("capstan_dev_slot", measure.SeriesSlot),
				},
				MetricRelabelConfigs: []monitoringv1.RelabelConfig{{Regex: seriesOtherNamespaces, Action: "labeldrop"}},
			}},
		}))
}

// prometheusRules record what queries of the spec report, so that the autoscaler can follow it and alerts can compare it, and raise
// alerts for what the spec asks. What records the load stays while what it is made of is unknown, and everything stays while another client
// wrote what it would be made of.
func prometheusRules(d *compose.Draft, p *pass) {
	if !p.available(PrometheusRuleGVK, names.Rules) {
		return
	}
	records := measure.RecordsOwn(&p.spec)
	if p.foreign != "" || records && len(p.learned.Expressions) == 0 {
		d.Keep(names.Rules)
		return
	}
	var rs []monitoringv1.Rule
	if records {
		rs = p.recordings(p.learned.Expressions)
	}
	rs = append(rs, p.recordings(p.latency)...)
	if p.guarded() {
		series, expr := measure.Guard(&p.spec, p.selector())
		rs = append(rs, monitoringv1.Rule{Record: series, Expr: intstr.FromString(expr)})
	}
	if p.measures() {
		rs = slices.Concat(rs, p.alerts(), p.sloRules())
	}
	if len(rs) > 0 {
		d.Offer(names.Rules, compose.NewManifest(PrometheusRuleGVK.GroupVersion().String(), PrometheusRuleGVK.Kind, p.Metadata(p.Name),
			monitoringv1.PrometheusRuleSpec{Groups: []monitoringv1.RuleGroup{{Name: "capstan-" + p.Name, Rules: rs}}}))
	}
}

// guarded reports whether the latency guards the target by a series that is recorded for this Algorithm.
func (f *facts) guarded() bool {
	return f.measures() && f.spec.Scaling != nil && f.spec.Scaling.TargetLatencyMs != nil && f.available(PrometheusRuleGVK, names.Rules)
}

// selector of the series of the Algorithm.
func (f *facts) selector() string {
	return fmt.Sprintf("{namespace=%q,algorithm=%q}", f.Namespace, f.Name)
}

// series labels of the Algorithm, and more.
func (f *facts) series(more ...string) map[string]string {
	l := map[string]string{"namespace": f.Namespace, measure.SeriesAlgorithm: f.Name}
	for i := 0; i < len(more); i += 2 {
		l[more[i]] = more[i+1]
	}
	return l
}

// recordings of queries of the spec, for each slot that the Analysis has narrowed them to. The expressions are the provider's, because
// it knows PromQL.
func (p *pass) recordings(expressions []observev1alpha1.SlotExpression) []monitoringv1.Rule {
	rs := make([]monitoringv1.Rule, 0, len(expressions))
	for _, e := range expressions {
		rs = append(rs, monitoringv1.Rule{
			Record: e.Series, Expr: intstr.FromString(e.Expression), Labels: p.series(measure.SeriesSlot, e.Slot),
		})
	}
	return rs
}

// alerts about what the spec asks. Only clients matter, so that both slots count by what they serve.
func (p *pass) alerts() []monitoringv1.Rule {
	var rs []monitoringv1.Rule
	of := p.selector()
	alert := func(name, expr, summary string) {
		rs = append(rs, monitoringv1.Rule{
			Alert:  name,
			Expr:   intstr.FromString(expr),
			For:    new(monitoringv1.Duration("10m")),
			Labels: p.series("severity", severityTicket),
			Annotations: map[string]string{
				"summary":          summary,
				"description":      fmt.Sprintf("kubectl -n %s describe algorithm %s shows more.", p.Namespace, p.Name),
				runbook.Annotation: p.runbook(name),
			},
		})
	}
	o := p.spec.Objectives
	if o.LatencyMs != nil && (!measure.RecordsLatency(&p.spec) || len(p.latency) > 0) {
		alert("AlgorithmLatencyAboveTarget",
			fmt.Sprintf("max(%s%s) > %d", strings.Replace(measure.LatencyMetric(&p.spec), "_", ":", 1), of, *o.LatencyMs),
			fmt.Sprintf("Algorithm %s of namespace %s answers p%d of its requests slower than %d ms.", p.Name, p.Namespace, o.LatencyPercentile, *o.LatencyMs))
	}
	// How fast an error budget is used says more than the share of ten minutes.
	if r := o.SuccessRatio; r != nil && p.spec.SLO == nil {
		failures := number(1 - *r)
		alert("AlgorithmRequestsFail",
			fmt.Sprintf("sum(capstan:failures_per_second%s) / sum(capstan:requests_per_second%s) > %s", of, of, failures),
			fmt.Sprintf("Algorithm %s of namespace %s fails more of its requests than %s.", p.Name, p.Namespace, failures))
	}
	return rs
}

// runbook is the URL of what to do about an alert.
func (f *facts) runbook(alert string) string {
	return runbook.URL(f.Settings.Alerts.RunbookPage, alert)
}

// Severities of alerts: a page is to look at now, a ticket in the next days.
const (
	severityPage   = "critical"
	severityTicket = "warning"
)

// A burn is a rate of use of the error budget that people should know: how many times as fast as the budget allows it was used
// over a long time, and still is over a short one, so that the alert ends soon after its cause.
type burn struct {
	alert       string
	severity    string
	rate        float64
	long, short time.Duration
	words       string
}

// burns are from Google, The Site Reliability Workbook, chapter 5, table 5-8. Of a budget for 30 days they are 2 % in an
// hour, 5 % in six, and 10 % in three days.
var burns = []burn{
	{"AlgorithmErrorBudgetBurnsFast", severityPage, 14.4, time.Hour, 5 * time.Minute, "more than 14.4 times as fast as it may in the last hour"},
	{"AlgorithmErrorBudgetBurns", severityPage, 6, 6 * time.Hour, 30 * time.Minute, "more than 6 times as fast as it may in the last six hours"},
	{"AlgorithmErrorBudgetBurnsSlowly", severityTicket, 1, 72 * time.Hour, 6 * time.Hour, "faster than it may in the last three days"},
}

// sloRules record what counts for the objective, and raise alerts for how fast the budget is used. The expressions are the
// provider's, because it knows PromQL and the server. While it reports none there are no rules.
func (p *pass) sloRules() []monitoringv1.Rule {
	o := p.spec.SLO
	if o == nil || len(p.slo.Expressions) == 0 {
		return nil
	}
	var rs []monitoringv1.Rule
	for _, e := range p.slo.Expressions {
		rs = append(rs, monitoringv1.Rule{Record: e.Series, Expr: intstr.FromString(e.Expression), Labels: p.series()})
	}
	rs = append(rs, monitoringv1.Rule{
		Record: measure.SeriesSLOObjective, Expr: intstr.FromString("vector(" + number(*p.spec.Objectives.SuccessRatio) + ")"), Labels: p.series(),
	})
	for _, b := range burns {
		// What lasts longer than the window is not about its budget.
		if b.long > o.Window.Duration {
			continue
		}
		rs = append(rs, monitoringv1.Rule{
			Alert:  b.alert,
			Expr:   intstr.FromString(p.burnsAt(b, b.long) + "\nand\n" + p.burnsAt(b, b.short)),
			Labels: p.series("severity", b.severity),
			Annotations: map[string]string{
				"summary": fmt.Sprintf("Algorithm %s of namespace %s used its error budget %s.", p.Name, p.Namespace, b.words),
				"description": fmt.Sprintf("%s of requests did not meet spec.slo, and at most %s %% may. kubectl -n %s describe algorithm %s shows more.",
					"{{ $value | humanizePercentage }}", number(100-measure.Availability(&p.spec)), p.Namespace, p.Name),
				runbook.Annotation: p.runbook(b.alert),
			},
		})
	}
	return rs
}

// burnsAt a rate over some time. Sums are divided, and not rates averaged, so that an hour without traffic counts for nothing.
func (p *pass) burnsAt(b burn, over time.Duration) string {
	sum := func(series string) string {
		return fmt.Sprintf("sum_over_time(%s{namespace=%q,algorithm=%q}[%s])", series, p.Namespace, p.Name, check.Duration(over))
	}
	return fmt.Sprintf("%s / %s > %s", sum(observev1alpha1.SeriesSLOBad), sum(observev1alpha1.SeriesSLORequests), number(b.rate*(100-measure.Availability(&p.spec))/100))
}

// number without the digits that computers add.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
