// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

// maxWords bounds in bytes what is reported of Prometheus' own words.
const maxWords = 300

// Pods whose series a query may see.
type Pods struct {
	// Namespace of the pods.
	Namespace string
	// Algorithm that they belong to.
	Algorithm string
	// Slots of the Algorithm, at least one unless AnySlot is set.
	Slots []string
	// AnySlot takes the pods of all slots, with any name.
	AnySlot bool
}

// Narrow a PromQL expression to series of these pods: every selector in it, wherever it is, must match their labels besides what
// it matches anyway. So a selector that asks for others finds nothing. A query that Prometheus would not parse gives a Failure
// that shows where it is wrong. Prometheus' own parser does it, because the isolation of tenants must not depend on text
// replacement.
func (p Pods) Narrow(query string) (string, error) {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return "", &outside.Failure{
			Reason:  v1alpha1.ReasonRejected,
			Message: "the query is not PromQL: " + Words(err.Error()),
			Remedy:  "correct the query",
			Cause:   err,
		}
	}
	only, err := p.matchers()
	if err != nil {
		return "", err
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			s.LabelMatchers = append(s.LabelMatchers, only...)
		}
		return nil
	})
	return e.String(), nil
}

func (p Pods) matchers() ([]*labels.Matcher, error) {
	slots, how := strings.Join(p.Slots, ""), labels.MatchEqual
	if len(p.Slots) > 1 {
		quoted := make([]string, 0, len(p.Slots))
		for _, s := range p.Slots {
			quoted = append(quoted, regexp.QuoteMeta(s))
		}
		slots, how = strings.Join(quoted, "|"), labels.MatchRegexp
	}
	if p.AnySlot {
		slots, how = ".+", labels.MatchRegexp
	}
	var all []*labels.Matcher
	for _, l := range []struct {
		name, value string
		how         labels.MatchType
	}{
		{modelserver.LabelNamespace, p.Namespace, labels.MatchEqual},
		{modelserver.LabelAlgorithm, p.Algorithm, labels.MatchEqual},
		{modelserver.LabelSlot, slots, how},
	} {
		// An empty value would match series without the label, which belong to others.
		if l.value == "" {
			return nil, fmt.Errorf("cannot narrow a query to pods without %s", l.name)
		}
		m, err := labels.NewMatcher(l.how, l.name, l.value)
		if err != nil {
			return nil, fmt.Errorf("cannot match %s %q: %w", l.name, l.value, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// passing is what differs from one answer to the next although the cause is the same: durations, timestamps and counts of
// samples.
var passing = regexp.MustCompile(`\b\d+(\.\d+)?(ns|us|µs|ms|s)\b|\b\d{9,}(\.\d+)?\b`)

// listed are the series that an error lists, whose order and addresses change.
var listed = regexp.MustCompile(`\{[^{}]*\}(, \{[^{}]*\})*`)

// Words of Prometheus about a query, on one line and bounded.
func Words(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(passing.ReplaceAllString(text, "…"), " ")), " ")
	if len(text) <= maxWords {
		return text
	}
	return strings.ToValidUTF8(text[:maxWords], "") + "…"
}
