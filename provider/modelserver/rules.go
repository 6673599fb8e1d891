// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/internal/runbook"
)

// Files that Rules makes, below package/monitoring.
const (
	FileRules          = "rules.yaml"
	FilePrometheusRule = "prometheusrule.yaml"
)

const (
	// of are the labels of the pods of one slot of one Algorithm.
	of = LabelNamespace + ", " + LabelAlgorithm + ", " + LabelSlot
	// scraped is what the series of pods of Algorithms have and others have not.
	scraped = LabelAlgorithm + `!="",` + LabelSlot + `!=""`
	// rateWindow holds at least four scrapes at the usual 30 s.
	rateWindow = "2m"
	// gaugeWindow evens out what gauges show at the moments of scrapes: a request is short, and an autoscaler must not follow a
	// moment.
	gaugeWindow = "1m"
	// every is how often the rules are evaluated: as often as an autoscaler looks.
	every = "15s"
)

// Records of the rules.
const (
	RecordServer   = "capstan:server"
	RecordRequests = "capstan:requests_per_second"
	RecordFailures = "capstan:failures_per_second"
	RecordInFlight = "capstan:inflight"
	recordLatency  = "capstan:latency_p%d_ms"
)

// Percentiles of the latency that are recorded.
func Percentiles() []int { return []int{50, 90, 95, 99} }

// A Rule records the value of an expression.
type Rule struct {
	Record string
	Expr   string
}

// Rules of all servers, in the order in which they have to be evaluated.
//
// A slot has values as long as a pod of it is scraped and exposes metrics of a known name. They are zero when nothing was
// counted. When they are unknown, there is no value: an autoscaler then keeps the number of replicas, where a zero would have it
// take them away.
func Rules() []Rule {
	parts := map[string][]string{}
	var order []string
	for _, s := range Servers() {
		for _, r := range s.rules() {
			if parts[r.Record] == nil {
				order = append(order, r.Record)
			}
			parts[r.Record] = append(parts[r.Record], r.Expr)
		}
	}
	rules := make([]Rule, 1, 1+len(order))
	rules[0] = Rule{Record: RecordServer, Expr: recognised()}
	for _, record := range order {
		rules = append(rules, Rule{Record: record, Expr: strings.Join(parts[record], "\nor\n")})
	}
	return rules
}

// recognised is the server of each slot: one, the first in the table, so that a pod that exposes the metrics of two is not
// counted twice.
func recognised() string {
	servers := Servers()
	known := make([]string, 0, len(servers))
	for _, s := range servers {
		known = append(known, fmt.Sprintf(`label_replace(group by (%s) (%s), "server", "%s", "", "")`,
			of, narrow(anyOf(s.Names())), s.Name))
	}
	return "(\n    " + strings.Join(known, "\n  or on ("+of+")\n    ") + "\n)\nand on (" + of + ") (" + narrow("up") + " == 1)"
}

// rules of a server, for the slots whose pods are its.
func (s Server) rules() []Rule {
	here := fmt.Sprintf(`%s{server="%s"}`, RecordServer, s.Name)
	gated := func(expr string) string { return "(\n  " + expr + "\n)\nand on (" + of + ") " + here }
	// Zero only while there is no such counter: one that was scraped once has no rate yet, and that is no zero.
	none := make([]string, 1, 1+len(s.Requests))
	none[0] = fmt.Sprintf("0 * group by (%s) (%s)", of, here)
	for _, r := range s.Requests {
		none = append(none, fmt.Sprintf("unless on (%s) %s", of, narrow(r)))
	}
	absent := strings.Join(none, "\n    ")
	rules := []Rule{{Record: RecordRequests, Expr: gated(finite(s.sum("rate", rateWindow, s.Requests)) + "\n  or\n    " + absent)}}
	if len(s.Failures) > 0 {
		rules = append(rules, Rule{Record: RecordFailures, Expr: gated(
			finite(s.sum("rate", rateWindow, s.Failures)) + "\n  or\n    0 * " + RecordRequests)})
	}
	if len(s.InFlight) > 0 {
		// Pods that are gone do not count.
		now := make([]string, 0, len(s.InFlight))
		for _, g := range s.InFlight {
			now = append(now, narrow(g))
		}
		rules = append(rules, Rule{Record: RecordInFlight, Expr: gated(finite(fmt.Sprintf(
			"sum by (%s) ((%s) and on (%s, pod) (%s == 1))", of, added("avg_over_time", gaugeWindow, now), LabelNamespace, narrow("up"))) +
			"\n  or\n    (" + RecordRequests + " == 0)")})
	}
	if s.Latency.Buckets != "" {
		for _, p := range Percentiles() {
			rules = append(rules, Rule{Record: fmt.Sprintf(recordLatency, p), Expr: gated(finite(fmt.Sprintf(
				"%g * histogram_quantile(0.%d, sum by (%s, le) (rate(%s[%s])))", s.Latency.Milliseconds, p, of, narrow(s.Latency.Buckets), rateWindow)) +
				"\n  or\n    (" + RecordRequests + " == 0)")})
		}
	}
	return rules
}

