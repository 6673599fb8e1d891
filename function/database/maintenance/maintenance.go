// SPDX-License-Identifier: Apache-2.0

// Package maintenance decides whether a member that serves may be changed now: by windows, a freeze and approvals.
package maintenance

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/signals"
)

// MemberTakes is how long a member may take from being stopped to having every commit again: five minutes to end in good order,
// and as many to start and to catch up. None is begun when a window does not last that long any more.
const MemberTakes = 10 * time.Minute

// shortestWindow that a member is ever begun in.
const shortestWindow = 15 * time.Minute

// A Gate says whether a member that serves may be begun now, and if not, why, and when it is worth another look.
type Gate struct {
	Reason  xpv2.ConditionReason
	Message string
	Until   time.Time

	// Failed reports that it does not open by itself.
	Failed bool
}

// Closed gate.
func (g Gate) Closed() bool { return g.Reason != "" }

// A period is one time of a window.
type period struct{ start, end time.Time }

// GateOf a change.
func GateOf(m *v1alpha1.DatabaseMaintenance, held signals.Hold, hash string, now time.Time) Gate {
	if g := Frozen(m, held, now); g.Closed() {
		return g
	}
	if m == nil {
		return Gate{}
	}
	if m.Approval == v1alpha1.ApprovalManual && m.Approve != hash {
		message := fmt.Sprintf("the change waits for approval: check status.change, then set spec.maintenance.approve to %q", hash)
		if m.Approve != "" {
			message += fmt.Sprintf("; %q approves another change", m.Approve)
		}
		return Gate{Reason: v1alpha1.ReasonChangeNotApproved, Message: message}
	}
	return openAt(m.Windows, now)
}

// Frozen reports whether nothing is begun at all: because of the spec, or of a Signal that holds.
func Frozen(m *v1alpha1.DatabaseMaintenance, held signals.Hold, now time.Time) Gate {
	frozen := m != nil && m.Freeze != nil && now.Before(m.Freeze.Until.Time)
	if held.Holds() && (!frozen || held.Until.After(m.Freeze.Until.Time)) {
		return Gate{
			Reason: v1alpha1.ReasonFrozen, Until: held.Until,
			Message: held.Signal + " blocks every change: " + held.Remedy(),
		}
	}
	if !frozen {
		return Gate{}
	}
	return Gate{
		Reason: v1alpha1.ReasonFrozen, Until: m.Freeze.Until.Time,
		Message: fmt.Sprintf("spec.maintenance.freeze blocks every change until %s: to continue now, set spec.maintenance.freeze.until to a time in the past",
			m.Freeze.Until.UTC().Format(time.RFC3339)),
	}
}

// openAt a time: inside a window that lasts for one member more.
func openAt(windows []v1alpha1.MaintenanceWindow, now time.Time) Gate {
	p, ok := next(windows, now)
	switch {
	case len(windows) == 0, ok && !p.start.After(now):
		return Gate{}
	case !ok:
		return Gate{
			Reason:  v1alpha1.ReasonAwaitingWindow,
			Message: "no window of spec.maintenance.windows is long enough: the change of a member takes up to 10 minutes, so set a window of 15 minutes or more",
		}
	}
	return Gate{
		Reason: v1alpha1.ReasonAwaitingWindow, Until: p.start,
		Message: fmt.Sprintf("the next member is changed in the window from %s to %s: to continue sooner, extend spec.maintenance.windows",
			p.start.UTC().Format(time.RFC3339), p.end.UTC().Format(time.RFC3339)),
	}
}

// next period that a member can be begun in: the one that lasts, as long as there is time for a member, or one to come.
func next(windows []v1alpha1.MaintenanceWindow, now time.Time) (period, bool) {
	all := make([]period, 0, 12*len(windows))
	for _, w := range windows {
		all = append(all, periods(w, now)...)
	}
	slices.SortFunc(all, func(a, b period) int { return a.start.Compare(b.start) })
	for _, p := range joined(all) {
		if p.end.Sub(p.start) >= shortestWindow && p.end.Sub(now) >= MemberTakes {
			return p, true
		}
	}
	return period{}, false
}

// periods of a window around a time: the current one, and the next ones for more than a week.
func periods(w v1alpha1.MaintenanceWindow, now time.Time) []period {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		return nil // Validation reports it.
	}
	at, err := time.Parse("15:04", w.Start)
	if err != nil {
		return nil // The same.
	}
	var all []period
	// The longest window lasts into the next day, and what begins on a certain day of the week does so at most eight days from
	// today.
	for day := -2; day <= 9; day++ {
		y, m, d := now.In(zone).AddDate(0, 0, day).Date()
		if len(w.Days) > 0 && !slices.Contains(w.Days, v1alpha1.Weekday(time.Date(y, m, d, 12, 0, 0, 0, zone).Weekday().String()[:3])) {
			continue
		}
		if start := clock(y, m, d, at.Hour(), at.Minute(), zone); start.Add(w.Duration.Duration).After(now) {
			all = append(all, period{start, start.Add(w.Duration.Duration)})
		}
	}
	return all
}

// joined periods: those that touch are one. They must be sorted.
func joined(all []period) []period {
	var out []period
	for _, p := range all {
		if n := len(out); n > 0 && !p.start.After(out[n-1].end) {
			if p.end.After(out[n-1].end) {
				out[n-1].end = p.end
			}
			continue
		}
		out = append(out, p)
	}
	return out
}

// clock is when the clocks of a zone show a time of a day: the first time when they show it twice, and when they leave it out,
// the moment at which they continue.
func clock(year int, month time.Month, day, hour, minute int, zone *time.Location) time.Time {
	t := time.Date(year, month, day, hour, minute, 0, 0, zone)
	begins, ends := t.ZoneBounds()
	shows := func(t time.Time) bool {
		h, m, _ := t.Clock()
		return h == hour && m == minute && t.Day() == day
	}
	if !shows(t) {
		// Which of the two offsets Date goes by is not said.
		wanted := time.Date(year, month, day, hour, minute, 0, 0, time.UTC)
		if h, m, _ := t.Clock(); time.Date(t.Year(), t.Month(), t.Day(), h, m, 0, 0, time.UTC).After(wanted) {
			return begins
		}
		return ends
	}
	if !begins.IsZero() {
		_, offset := t.Zone()
		_, before := begins.Add(-time.Second).Zone()
		if first := t.Add(time.Duration(offset-before) * time.Second); first.Before(begins) && shows(first) {
			return first
		}
	}
	return t
}

// WindowAt of a change: the one it runs in, or waits for.
func WindowAt(m *v1alpha1.DatabaseMaintenance, held signals.Hold, now time.Time) *v1alpha1.MaintenancePeriod {
	if m == nil || len(m.Windows) == 0 {
		return nil
	}
	if g := Frozen(m, held, now); g.Closed() {
		now = g.Until
	}
	p, ok := next(m.Windows, now)
	if !ok {
		return nil
	}
	return &v1alpha1.MaintenancePeriod{Start: metav1.NewTime(p.start.UTC()), End: metav1.NewTime(p.end.UTC())}
}
