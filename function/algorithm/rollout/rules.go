// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A rule of a phase. It reports whether it decides, and how. It is a pure function: only apply changes a ledger. The timers of a
// rule that does not decide count as well.
type rule struct {
	name string
	when func(Facts, Ledger) (transition, bool)
}

// rules by the phase that they are for, or that is held. The first one that decides ends the pass, so that each pass makes one
// transition at most:
//
//	Stable ─► Preparing ─► (Mirroring) ─► Stepping ─► … ─► Promoting ─► Baking ─► Draining ─► Stable
//	              │            │                │           │
//	              └────────────┴── RollingBack ◄┴───────────┘
//	                                    └─► RolledBack, while the spec asks for it
//
// Every phase can be held but RolledBack, which waits for an edit. Each transition begins an epoch.
var rules = map[v1alpha1.RolloutPhase][]rule{
	v1alpha1.RolloutStable:      resting,
	v1alpha1.RolloutDraining:    resting,
	v1alpha1.RolloutRollingBack: resting,
	v1alpha1.RolloutRolledBack:  resting,
	v1alpha1.RolloutPreparing: {
		{"withdrawn", withdrawn},
		{"slot taken", slotTaken},
		{"released", released},
		{"live revision stops", liveStops},
		{"no room for replicas", replicasWithoutRoom},
		{"replicas blocked", replicasBlocked},
		{"never ready", neverReady},
		{"mirror refused before it begins", firstMirrorRefused},
		{"paused on request", unlessStopped(pausedOnRequest)},
		{"replicas start", replicasStart},
		{"not measured before", unlessStopped(notMeasuredBefore)},
		{"evidence missing before it begins", unlessStopped(firstEvidenceMissing)},
		{"route not taken", unlessStopped(firstRouteNotTaken)},
		{"hooks before traffic", hooksBeforeTraffic},
		{"mirror begins", mirrorBegins},
		{"first share may not begin", unlessStopped(firstShareBlocked)},
		{"first share begins", firstShareBegins},
	},
	v1alpha1.RolloutMirroring: {
		{"withdrawn", withdrawn},
		{"replaced", replaced},
		{"candidate fails", candidateFails},
		{"candidate lost", candidateLost},
		{"paused", paused},
		{"mirror removed", mirrorRemoved},
		{"fault shared", sharedFault},
		{"fault over", faultOver},
		{"paused on request", pausedOnRequest},
		{"grows", grows},
		{"promoted", promoted},
		{"mirror refused", mirrorRefused},
		{"mirror not in force", mirrorNotInForce},
		{"mirror in force", mirrorInForce},
		{"evidence missing", evidenceMissing},
		{"metrics again", resumes(v1alpha1.ReasonMetricsUnavailable)},
		{"hooks again", hooksAgain},
		{"judged", judged},
	},
	v1alpha1.RolloutStepping: {
		{"withdrawn", withdrawn},
		{"replaced", replaced},
		{"candidate fails", candidateFails},
		{"candidate lost", candidateLost},
		{"paused", paused},
		{"live grows before arm B ends", ofExperiment(liveGrows)},
		{"arms not apart", ofExperiment(shareNotInForce)},
		{"arms apart", ofExperiment(shareInForce)},
		{"experiment ends", ofExperiment(experimentEnds)},
		{"experiment without metrics", ofExperiment(experimentWithoutMetrics)},
		{"experiment resumes", ofExperiment(resumes(
			v1alpha1.ReasonMetricsUnavailable, v1alpha1.ReasonAwaitingRoute, v1alpha1.ReasonStandbyStarting,
		))},
		{"experiment continues", ofExperiment(experimentGoesOn)},
		{"fault shared", sharedFault},
		{"fault over", faultOver},
		{"node at fault", nodeFault},
		{"node repaired", resumes(v1alpha1.ReasonNodeFault)},
		{"live grows before it takes back", liveGrows},
		{"requested again", resumes(v1alpha1.ReasonStandbyStarting)},
		{"paused on request", pausedOnRequest},
		{"grows", grows},
		{"promoted", promoted},
		{"state lost", stateLost},
		{"share not in force", shareNotInForce},
		{"share in force", shareInForce},
		{"evidence missing", evidenceMissing},
		{"hooks of the step", hooksDuringStep},
		{"metrics again", resumes(v1alpha1.ReasonMetricsUnavailable)},
		{"hooks again", hooksAgain},
		{"judged", judged},
	},
	v1alpha1.RolloutPromoting: {
		{"previous gone", previousGone},
		{"superseded", superseded},
		{"taken back", takenBack},
		{"live lost", liveLost},
		{"promotion not in force", promotionNotInForce},
		{"promotion in force", promotionInForce},
	},
	v1alpha1.RolloutBaking: {
		{"previous gone", previousGone},
		{"superseded", superseded},
		{"taken back", takenBack},
		{"live lost", liveLost},
		{"paused on request", bakesPaused},
		{"baking without metrics", bakingWithoutMetrics},
		{"metrics again", resumes(v1alpha1.ReasonMetricsUnavailable)},
		{"nothing to take back", resumes(v1alpha1.ReasonStandbyStarting)},
		{"baked", baked},
	},
}

