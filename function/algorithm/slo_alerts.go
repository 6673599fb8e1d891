// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"strconv"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Series about the objective, of all slots together. The provider's expressions are
// recorded as the first two; the third is what is asked, so that dashboards know it.
const (
	seriesSLORequests  = "capstan:slo_requests_per_second"
	seriesSLOBad       = "capstan:slo_bad_per_second"
	seriesSLOObjective = "capstan:slo_objective"
)

// Severities of alerts.
const (
	// severityPage is for what somebody has to look at now.
	severityPage = "critical"
	// severityTicket is for what somebody has to look at in the next days.
	severityTicket = "warning"
)

// A burn is a rate at which the error budget is used that somebody should know of:
// how many times as fast as the budget allows it was used over a long time, and still
// is over a short one, so that the alert ends soon after what it tells of.
type burn struct {
	alert       string
	severity    string
	rate        float64
	long, short time.Duration
	words       string
}

// burns are those of Google, The Site Reliability Workbook, chapter 5, table 5-8. Of a
// budget for 30 days they are 2 % in an hour, 5 % in six, and 10 % in three days.
func burns() []burn {
	return []burn{
		{"AlgorithmErrorBudgetBurnsFast", severityPage, 14.4, time.Hour, 5 * time.Minute, "more than 14.4 times as fast as it may in the last hour"},
		{"AlgorithmErrorBudgetBurns", severityPage, 6, 6 * time.Hour, 30 * time.Minute, "more than 6 times as fast as it may in the last six hours"},
		{"AlgorithmErrorBudgetBurnsSlowly", severityTicket, 1, 72 * time.Hour, 6 * time.Hour, "faster than it may in the last three days"},
	}
}

// sloRules record what counts for the objective, and raise alerts for how fast the
// budget is used. The expressions are those of the Analysis, because it knows PromQL and
// the server. While it has told none there are no rules.
func (s *state) sloRules() []monitoringv1.Rule {
	o, expressions := s.spec.SLO, s.accounted().Expressions
	if o == nil || len(expressions) == 0 {
		return nil
	}

	labels := func(more ...string) map[string]string {
		l := map[string]string{"namespace": s.namespace, seriesAlgorithm: s.name}
		for i := 0; i < len(more); i += 2 {
			l[more[i]] = more[i+1]
		}

		return l
	}

	var rs []monitoringv1.Rule

	for _, e := range expressions {
		rs = append(rs, monitoringv1.Rule{Record: e.Series, Expr: intstr.FromString(e.Expression), Labels: labels()})
	}

	rs = append(rs, monitoringv1.Rule{
		Record: seriesSLOObjective, Expr: intstr.FromString("vector(" + number(o.Availability/100) + ")"), Labels: labels(),
	})

	for _, b := range burns() {
		// What lasts longer than the window is not about its budget.
		if b.long > o.Window.Duration {
			continue
		}

		rs = append(rs, monitoringv1.Rule{
			Alert:  b.alert,
			Expr:   intstr.FromString(s.burnsAt(b, b.long) + "\nand\n" + s.burnsAt(b, b.short)),
			Labels: labels("severity", b.severity),
			Annotations: map[string]string{
				"summary": fmt.Sprintf("Algorithm %s of namespace %s used its error budget %s.", s.name, s.namespace, b.words),
				"description": fmt.Sprintf("%s of requests went badly, and %s %% may. kubectl -n %s describe algorithm %s tells more.",
					"{{ $value | humanizePercentage }}", number(100-o.Availability), s.namespace, s.name),
			},
		})
	}

	return rs
}

// burnsAt a rate over some time. Sums are divided, and not rates averaged, so that an hour
// without traffic counts for nothing.
func (s *state) burnsAt(b burn, over time.Duration) string {
	sum := func(series string) string {
		return fmt.Sprintf("sum_over_time(%s{namespace=%q,algorithm=%q}[%s])", series, s.namespace, s.name, words(over))
	}

	return fmt.Sprintf("%s / %s > %s", sum(seriesSLOBad), sum(seriesSLORequests), number(b.rate*(100-s.spec.SLO.Availability)/100))
}

// number without the digits that computers add.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
