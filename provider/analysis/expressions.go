// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
)

// expressions that queries of one's own become, for what the autoscaler follows
// and the platform's rules do not record. Each is one number for the pods of a
// slot: zero without traffic, and none when no pod is scraped.
func expressions(cr *v1alpha1.Analysis, by v1alpha1.Signal) ([]v1alpha1.SlotExpression, string) {
	p := cr.Spec.ForProvider.Metrics

	slots := slices.Clone(p.Slots)
	if !slices.Contains(slots, p.Scaling.Slot) {
		slots = append(slots, p.Scaling.Slot)
	}

	slices.Sort(slots)

	var all []v1alpha1.SlotExpression

	for _, slot := range slots {
		of := prometheus.Pods{Namespace: cr.GetNamespace(), Algorithm: cr.Spec.ForProvider.Algorithm, Slots: []string{slot}}

		for _, s := range recorded(p, by) {
			e, err := of.Narrow(filled(s.query, p))
			if f := (*outside.Failure)(nil); errors.As(err, &f) {
				return nil, bounded(f.Error())
			}

			if err != nil {
				return nil, bounded(err.Error())
			}

			all = append(all, v1alpha1.SlotExpression{Slot: slot, Series: s.name, Expression: e})
		}
	}

	return all, ""
}

// A series to record, and the query that it is made of.
type series struct{ name, query string }

// recorded series, for a signal.
func recorded(p *v1alpha1.MetricsParameters, by v1alpha1.Signal) []series {
	var all []series

	own := ptr.Deref(p.Queries, v1alpha1.Queries{})

	switch {
	case by == v1alpha1.SignalQuery:
		all = append(all, series{"capstan:custom", p.Scaling.Query})
	case by == v1alpha1.SignalInFlight && own.InFlight != "":
		all = append(all, series{"capstan:own_inflight", fmt.Sprintf("sum(%s)", own.InFlight)})
	case by == v1alpha1.SignalRequestRate && own.Requests != "":
		all = append(all, series{"capstan:own_requests_per_second", fmt.Sprintf("sum(%s) / %g", own.Requests, windowOf(p).Seconds())})
	}

	if p.Scaling.TargetLatencyMs != nil && own.Latency != "" {
		all = append(all, series{"capstan:own_latency_ms", fmt.Sprintf(
			"1000 * histogram_quantile(%g, sum by (le) (%s)) > 0 or 0 * (count(up == 1) > 0)", float64(p.Scaling.Percentile)/100, own.Latency)})
	}

	return all
}
