// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// unknown is why the state of the candidate is unknown, or empty. Then silentAt is when it will be, unless the provider renews
// its promise to query Prometheus before.
func (f Facts) unknown(l Ledger) (reason xpv2.ConditionReason, message string, silentAt time.Time) {
	e, holds := f.Evidence, l.holdsFor(v1alpha1.ReasonMetricsUnavailable)
	last := l.Entered
	if e.LookedAt.After(last) {
		last = e.LookedAt
	}
	silent := last.Add(silentIntervals * f.Interval)
	if e.LooksUntil.After(silent) {
		silent = e.LooksUntil
	}
	switch {
	case !e.Asked:
		return "", "", time.Time{}
	case !f.Observes:
		message = ProviderMissing
	case e.Errors >= observev1alpha1.ErrorsInRow, holds && (e.Errors > 0 || !e.LookedAt.After(l.Entered)):
		message = "Prometheus does not answer: see the condition MetricsAvailable"
	case !f.Now.Before(silent):
		message = "the provider has not queried Prometheus for some time: see the conditions of Analysis " + f.Name
	default:
		return "", "", silent
	}
	return v1alpha1.ReasonMetricsUnavailable, message, time.Time{}
}

// fault of the candidate in a slot, as reason and message, or empty.
func (f Facts) fault(slot string) (xpv2.ConditionReason, string) {
	s := f.Slots[slot]
	switch failing := f.Evidence.failing(); {
	case s.crashes():
		return s.Trouble, s.TroubleMessage
	case failing == nil:
		return "", ""
	case failing.Name == CheckDrift:
		return v1alpha1.ReasonDrifted, inWords(failing)
	default:
		return v1alpha1.ReasonMetricFailed, inWords(failing)
	}
}
