// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// labelNamespace is the label that tells the namespace of a series, as the usual
// scrape configurations and the Prometheus Operator set it.
const labelNamespace = "namespace"

// Narrow a PromQL expression to series of one namespace: every selector in it,
// wherever it is, must match the namespace besides what it matches anyway. A
// query that Prometheus would not parse gives a Failure.
func Narrow(query, namespace string) (string, error) {
	e, err := parser.ParseExpr(query)
	if err != nil {
		return "", &outside.Failure{
			Reason:  v1alpha1.ReasonRejected,
			Message: "the query is not PromQL",
			Remedy:  "correct the query",
			Cause:   err,
		}
	}

	only, err := labels.NewMatcher(labels.MatchEqual, labelNamespace, namespace)
	if err != nil {
		return "", fmt.Errorf("cannot match namespace %q: %w", namespace, err)
	}

	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			s.LabelMatchers = append(s.LabelMatchers, only)
		}

		return nil
	})

	return e.String(), nil
}
