// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
)

const month = 30 * 24 * time.Hour

// defaultSLO repeats the defaults of the schema.
func defaultSLO(o *v1alpha1.SLO) {
	if o == nil {
		return
	}

	o.Window = cmp.Or(o.Window, &metav1.Duration{Duration: month})
	o.MinBudgetPercent = cmp.Or(o.MinBudgetPercent, new(int32(10)))
	o.OnExhausted = cmp.Or(o.OnExhausted, v1alpha1.ExhaustedFreezeRollouts)
}

func checkSLO(s *state) []check.Problem {
	o := s.spec.SLO
	if o == nil {
		return nil
	}

	ps := slices.Concat(
		lasting("spec.slo.window", o.Window, time.Hour, 3*month),
		check.Between("spec.slo.minBudgetPercent", *o.MinBudgetPercent, 0, 99),
		check.Among("spec.slo.onExhausted", o.OnExhausted, v1alpha1.ExhaustedFreezeRollouts, v1alpha1.ExhaustedNone),
	)

	// Not a number is in no bounds.
	if !(o.Availability > 0 && o.Availability < 100) {
		ps = append(ps, check.Invalid("spec.slo.availability", o.Availability,
			"must be above 0 and below 100, for instance 99.9: of 100 nothing could ever go wrong, and there would be no budget"))
	}

	if o.LatencyMs != nil {
		ps = append(ps, check.Between("spec.slo.latencyMs", *o.LatencyMs, 1, 3600000)...)
	}

	return ps
}