func (s Server) sum(function, window string, selectors []string) string {
	narrowed := make([]string, 0, len(selectors))
	for _, x := range selectors {
		narrowed = append(narrowed, narrow(x))
	}
	return fmt.Sprintf("sum by (%s) (%s)", of, added(function, window, narrowed))
}

// narrow a selector to series of pods of Algorithms.
func narrow(selector string) string {
	name, matchers, found := strings.Cut(selector, "{")
	if !found {
		return name + "{" + scraped + "}"
	}
	return name + "{" + scraped + "," + matchers
}

// finite leaves out what is not a number or is infinite, which autoscalers interpret as they like.
func finite(expr string) string { return "  " + expr + " < +Inf" }

const generated = `# SPDX-License-Identifier: Apache-2.0

# Code generated by make generate from provider/modelserver. DO NOT EDIT.

`

// RuleFile is a rule file of Prometheus with the rules.
func RuleFile() string {
	return generated + `# Recording rules for a Prometheus without operator: name this file in rule_files. They make, for each slot of each Algorithm
# whose pods are scraped with the labels namespace, pod, algorithm and slot, the series that autoscalers follow. Of rollouts they
# make alerts, where the provider is scraped.
` + groups("")
}

// PrometheusRule is an object of the Prometheus Operator with the rules.
func PrometheusRule() string {
	return generated + `# Recording rules for the Prometheus Operator: apply it once, in the namespace of a Prometheus that selects it. Where the operator
# enforces the label namespace, except this object in excludedFromEnforcement: it is about the pods of all namespaces. Its alerts
# about rollouts, Trainings and Pipelines need the provider scraped: podmonitor.yaml.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: capstan-algorithms
  labels:
    app.kubernetes.io/part-of: capstan
spec:
` + groups("  ")
}

// groups of rules in YAML. Expressions are blocks of text, so that people can read them.
func groups(indent string) string {
	b := &strings.Builder{}
	line := func(depth int, text string) { b.WriteString(indent + strings.Repeat("  ", depth) + text + "\n") }
	line(0, "groups:")
	line(1, "- name: capstan-algorithms")
	line(2, "interval: "+every)
	line(2, "rules:")
	record := func(r Rule) {
		line(3, `- record: "`+r.Record+`"`)
		expr(line, r.Expr)
	}
	for _, r := range Rules() {
		record(r)
	}
	for _, of := range []struct {
		group  string
		rules  []Rule
		alerts []Alert
	}{
		{"capstan-rollouts", rolloutRules(), rolloutAlerts()},
		{"capstan-trainings", trainingRules(), trainingAlerts()},
		{"capstan-pipelines", pipelineRules(), pipelineAlerts()},
		{"capstan-streams", streamRules(), streamAlerts()},
	} {
		line(1, "- name: "+of.group)
		line(2, "interval: "+every)
		line(2, "rules:")
		for _, r := range of.rules {
			record(r)
		}
		for _, a := range of.alerts {
			line(3, "- alert: "+a.Alert)
			expr(line, a.Expr)
			line(4, "for: "+a.For)
			line(4, "labels:")
			line(5, "severity: "+a.Severity)
			line(4, "annotations:")
			line(5, "summary: "+strconv.Quote(a.Summary))
			line(5, "description: "+strconv.Quote(a.Description))
			line(5, runbook.Annotation+": "+strconv.Quote(runbook.URL(runbook.Page, a.Alert)))
		}
	}
	return b.String()
}

// expr of a rule, as a block of text.
func expr(line func(depth int, text string), text string) {
	line(4, "expr: |-")
	for l := range strings.SplitSeq(text, "\n") {
		line(5, l)
	}
}
