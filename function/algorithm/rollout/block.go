// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"

	_ "time/tzdata" // freeze windows mean the same wherever the function runs
)

// A block is why requests may not shift now, or has no reason.
type block struct {
	timers

	Reason  xpv2.ConditionReason
	Message string
}

// mayBegin a rollout, or why not.
func (f Facts) mayBegin(l Ledger) block {
	// What corrects an outage must not wait for it to be over.
	if f.promotes(f.Target) {
		return block{}
	}
	if len(l.Rollbacks) >= loopLimit {
		if end := l.Rollbacks[loopLimit-1].Add(loopTime); f.Now.Before(end) {
			return block{Reason: v1alpha1.ReasonRollbackLoop, timers: at(end), Message: fmt.Sprintf(
				"%d revisions were rolled back within an hour: the next one starts at %s", loopLimit, end.UTC().Format(time.RFC3339))}
		}
	}
	if f.mirrorsFirst(l) && f.MirrorRefused != "" {
		return block{Reason: v1alpha1.ReasonMirrorNotOffered, Message: f.MirrorRefused}
	}
	return f.mayShift(l)
}

// mayShift traffic to a revision at this time, or why not.
func (f Facts) mayShift(l Ledger) block {
	otherwise := fmt.Sprintf("wait, or name revision %s in spec.rollout.promote", f.Target)
	if f.Target == l.Revision {
		otherwise = "wait" // for an experiment, which is never so urgent
	}
	if by, remedy, end, paused := f.paused(); paused {
		return block{Reason: v1alpha1.ReasonRolloutPaused, timers: end, Message: by + " holds rollouts: " + remedy}
	}
	if until, frozen := Frozen(f.Lifecycle.Freeze, f.Now); frozen {
		return block{Reason: v1alpha1.ReasonFreezeWindow, timers: at(until), Message: fmt.Sprintf(
			"spec.lifecycle.freeze holds rollouts until %s: %s", until.UTC().Format(time.RFC3339), otherwise)}
	}
	if f.BudgetExhausted != "" {
		return block{Reason: v1alpha1.ReasonErrorBudget, Message: fmt.Sprintf("%s: %s", f.BudgetExhausted, otherwise)}
	}
	return block{}
}

// mayGoOn to a greater share of requests, or why not.
func (f Facts) mayGoOn(l Ledger, weight int32, needsApproval bool) block {
	if b := f.mayShift(l); b.Reason != "" || !needsApproval || f.approved(l.Candidate, weight) {
		return b
	}
	share := fmt.Sprintf("%d %% of requests", weight)
	if weight == 100 {
		share = "all requests"
	}
	return block{Reason: v1alpha1.ReasonAwaitingApproval, Message: fmt.Sprintf(
		"a person has to approve that %s may reach revision %s: add %q to spec.rollout.approve, or %q to spec.rollout.abort",
		share, l.Candidate, fmt.Sprintf("%s:%d", l.Candidate, weight), l.Candidate)}
}

// approved reports whether a share of requests needs no approval, or has it.
func (f Facts) approved(candidate string, weight int32) bool {
	lc := f.Lifecycle
	if lc.Approval != v1alpha1.ApprovalEveryStep && (lc.Approval != v1alpha1.ApprovalBeforePromotion || weight != 100) {
		return true
	}
	return slices.ContainsFunc(f.Requests.Approve, func(entry string) bool {
		revision, upTo, limited := strings.Cut(entry, ":")
		n, err := strconv.Atoi(upTo)
		return revision == candidate && (!limited || err == nil && n >= int(weight))
	})
}

// mostBegins is how many begins of a window Frozen checks. A window does not overlap itself, so that there is usually one.
const mostBegins = 64

// Frozen reports whether a window lasts, and until when. The latest end counts.
func Frozen(windows []v1alpha1.FreezeWindow, now time.Time) (until time.Time, ok bool) {
	for _, w := range windows {
		schedule, zone, err := ScheduleOf(w)
		if err != nil {
			continue // validation reports it
		}
		// The last begin that the window could still be lasting from.
		begin := schedule.Next(now.Add(-w.For.Duration).In(zone))
		for range mostBegins {
			if begin.IsZero() || begin.After(now) {
				break
			}
			if end := begin.Add(w.For.Duration); end.After(now) && end.After(until) {
				until, ok = end, true
			}
			begin = schedule.Next(begin)
		}
	}
	return until, ok
}

// ScheduleOf a window, and its time zone.
func ScheduleOf(w v1alpha1.FreezeWindow) (cron.Schedule, *time.Location, error) {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot find the time zone: %w", err)
	}
	schedule, err := cron.ParseStandard(w.Cron)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read cron: %w", err)
	}
	return schedule, zone, nil
}
