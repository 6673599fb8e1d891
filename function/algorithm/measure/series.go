// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"slices"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// SeriesSLOObjective is the objective itself, so that dashboards know it.
const SeriesSLOObjective = "capstan:slo_objective"

// slotSeries are recorded of each slot, of queries in the spec.
var slotSeries = []string{
	observev1alpha1.SeriesCustom, observev1alpha1.SeriesOwnInFlight, observev1alpha1.SeriesOwnRequestRate, observev1alpha1.SeriesOwnLatency,
}

// ForeignSeries is the first series that the status of an Analysis asks to record although the provider never does, or "". Another
// client wrote it: Prometheus would evaluate the expression with the rights to read the series of all namespaces.
func ForeignSeries(slots []observev1alpha1.SlotExpression, slo observev1alpha1.SLOObservation) string {
	for _, e := range slots {
		if !slices.Contains(slotSeries, e.Series) || !names.IsSlot(e.Slot) {
			return e.Series
		}
	}
	for _, e := range slo.Expressions {
		if e.Series != observev1alpha1.SeriesSLORequests && e.Series != observev1alpha1.SeriesSLOBad {
			return e.Series
		}
	}
	return ""
}