// resting is where requests reach one revision, until another is requested.
var resting = []rule{
	{"gives back", givesBack},
	{"route keeps the one before", routeKeepsPrevious},
	{"target unknown", targetUnknown},
	{"experiment not requested", experimentNotRequested},
	{"experiment may not begin", experimentBlocked},
	{"experiment begins", experimentBegins},
	{"requests finish", requestsFinish},
	{"settled", settled},
	{"stays rolled back", staysRolledBack},
	{"rollout may not begin", rolloutBlocked},
	{"slot not free", slotNotFree},
	{"rollout begins", rolloutBegins},
}

// rulesWhileClockIsBack are those that time has no part in. All others wait for the time to come again.
var rulesWhileClockIsBack = map[v1alpha1.RolloutPhase][]rule{
	v1alpha1.RolloutStepping:  {{"withdrawn", withdrawn}, {"candidate fails", candidateFails}, {"candidate lost", candidateLost}},
	v1alpha1.RolloutPromoting: {{"previous gone", previousGone}, {"superseded", superseded}, {"taken back", takenBack}, {"live lost", liveLost}},
	v1alpha1.RolloutBaking:    {{"previous gone", previousGone}, {"superseded", superseded}, {"taken back", takenBack}, {"live lost", liveLost}},
}

// An Outcome of one pass over the rules.
type Outcome struct {
	timers

	Ledger Ledger

	// Moved reports whether a phase began, and Message what happens in the phase.
	Moved   bool
	Message string

	// Waits is what a requested experiment waits for, if any.
	Waits Waiting

	// soaks is until when a share of requests, or the bake, has to last, or zero when it has.
	soaks time.Time

	// size is the share of requests that the candidate is sized for.
	size int32
}

// advance a ledger by one transition, if any is due.
func advance(f Facts, l Ledger) Outcome {
	l = l.within(f).suffering(f.trouble(l), f.clock()).starting(f).hooked(f)
	of, o := rules, Outcome{Ledger: l, timers: f.hookWake(l), size: f.usualSize(l)}
	if l.Entered.After(f.clock()) {
		// Its size is not a matter of time: what is too small while the clock is behind would seem late when it is right again.
		of, o.size = rulesWhileClockIsBack, max(o.size, l.Next)
		if of[l.Standing()] == nil {
			o.timers = o.with(at(l.Entered))
		}
	}
	for _, r := range of[l.Standing()] {
		t, decides := r.when(f, l)
		o.timers = o.with(t.timers)
		if decides {
			return o.after(f, t).foreseen(f)
		}
	}
	return o
}

// foreseen is a transition as the next pass would report it, if it saw what this one sees: what the phase waits for, and until when.
// Else the report would change with that pass, and have Crossplane apply every object once more.
func (o Outcome) foreseen(f Facts) Outcome {
	if !o.Moved {
		return o
	}
	if o.Ledger.Evidence != f.Ledger.Evidence {
		f.Evidence = Evidence{Asked: f.Evidence.Asked, Omitted: f.Evidence.Omitted}
	}
	f.Ledger = o.Ledger
	l := o.Ledger.suffering(f.trouble(o.Ledger), f.clock())
	next := Outcome{Ledger: l, Moved: true, size: o.size}
	for _, r := range rules[l.Standing()] {
		t, decides := r.when(f, l)
		if next.timers = next.with(t.timers); !decides {
			continue
		}
		if t.to != "" {
			return o
		}
		next = next.after(f, t)
		next.Moved, next.size = true, o.size
		return next
	}
	next.Message = ""
	return next
}

// after a transition.
func (o Outcome) after(f Facts, t transition) Outcome {
	before := o.Ledger
	o.Ledger = apply(o.Ledger, t, f.clock())
	if t.to != "" {
		o.Ledger = o.Ledger.notifying(f, before)
	}
	o.Moved, o.Message, o.Waits, o.soaks = t.to != "", t.message, t.waits, t.soaks
	if t.report != "" {
		o.Message = t.report
	}
	if t.size != 0 {
		o.size = t.size
	}
	return o
}
