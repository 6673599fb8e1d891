// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/experiment"
	"github.com/capstan-dev/capstan/function/observed"
)

// How the pods of a slot do.
const (
	podsReady    = iota // all of them, as soon as there are any
	podsStarting        // those there were, and new ones not yet
	podsCrashing        // none, and the provider finds why
	podsPending         // those there were, and new ones find no room
	podModes
)

// How a Gateway does.
const (
	gatewayAccepts = iota
	gatewayRefuses
	gatewaySleeps
	gatewayModes
)

// A trial is a world in which anything may happen in any order, and beside it what
// may come of it, which is told in plain words without the ledger of the machine:
// which share of callers each revision has a right to.
type trial struct {
	*world

	tb testing.TB

	// wish is what the spec says.
	wish wish

	// done is the history, for whoever has to understand a failure.
	done []string

	// pods of each slot: how they do, of which revision they are and how many are ready.
	mode    map[string]int
	runs    map[string]string
	ready   map[string]int64
	gateway int

	// canary is what the provider has seen of the epoch that it was given, as it was given, and shares are those in force when
	// each epoch was given.
	canary *observev1alpha1.CanaryObservation
	given  map[int64]grant

	// rights of revisions: the greatest share of callers each may have, as far as it is known by evidence.
	passed map[string]int32

	// latest epoch that anything remembers, and the status of earlier passes.
	latest   int64
	statuses []map[string]any

	// failed revisions and how often they were tried.
	failed map[string]v1alpha1.FailedRevision

	// exposed is the share of callers that could reach each revision, by the way they come, when it was looked at last.
	exposed map[string]float64

	// ran are the ids of experiments that have ended, as the ledger remembered them last.
	ran map[string]bool

	// applied last, by resource.
	applied map[string]string

	// load of all requests, as the number of replicas that they need, and how many replicas of a slot become ready at a time, or
	// 0 for all of them.
	load float64
	slow map[string]int64

	// seen is the load that the autoscalers knew last. While they change sizes, and replicas start, what it has risen by is not known.
	seen float64

	// base is how many replicas served all requests before a candidate got its first share.
	base int32

	// amnesia is whether what was remembered of the rollout under way was lost.
	amnesia bool

	broken bool
}

// A grant is the revision that evidence is gathered for, and its share of callers.
type grant struct {
	revision string
	weight   int32
}

// A wish is a spec in short.
type wish struct {
	image    string
	replicas int
	routed   bool
	scaled   bool
	invalid  bool
	bare     bool // no lifecycle
	steps    []int
	approval string
	approve  string
	promote  string
	abort    string
	retry    string
	pause    bool
	noData   string
	standby  int
	provider bool // keeps the autoscalers
	capacity v1alpha1.Capacity

	// mirror copies requests first, with evidence as of any step.
	mirror bool

	// experiment by its id, and the percent of callers that it gives to arm B.
	experiment string
	percent    int
}

func (w wish) spec() map[string]any {
	spec := map[string]any{"image": w.image, "replicas": float64(w.replicas)}
	if w.routed {
		spec["route"] = map[string]any{"gateway": map[string]any{"name": "shared", "namespace": "gateway"}}
	}
	if w.scaled {
		spec["scaling"] = map[string]any{"minReplicas": float64(2), "maxReplicas": float64(12)}
	}
	if w.invalid {
		spec["image"] = "a b"
	}
	if w.bare {
		return spec
	}
	lc := map[string]any{"soak": "1m", "deadline": "20m", "bake": "5m"}
	steps := []any{}
	for _, s := range w.steps {
		steps = append(steps, float64(s))
	}
	if len(steps) == 1 {
		lc["canaryWeight"] = steps[0]
	} else {
		lc["steps"] = steps
	}
	for field, value := range map[string]string{"approval": w.approval, "onNoData": w.noData} {
		if value != "" {
			lc[field] = value
		}
	}
	requests := map[string]any{"pause": w.pause}
	for field, value := range map[string]string{"promote": w.promote, "abort": w.abort, "retry": w.retry} {
		if value != "" {
			requests[field] = value
		}
	}
	if w.approve != "" {
		requests["approve"] = []any{w.approve}
	}
	spec["rollout"] = requests
	if w.room() != v1alpha1.CapacitySurge {
		lc["capacity"] = string(w.room())
	}
	if w.standby > 0 && w.room() == v1alpha1.CapacitySurge {
		lc["standbyReplicas"] = float64(w.standby)
	}
	if w.mirror && w.routed && w.room() == v1alpha1.CapacitySurge {
		lc["mirrorPercent"] = float64(100)
	}
	if w.experiment != "" && w.routed {
		spec["experiment"] = map[string]any{
			"id": w.experiment, "armB": map[string]any{"image": "b"}, "assignment": map[string]any{"percent": float64(w.percent)},
			"metric": map[string]any{"kind": "SuccessRatio"}, "stop": map[string]any{"duration": "2h"},
		}
	}
	spec["lifecycle"] = lc
	return spec
}

// room for a candidate that the spec asks for. An autoscaler, and a single replica that would be lent, are refused with it.
func (w wish) room() v1alpha1.Capacity {
	if w.capacity == "" || w.scaled || w.bare || w.capacity == v1alpha1.CapacityBorrow && w.replicas < 2 {
		return v1alpha1.CapacitySurge
	}
	return w.capacity
}

// next share of callers after one.
func (w wish) next(weight int32) int32 {
	for _, s := range w.steps {
		if int32(s) > weight {
			return int32(s)
		}
	}
	return 100
}

// servers are shared: each compiles the schemas of Kubernetes.
var server = composetest.NewServer()

// newTrial of an Algorithm whose first revision serves.
func newTrial(tb testing.TB, first wish) *trial {
	tb.Helper()
	w := newWorld(tb, "{image: x}")
	w.server = server
	if first.provider {
		w.provided(compose.Available)
	}
	w.offers(feature("HTTPRouteRequestMirror"))
	tr := &trial{
		world: w, tb: tb, wish: first, mode: map[string]int{}, runs: map[string]string{}, ready: map[string]int64{},
		given: map[int64]grant{}, passed: map[string]int32{}, failed: map[string]v1alpha1.FailedRevision{}, exposed: map[string]float64{}, applied: map[string]string{}, ran: map[string]bool{},
		load: 1, slow: map[string]int64{},
	}
	tr.asks()
	for range 4 {
		tr.round()
	}
	return tr
}

// asks for what is wished.
func (tr *trial) asks() {
	xr := composetest.Object(maps.Clone(tr.request.Composite.Map()))
	xr["spec"] = tr.separate(tr.wish.spec())
	tr.request.Composite = xr
}

// failf fails the trial, once.
func (tr *trial) failf(rule, format string, words ...any) {
	tr.tb.Helper()
	if !tr.broken {
		tr.broken = true
		tr.tb.Errorf("%s: %s\nafter: %s", rule, fmt.Sprintf(format, words...), strings.Join(tr.done, "; "))
	}
}

func (tr *trial) notef(format string, words ...any) {
	tr.done = append(tr.done, fmt.Sprintf(format, words...))
}

// memory is what the latest of the ledgers says that are left.
func (tr *trial) memory() (rollout.Ledger, bool) {
	var (
		latest rollout.Ledger
		known  bool
	)
	for _, text := range []string{
		ledgerText(tr.request.Observed[names.Service]), ledgerText(tr.request.Observed[names.Route]),
		compose.Text(tr.request.Composite.Map(), "status", "rollout", "ledger"),
	} {
		if l, ok := rollout.ParseLedger(text); ok && (!known || l.Epoch > latest.Epoch) {
			latest, known = l, true
		}
	}
	return latest, known
}

// decided is what a plan's ledger says.
func (tr *trial) decided(p *compose.Plan) (rollout.Ledger, bool) {
	o := object(tr.tb, p, names.Service)
	if o == nil {
		return rollout.Ledger{}, false
	}
	return rollout.ParseLedger(ledgerText(o))
}

// right of a revision: the greatest share of callers that it may be given now.
func (tr *trial) right(revision string, l rollout.Ledger) int32 {
	target := rolloutTarget(tr.tb, tr.world)
	if t := l.Experiment; t != nil && l.Candidate == revision {
		if t.ID != tr.wish.experiment || tr.ran[t.ID] {
			return 0
		}
		return int32(tr.wish.percent)
	}
	switch {
	case revision == l.Revision, revision == l.Previous, l.Revision == "":
		return 100
	case tr.wish.promote == revision:
		return 100
	case tr.wish.bare:
		// Who removes the lifecycle does not ask for what was rolled back.
		if _, failed := tr.failed[revision]; failed {
			return 0
		}
		return 100
	}
	tried := l.Candidate == revision && slices.Contains([]v1alpha1.RolloutPhase{
		v1alpha1.RolloutPreparing, v1alpha1.RolloutMirroring, v1alpha1.RolloutStepping, v1alpha1.RolloutPromoting, v1alpha1.RolloutBaking,
	}, l.Standing())
	if f, ok := tr.failed[revision]; ok && !tried {
		if tr.wish.retry != fmt.Sprintf("%s#%d", revision, f.Attempts+1) || tr.request.Now.Before(f.RetryAfter.Time) {
			return 0
		}
	}
	if revision != target && revision != l.Candidate {
		return 0
	}
	// Beside a single replica there is no smaller share than half.
	single := !tr.wish.routed && runningIn(tr.request.Observed[names.Deployment(l.Slot)]).Size <= 1 && tr.wish.next(l.Weight) < 50
	// One replica of two that are exchanged has half of the requests, and what stops first shares with none.
	single = single || !tr.wish.routed && l.Capacity == v1alpha1.CapacityBorrow && tr.wish.replicas == 2 && tr.wish.next(l.Weight) < 50
	single = single || l.Capacity == v1alpha1.CapacityRecreate
	if tr.wish.noData == "Continue" || single {
		return 100
	}
	if seen, ok := tr.passed[revision]; ok {
		return tr.wish.next(seen)
	}
	return tr.wish.next(0)
}

// runningIn an observed Deployment.
func runningIn(o compose.Object) rollout.Slot {
	s := rollout.Slot{Deployment: observed.NewDeployment(o)}
	if o != nil {
		s.Revision = compose.Text(o.Map(), "metadata", "annotations", names.AnnotationRevision)
	}
	return s
}

// rolloutTarget is the revision that the spec asks for.
func rolloutTarget(tb testing.TB, w *world) string {
	tb.Helper()
	f, err := gather(w.request)
	if err != nil || len(f.problems) > 0 {
		return ""
	}

	// Only the name counts, whether or not it is awaited.
	named, err := target{spec: &f.spec, written: &f.written}.named()
	if err != nil {
		tb.Fatal(err)
	}
	return named.revision
}

// pass plans, and holds the plan to what must be true of all of them.
func (tr *trial) pass() *compose.Plan {
	tr.tb.Helper()
	p := tr.plan()
	tr.holdsAlways(p)
	tr.holdsRollout(p)
	tr.holdsSilence(p)
	tr.holdsClock(p)
	tr.holdsSlots(p)
	tr.holdsRoom(p)
	return p
}

// holdsAlways: I1, I7 and I8.
func (tr *trial) holdsAlways(p *compose.Plan) {
	tr.tb.Helper()
	if marshalled(tr.tb, p) != marshalled(tr.tb, tr.plan()) {
		tr.failf("I1", "the same request has two plans")
	}
	st := rolloutOf(tr.tb, p)
	status := marshalled(tr.tb, &compose.Plan{Status: p.Status})
	if len(status) > 64<<10 {
		tr.failf("I8", "the status has %d bytes", len(status))
	}
	if len(p.Events) > 1 {
		tr.failf("I8", "one pass tells %d events", len(p.Events))
	}
	// While evidence is gathered, the provider reports what changes a decision: then the end of its promise counts.
	longest := time.Minute
	if l, ok := tr.decided(p); ok && l.Evidence != 0 && l.Next == 0 {
		longest = 2 * time.Minute
	}
	if tr.canary != nil && tr.canary.LookedAt.After(tr.request.Now) {
		// A look of a time to come counts until then.
		longest = time.Hour
	}
	if p.TTL < time.Second || st.Phase == v1alpha1.RolloutStepping && p.TTL > longest && !tr.wish.invalid && tr.wish.experiment == "" {
		tr.failf("I8", "TTL %s in phase %s", p.TTL, st.Phase)
	}
	before, known := tr.memory()
	after, planned := tr.decided(p)
	if !known || !planned {
		return
	}

	// Epochs that evidence was gathered for are not given again to anything else.
	remembered := max(before.Epoch, observed.NewAnalysis(tr.request.Observed[names.Analysis]).Epoch())
	switch moved := after.Epoch - remembered; {
	case moved > 1:
		tr.failf("I8", "one pass makes %d transitions", moved)
	case moved == 0 && len(p.Events) > 0 && !tr.wish.bare:
		tr.failf("I8", "a pass without a transition tells %q", p.Events[0].Message)
	}
	if after.Epoch != before.Epoch {
		return
	}

	// A clock that is further off than an hour was wrong before.
	back := *tr.world
	back.request.Now = tr.request.Now.Add(-time.Duration(1+len(tr.done)%60) * time.Minute)
	if earliest := before.Entered.Add(-time.Hour); back.request.Now.Before(earliest) {
		back.request.Now = earliest
	}
	then, ok := tr.decided(back.plan())
	// At that time the latest look was not old yet.
	fresh := then.Reason == v1alpha1.ReasonResumed && tr.canary != nil && tr.canary.LookedAt.After(before.Entered)
	if ok && !fresh && then.Epoch != before.Epoch && back.request.Now.Before(tr.request.Now) {
		tr.failf("I7", "a clock that goes backwards makes a transition from %s %s to %s %s", before.Phase, before.Reason, then.Phase, then.Reason)
	}
}

// holdsRollout: I2, I3, I5 and I6.
func (tr *trial) holdsRollout(p *compose.Plan) {
	tr.tb.Helper()
	before, known := tr.memory()
	after, planned := tr.decided(p)
	if !known || !planned {
		return
	}

	// Who is sent there by the Service that there is meets nothing new.
	byService, _ := tr.reached()
	reached := byService[after.Slot] == 100 && tr.runs[after.Slot] == after.Revision
	if after.Revision != before.Revision && before.Revision != "" && after.Revision != before.Previous && !reached {
		if r := tr.right(after.Revision, before); r < 100 {
			tr.failf("I2", "all callers go to %s, which has a right to %d %% (%s)", after.Revision, r, after.Reason)
		}
	}
	was := int32(0)
	if before.Standing() == v1alpha1.RolloutStepping && before.Candidate == after.Candidate {
		was = before.Weight
	}
	if after.Standing() == v1alpha1.RolloutStepping && after.Weight > was && after.Reason != v1alpha1.ReasonStateLost {
		if r := tr.right(after.Candidate, after); after.Experiment != nil && after.Weight > r {
			tr.failf("I2", "%d %% of callers go to arm B, which has a right to %d %%", after.Weight, r)
		} else if r := tr.right(after.Candidate, before); after.Experiment == nil && after.Weight > r {
			rule := "I2"
			if _, failed := tr.failed[after.Candidate]; failed {
				rule = "I3"
			}
			tr.failf(rule, "%d %% of callers go to %s, which has a right to %d %%", after.Weight, after.Candidate, r)
		}
		there, live := tr.ready[names.Other(after.Slot)], tr.ready[after.Slot]
		if routed := p.Objects[names.Route].Object != nil; !routed && there > 1 && 100*there > int64(after.Weight)*(there+live) {
			tr.failf("I2", "%d %% of callers are to go to %s, and %d of %d replicas are its own", after.Weight, after.Candidate, there, there+live)
		}
		if n := int64(tr.wish.replicas); p.Objects[names.Route].Object != nil && !tr.wish.scaled && after.Capacity == "" && 100*there < n*int64(after.Weight) {
			tr.failf("I5", "%d %% of callers go to %d replicas of %d", after.Weight, there, n)
		}
		if there == 0 {
			tr.failf("I5", "%d %% of callers go to slot %s, where no pod serves", after.Weight, names.Other(after.Slot))
		}
	}
	grown := min(int64(tr.wish.replicas), max(1, tr.ready[before.Slot]))
	if forth := after.Slot != before.Slot && after.Phase == v1alpha1.RolloutPromoting; forth && !tr.wish.scaled && tr.ready[after.Slot] < grown {
		tr.failf("I5", "all callers go to slot %s, where %d pods serve instead of %d", after.Slot, tr.ready[after.Slot], grown)
	}
	if after.Slot != before.Slot && before.Revision != "" && tr.ready[after.Slot] == 0 && after.Capacity != v1alpha1.CapacityRecreate && tr.wish.replicas > 0 {
		tr.failf("I5", "all callers go to slot %s, where no pod serves", after.Slot)
	}
	if after.Epoch > before.Epoch && after.Phase == v1alpha1.RolloutRollingBack {
		tr.holdsReason(before, after)
	}
	total := int64(0)
	o := object(tr.tb, p, names.Route)
	if rules := compose.List(o, "spec", "rules"); len(rules) > 0 {
		for _, b := range compose.List(rules[len(rules)-1].(map[string]any), "backendRefs") {
			total += compose.Number(b.(map[string]any), -1000, "weight")
		}
		if total != 100 {
			tr.failf("I5", "weights sum to %d", total)
		}
		if mirrored := strings.Contains(marshalled(tr.tb, &compose.Plan{Status: o}), "requestMirror"); mirrored && (after.Standing() != v1alpha1.RolloutMirroring || !tr.wish.mirror) && !tr.wish.invalid {
			tr.failf("I5", "requests are copied in phase %s", after.Phase)
		}
	}
}

// lookedAt is when anybody looked last at what the ledger's epoch is about. What comes from a clock that is hours ahead tells
// nothing.
func (tr *trial) lookedAt(l rollout.Ledger) time.Time {
	last := l.Entered
	if c := tr.canary; c != nil && c.Epoch == l.Evidence && c.LookedAt.After(last) && !c.LookedAt.After(tr.request.Now.Add(time.Hour)) {
		last = c.LookedAt.Time
	}
	return last
}

// holdsSilence: I6. Where nobody has looked for four intervals nothing goes on by what was seen before, and it holds.
func (tr *trial) holdsSilence(p *compose.Plan) {
	tr.tb.Helper()
	before, known := tr.memory()
	after, planned := tr.decided(p)
	// A bake of five minutes ends by a look at its end.
	if known && planned && after.Epoch > before.Epoch && after.Reason == v1alpha1.ReasonBaked && tr.canary != nil && tr.wish.promote != before.Candidate &&
		tr.lookedAt(before).Before(before.Began.Add(5*time.Minute)) {
		tr.failf("I6", "it has baked, and the last look was at %s", tr.lookedAt(before))
	}
	held := before.Phase == v1alpha1.RolloutHolding && before.Reason == v1alpha1.ReasonMetricsUnavailable
	silent := held || tr.request.Now.Sub(tr.lookedAt(before)) >= 2*time.Minute
	waits := before.Standing() == v1alpha1.RolloutStepping || before.Standing() == v1alpha1.RolloutMirroring || before.Standing() == v1alpha1.RolloutBaking
	if !known || !planned || !silent || !waits || before.Evidence == 0 || before.Next > 0 || tr.wish.invalid || tr.wish.bare {
		return
	}

	// That its time has begun again does not mean that anybody looks again. Of a clock that was further off than an hour it is not known.
	unheard := tr.canary == nil || tr.canary.Epoch != before.Evidence || !tr.canary.LookedAt.After(before.Entered)
	if held && after.Reason == v1alpha1.ReasonResumed && unheard && tr.wish.promote != before.Candidate && before.Entered.Sub(tr.request.Now) <= time.Hour {
		tr.failf("I6", "nobody has looked since %s, and it resumes", before.Entered)
	}
	if held {
		return
	}
	if after.Epoch > before.Epoch && slices.Contains([]xpv2.ConditionReason{
		v1alpha1.ReasonPassed, v1alpha1.ReasonBaked,
	}, after.Reason) && tr.wish.promote != before.Candidate && before.Experiment == nil {
		tr.failf("I6", "nobody has looked since %s, and it goes on to %s for %s", tr.lookedAt(before), after.Phase, after.Reason)
	}

	// Who takes callers back waits for pods that can take them.
	well := before.Standing() != v1alpha1.RolloutBaking || tr.wish.promote != before.Candidate && tr.ready[names.SlotA] > 0 && tr.ready[names.SlotB] > 0
	if well && after.Epoch == before.Epoch && after.Phase != v1alpha1.RolloutHolding {
		tr.failf("I6", "nobody has looked since %s, and it is still %s", tr.lookedAt(before), after.Phase)
	}
}

// holdsClock: I7. Before the time that a phase was entered nothing but a fault or somebody moves it, and what is more than an
// hour ahead is from a clock gone wrong, which nobody waits for.
func (tr *trial) holdsClock(p *compose.Plan) {
	tr.tb.Helper()
	before, known := tr.memory()
	after, planned := tr.decided(p)
	ahead := before.Entered.Sub(tr.request.Now)
	if !known || !planned || ahead <= 0 || tr.wish.invalid || tr.wish.bare {
		return
	}
	// Replicas that are to take callers back start because of a fault or somebody, too.
	taken := after.Phase == v1alpha1.RolloutRollingBack || after.Phase == v1alpha1.RolloutDraining ||
		after.Reason == v1alpha1.ReasonNotServing || after.Reason == v1alpha1.ReasonComparing || after.Reason == v1alpha1.ReasonStandbyStarting
	// A pass whose ledger was lost may have asked for evidence already: its epoch is not given again.
	remembered := max(before.Epoch, observed.NewAnalysis(tr.request.Observed[names.Analysis]).Epoch())
	if ahead < time.Hour && after.Epoch > remembered && !taken {
		tr.failf("I7", "the clock is %s behind, and it goes from %s to %s for %s", ahead, before.Phase, after.Phase, after.Reason)
	}
	for what, at := range map[string]time.Time{"entered": after.Entered, "began": after.Began, "in trouble": after.TroubleAt} {
		if at.Sub(tr.request.Now) > time.Hour {
			tr.failf("I7", "it is to have %s at %s, which is %s ahead", what, at, at.Sub(tr.request.Now))
		}
	}
}

// holdsReason of a rollback: I6.
func (tr *trial) holdsReason(before, after rollout.Ledger) {
	tr.tb.Helper()
	slot := names.Other(before.Slot)
	if before.Standing() == v1alpha1.RolloutPromoting || before.Standing() == v1alpha1.RolloutBaking {
		slot = before.Slot
	}
	if before.Held == v1alpha1.RolloutRollingBack {
		return // It was decided before it was held.
	}
	why := ""
	switch after.Reason {
	case v1alpha1.ReasonArmABetter, v1alpha1.ReasonArmBBetter, v1alpha1.ReasonNoDifference:
		if tr.canary == nil || tr.canary.Epoch != before.Evidence || tr.canary.Experiment == nil {
			why = "nothing was found in its epoch"
			break
		}
		for _, c := range tr.canary.Checks {
			passed := strings.HasSuffix(c.Verdicts, "PPP")
			if after.Reason == v1alpha1.ReasonArmABetter {
				passed = len(c.Verdicts) > 2 && !strings.HasSuffix(c.Verdicts, "F")
			}
			if !passed {
				why = "guardrail " + c.Name + " has not told yet: " + c.Verdicts
			}
		}
	case v1alpha1.ReasonDurationOver:
		if tr.request.Now.Before(before.Began.Add(2 * time.Hour)) {
			why = "its time is not over"
		}
	case v1alpha1.ReasonMirrorNotOffered:
		if !tr.wish.mirror {
			why = "nobody asks for copies"
		}
	case v1alpha1.ReasonExperimentRemoved, v1alpha1.ReasonExperimentEdited, v1alpha1.ReasonGatewayAPIMissing:
		if e := before.Experiment; e == nil || e.ID == tr.wish.experiment && tr.wish.routed && e.Key == rollout.KeyOf(rolloutExperiment(tr)) {
			why = "the spec asks for it as it is"
		}
	case v1alpha1.ReasonMetricFailed, v1alpha1.ReasonGuardrailViolated:
		if tr.canary == nil || tr.canary.Epoch != before.Evidence || !slices.ContainsFunc(tr.canary.Checks, failing) {
			why = "nothing failed in its epoch"
		}
	case v1alpha1.ReasonCrashLooping:
		if tr.ready[slot] > 0 && tr.mode[slot] == podsReady {
			why = "all of its pods serve"
		}
	case v1alpha1.ReasonNotServing:
		if d := runningIn(tr.request.Observed[names.Deployment(slot)]); d.Exists && d.Available > 0 {
			why = "some of its pods serve"
		}
	case v1alpha1.ReasonInconclusive, v1alpha1.ReasonMetricsUnavailable:
		if tr.wish.noData != string(v1alpha1.NoDataRollback) {
			why = "nobody asked to roll back without data"
		}
	case v1alpha1.ReasonAborted:
		if tr.wish.abort != before.Candidate {
			why = "nobody asked to"
		}
	case v1alpha1.ReasonReverted, v1alpha1.ReasonSuperseded:
		if rolloutTarget(tr.tb, tr.world) == before.Candidate && before.Experiment == nil {
			why = "the spec asks for it"
		}
	case v1alpha1.ReasonStateLost:
		if tr.runs[slot] == before.Candidate {
			why = "it runs there"
		}
	default:
		if tr.mode[slot] == podsReady && tr.ready[slot] > 0 {
			why = "its pods serve"
		}
	}
	if why != "" {
		tr.failf("I6", "%s is rolled back for %s, but %s", before.Candidate, after.Reason, why)
	}
	if before.Experiment != nil {
		if len(after.Failed) > len(before.Failed) {
			tr.failf("I3", "arm B of an experiment is condemned for %s", after.Reason)
		}
		if after.Experiment != nil || !slices.Contains(after.Experimented, before.Experiment.ID) || after.Compared == nil {
			tr.failf("I3", "an experiment ended for %s, and nothing remembers it", after.Reason)
		}
		return
	}
	blamed := !slices.Contains([]xpv2.ConditionReason{
		v1alpha1.ReasonReverted, v1alpha1.ReasonMirrorNotOffered, v1alpha1.ReasonSuperseded, v1alpha1.ReasonStateLost,
	}, after.Reason)
	if i := slices.IndexFunc(after.Failed, func(f v1alpha1.FailedRevision) bool { return f.Revision == before.Candidate }); blamed && i < 0 {
		tr.failf("I3", "%s is rolled back for %s and is not among the failed", before.Candidate, after.Reason)
	}
}

// rolloutExperiment that the spec asks for, with its defaults.
func rolloutExperiment(tr *trial) *v1alpha1.ExperimentSpec {
	e, problems := experiment.Read(tr.experiments[tr.wish.experiment])
	if len(problems) > 0 {
		return &v1alpha1.ExperimentSpec{Stop: &v1alpha1.ExperimentStop{}}
	}
	return &e
}

// failing: two failures at the end, or three of the last five.
func failing(c observev1alpha1.CanaryCheck) bool {
	v := c.Verdicts
	return strings.HasSuffix(v, "FF") || strings.Count(v[max(len(v)-5, 0):], "F") > 2
}

// reached tells which slots callers can reach by what is observed, and by which share in percent. Of a Service for both slots the
// pods decide.
func (tr *trial) reached() (byService, byRoute map[string]float64) {
	byService, byRoute = map[string]float64{}, map[string]float64{}
	if o := tr.request.Observed[names.Service]; o != nil {
		switch slot := compose.Text(o.Map(), "spec", "selector", names.LabelSlot); {
		case slot != "":
			byService[slot] = 100
		case tr.ready[names.SlotA]+tr.ready[names.SlotB] > 0:
			all := float64(tr.ready[names.SlotA] + tr.ready[names.SlotB])
			byService[names.SlotA], byService[names.SlotB] = 100*float64(tr.ready[names.SlotA])/all, 100*float64(tr.ready[names.SlotB])/all
		}
	}
	if tr.request.Observed[names.Route] != nil {
		route := observed.NewHTTPRoute(tr.request.Observed[names.Route])
		for _, slot := range names.Slots {
			byRoute[slot] = float64(route.Weights[names.Names{Name: "reco"}.ServiceOf(slot)])
		}
	}
	return byService, byRoute
}

// holdsSlots: I4, I9, and I11: the provider reports the load while requests reach two revisions, and at no other time.
func (tr *trial) holdsSlots(p *compose.Plan) {
	tr.tb.Helper()
	if tr.wish.replicas == 0 && !tr.wish.scaled {
		return
	}
	byService, byRoute := tr.reached()
	for _, slot := range []string{names.SlotA, names.SlotB} {
		d := runningIn(tr.request.Observed[names.Deployment(slot)])
		o := object(tr.tb, p, names.Deployment(slot))
		n := compose.Number(o, 1, "spec", "replicas")
		if ends := o == nil || n == 0; ends && !tr.refuses() && d.Size > 0 && (byRoute[slot] > 0 || byService[slot] > 0) && tr.ready[slot] > 0 {
			tr.failf("I4", "%.0f %% of callers by the Service and %.0f %% by the route reach slot %s, and its pods end: %s",
				byService[slot], byRoute[slot], slot, scene(tr.tb, p))
		}
		_, given := compose.Map(o, "spec")["replicas"]
		// More than it has may be given, when it has to have them at once.
		if hpa := p.Objects[tr.scaler(slot)].Object != nil && tr.request.Observed[tr.scaler(slot)] != nil; hpa && given && d.Autoscaled && d.Size > 0 && n <= d.Size && !tr.wish.invalid {
			tr.failf("I9", "slot %s has %d replicas by the plan, and an autoscaler", slot, n)
		}
		if l, _ := tr.decided(p); p.Objects[names.Autoscaler(slot)].Object != nil && !tr.wish.invalid {
			asked := compose.Map(object(tr.tb, p, names.Autoscaler(slot)), "spec", "forProvider")["reportNeeds"] == true
			if asked != (l.Standing() == v1alpha1.RolloutStepping && l.Weight > 0) {
				tr.failf("I11", "the load of slot %s is reported: %t, in %s at %d %%", slot, asked, l.Standing(), l.Weight)
			}
		}
	}
}

// write some of a plan: the objects that the mask says, and the status.
func (tr *trial) write(p *compose.Plan, writes func(resource string) bool, status bool) {
	tr.tb.Helper()
	if p == nil {
		return
	}
	next := map[string]compose.Object{}
	for resource, o := range tr.request.Observed {
		if _, stays := p.Objects[resource]; stays {
			next[resource] = o
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(p.Objects)) {
		if !writes(resource) {
			continue
		}

		// What was applied last and has not changed since is not applied again.
		text := marshalled(tr.tb, &compose.Plan{Status: p.Objects[resource].Object})
		if next[resource] != nil && tr.applied[resource] == text {
			continue
		}
		applied, err := tr.server.Compose(tr.request.Observed, &compose.Plan{Objects: map[string]compose.Desired{resource: p.Objects[resource]}})
		if err != nil {
			tr.tb.Fatal(err)
		}
		next[resource], tr.applied[resource] = applied[resource], text
	}
	borne, kept := tr.borne(tr.load), tr.kept()
	before, _ := tr.memory()
	tr.request.Observed = next
	tr.holdsCapacity(before, borne)
	tr.holdsFloor(before, kept)
	if status {
		tr.told(p)
		tr.statuses = append(tr.statuses, compose.Map(tr.request.Composite.Map(), "status"))
	}
	tr.remembers()
	tr.learns()
	tr.holdsCallers()
}

// slack of what replicas bear: an autoscaler changes nothing for a tenth, and what it reports is rounded.
const slack = 1.15

// borne tells of each way that requests come by whether the replicas that they reach can bear a load.
func (tr *trial) borne(load float64) map[string]bool {
	byService, byRoute := tr.reached()
	out := map[string]bool{}
	for way, shares := range map[string]map[string]float64{"Service": byService, "route": byRoute} {
		for slot, share := range shares {
			if bears, reached := out[way]; share > 0 {
				out[way] = (bears || !reached) && slack*float64(tr.ready[slot]) >= load*share/100
			}
		}
	}
	return out
}

// holdsCapacity: I10. What is written takes no request to where too few replicas serve, if as many as they need served before.
// An autoscaler follows the load; with a fixed number of replicas nobody says that they are enough.
func (tr *trial) holdsCapacity(was rollout.Ledger, before map[string]bool) {
	tr.tb.Helper()
	l, known := tr.memory()
	if !known || l.Standing() == v1alpha1.RolloutStable {
		tr.amnesia = false
	}
	// Who aborts what bakes goes back to fewer replicas after a while, rather than to none.
	aborted := was.Standing() == v1alpha1.RolloutBaking && was.Candidate == tr.wish.abort
	// An exchange of replicas has a fixed number of them, also if the spec gets an autoscaler meanwhile: I13 is about that.
	// Where live replicas cannot start, the candidate gets all requests with as many as served them at its last share.
	short := was.Standing() == v1alpha1.RolloutStepping && l.Standing() == v1alpha1.RolloutPromoting && tr.mode[was.Slot] != podsReady
	// What the live revision cannot grow for in two minutes, or before the deadline, goes back all the same.
	late := was.Phase == v1alpha1.RolloutHolding && was.Reason == v1alpha1.ReasonStandbyStarting && tr.request.Now.Sub(was.Entered) >= 2*time.Minute
	if tr.amnesia || aborted || short || late || !tr.wish.scaled || tr.wish.bare || tr.wish.invalid || was.Capacity == v1alpha1.CapacityBorrow {
		return
	}
	load := min(tr.load, tr.seen)
	if faults := []xpv2.ConditionReason{
		v1alpha1.ReasonMetricFailed, v1alpha1.ReasonGuardrailViolated, v1alpha1.ReasonDrifted, v1alpha1.ReasonCrashLooping, v1alpha1.ReasonAborted,
	}; l.Phase == v1alpha1.RolloutRollingBack && slices.Contains(faults, l.Reason) && was.Standing() != v1alpha1.RolloutBaking {
		// A candidate that fails loses its share at once, to as many replicas as served all requests before. What the load has risen
		// by since starts in the same pass.
		load = min(load, tr.borneBy(l.Slot))
	} else if back := l.Phase == v1alpha1.RolloutRollingBack || l.Reason == v1alpha1.ReasonComparing; back && was.Standing() == v1alpha1.RolloutPromoting {
		// The revision before has just served all of them.
		load = min(load, tr.borneBy(names.Other(was.Slot)))
	}
	after := tr.borne(load)
	byService, byRoute := tr.reached()
	for _, way := range []string{"Service", "route"} {
		if bears, reached := after[way]; before[way] && reached && !bears {
			tr.failf("I10", "requests that need %.1f replicas go by the %s to %v of the Service and %v of the route, where %v serve: %s %s",
				load, way, byService, byRoute, tr.ready, l.Phase, l.Reason)
		}
	}
}

// borneBy the revision in a slot: as many replicas as served all requests before a rollout, as far as nothing happened to them since.
func (tr *trial) borneBy(slot string) float64 {
	if tr.mode[slot] != podsReady || tr.slow[slot] > 0 {
		return min(float64(tr.base), 1)
	}
	return float64(tr.base)
}

// refuses reports whether the live revision may stop before the candidate starts, so that requests are refused.
func (tr *trial) refuses() bool {
	l, _ := tr.memory()
	return l.Capacity == v1alpha1.CapacityRecreate || tr.wish.room() == v1alpha1.CapacityRecreate
}

// holdsRoom: I12. Both revisions together have no more replicas than before, where they are exchanged, and one starts in the place of
// another only after that one has gone. Only one revision has any, where the other stops first.
func (tr *trial) holdsRoom(p *compose.Plan) {
	tr.tb.Helper()
	after, planned := tr.decided(p)
	mode := tr.wish.room()
	if !planned || tr.amnesia || tr.wish.invalid || after.Capacity != mode || after.Experiment != nil {
		return
	}
	var there, then [2]int64
	for i, slot := range names.Slots {
		there[i] = runningIn(tr.request.Observed[names.Deployment(slot)]).Size
		if o := object(tr.tb, p, names.Deployment(slot)); o != nil {
			then[i] = compose.Number(o, 1, "spec", "replicas")
		}
	}
	switch total := int64(tr.wish.replicas); {
	case mode == v1alpha1.CapacityBorrow && then[0]+then[1] > max(total, there[0]+there[1]):
		tr.failf("I12", "there are to be %v replicas, where %d are lent, in %s %s", then, total, after.Phase, after.Reason)
	case mode == v1alpha1.CapacityBorrow && (then[0] > there[0] && then[0]+there[1] > total || then[1] > there[1] && then[1]+there[0] > total):
		tr.failf("I12", "there are to be %v replicas, before those that make room are gone, of %v, in %s %s", then, there, after.Phase, after.Reason)
	case mode == v1alpha1.CapacityRecreate && then[0] > 0 && then[1] > 0 && (there[0] == 0 || there[1] == 0):
		tr.failf("I12", "there are to be %v replicas, and one revision has to stop first, in %s %s", then, after.Phase, after.Reason)
	}
}

// kept reports of each way that requests come by whether no more than one of the replicas is missing that all of them have.
func (tr *trial) kept() map[string]bool {
	byService, byRoute := tr.reached()
	floor, all := float64(tr.wish.replicas-1), 0.0
	serving := map[string]float64{}
	for _, slot := range names.Slots {
		serving[slot] = float64(min(tr.ready[slot], runningIn(tr.request.Observed[names.Deployment(slot)]).Size))
		all += serving[slot]
	}
	out := map[string]bool{"route": tr.request.Observed[names.Route] != nil, "Service": tr.request.Observed[names.Service] != nil}
	for slot, share := range byRoute {
		out["route"] = out["route"] && serving[slot] >= (share-1)*floor/100
	}
	if o := tr.request.Observed[names.Service]; o != nil {
		if slot := compose.Text(o.Map(), "spec", "selector", names.LabelSlot); slot != "" {
			all = serving[slot]
		}
		out["Service"] = byService == nil || all >= floor
	}
	return out
}

// holdsFloor: I13. Where replicas are exchanged, no more than one is missing behind the weight of each revision because of what was
// written.
func (tr *trial) holdsFloor(was rollout.Ledger, before map[string]bool) {
	tr.tb.Helper()
	l, known := tr.memory()
	aborted := was.Standing() == v1alpha1.RolloutBaking && was.Candidate == tr.wish.abort
	// Another way to find room in the spec changes nothing of an exchange, nor does an autoscaler. No lifecycle and a single replica
	// end it.
	lends := !tr.wish.bare && tr.wish.replicas > 1
	borrows := lends && was.Capacity == v1alpha1.CapacityBorrow && l.Capacity == v1alpha1.CapacityBorrow
	if !known || !borrows || tr.amnesia || tr.wish.invalid || aborted || l.Experiment != nil || was.Experiment != nil {
		return
	}
	byService, byRoute := tr.reached()
	for way, kept := range tr.kept() {
		if before[way] && !kept {
			tr.failf("I13", "requests that have %d replicas go by the %s to %v of the Service and %v of the route, where %v serve: %s %s",
				tr.wish.replicas, way, byService, byRoute, tr.ready, l.Phase, l.Reason)
		}
	}
}

// scaler of a slot: the provider keeps its autoscaler where there is one.
func (tr *trial) scaler(slot string) string {
	if tr.request.Kinds[observev1alpha1.AutoscalerGroupVersionKind] == compose.Available {
		return names.Autoscaler(slot)
	}
	return names.ComposedAutoscaler(slot)
}

// autoscale every slot that has an autoscaler by its load. It adds replicas at once, and takes them away only after some time.
func (tr *trial) autoscale(calm bool) {
	byService, byRoute := tr.reached()
	shares := byService
	if tr.request.Observed[names.Route] != nil {
		shares = byRoute
	}
	known := true
	for _, slot := range names.Slots {
		scaler, d := tr.scaler(slot), runningIn(tr.request.Observed[names.Deployment(slot)])
		o := tr.request.Observed[scaler]
		if o == nil || d.Size == 0 {
			continue
		}
		spec, managed := compose.Map(o.Map(), "spec"), scaler == names.Autoscaler(slot)
		asked := managed && compose.Map(spec, "forProvider")["reportNeeds"] == true
		if managed {
			spec = compose.Map(spec, "forProvider", "autoscaler")
		}
		load, use := tr.load*shares[slot]/100, 0.0
		wanted := d.Size
		if n := tr.ready[slot]; n > 0 {
			use = math.Round(70 * load / float64(n))
			if !managed {
				tr.change(scaler, func(o composetest.Object) {
					o["status"] = map[string]any{"currentReplicas": float64(d.Size), "currentMetrics": []any{map[string]any{
						"type": "Resource", "resource": map[string]any{"name": "cpu", "current": map[string]any{"averageUtilization": use}},
					}}}
				})
			}
			// It changes nothing for a tenth.
			if float64(d.Size) < load || float64(d.Size) > 1.1*load && calm {
				wanted = int64(math.Ceil(load - 1e-9))
			}
		}
		least, most := compose.Number(spec, 1, "minReplicas"), compose.Number(spec, 1, "maxReplicas")
		wanted = min(max(wanted, least), most)
		// The provider reports the load of a part of the requests where it is to.
		reports := !managed || asked || shares[slot] == 100
		known = known && (shares[slot] == 0 || tr.ready[slot] == d.Size && wanted == d.Size && reports)
		if managed {
			tr.needs(slot, asked, wanted == d.Size && tr.ready[slot] > 0, float64(d.Size)*use/70)
		}
		if wanted != d.Size {
			tr.scaleIn(slot, float64(wanted))
			delete(tr.applied, names.Deployment(slot))
		}
	}
	if known {
		tr.seen = tr.load
	}
}

// needs are reported by the provider: as soon as they rise, and not for each replica that they fall by.
func (tr *trial) needs(slot string, asked, known bool, load float64) {
	tr.change(names.Autoscaler(slot), func(o composetest.Object) {
		was, reported := compose.Map(o, "status", "atProvider")["needs"].(float64)
		now := math.Ceil(10*load-1e-6) / 10
		switch {
		case !asked:
			delete(o, "status")
		case known && (!reported || now > was || now < 0.9*was && now <= was-1):
			o["status"] = map[string]any{"atProvider": map[string]any{"needs": now}}
		}
	})
}

// remembers what was written: which revisions failed.
func (tr *trial) remembers() {
	l, known := tr.memory()
	if !known || l.Epoch < tr.latest {
		// What is left is not what was known last: whatever it says goes.
		tr.passed, tr.failed, tr.ran = map[string]int32{}, map[string]v1alpha1.FailedRevision{}, map[string]bool{}
		maps.DeleteFunc(tr.given, func(epoch int64, _ grant) bool { return epoch > l.Epoch })
		tr.forgets(l)
	}
	tr.latest = l.Epoch
	switch shared := l.Shared() || l.Standing() == v1alpha1.RolloutPromoting; {
	case shared && tr.base == 0:
		tr.base = l.Base
	case !shared && l.Standing() != v1alpha1.RolloutRollingBack:
		tr.base = 0
	}
	for _, id := range l.Experimented {
		tr.ran[id] = true
	}
	if tr.wish.bare {
		delete(tr.failed, l.Revision)
	}
	if l.Phase == v1alpha1.RolloutDraining && l.Reason == v1alpha1.ReasonBaked {
		delete(tr.failed, l.Candidate)
	}
	for _, f := range l.Failed {
		if f.Attempts >= tr.failed[f.Revision].Attempts {
			tr.failed[f.Revision] = f
		}
	}

	// What is given up begins again.
	switch l.Standing() {
	case v1alpha1.RolloutStepping, v1alpha1.RolloutPreparing, v1alpha1.RolloutMirroring:
		if l.Reason == v1alpha1.ReasonComparing {
			tr.passed = map[string]int32{}
		}
	case v1alpha1.RolloutPromoting, v1alpha1.RolloutBaking:
		// Who had all callers has them again once its pods are back.
		tr.passed = map[string]int32{l.Candidate: 100}
	default:
		tr.passed = map[string]int32{}
	}
}

// forgets what gave rights to revisions. Those that callers reach keep theirs.
func (tr *trial) forgets(l rollout.Ledger) {
	tr.notef("memory was lost")
	tr.amnesia = true
	if l.Candidate != "" {
		tr.passed[l.Candidate] = 100
	}
	for _, slot := range []string{names.SlotA, names.SlotB} {
		if r := runningIn(tr.request.Observed[names.Deployment(slot)]).Revision; r != "" {
			tr.passed[r] = 100
		}
	}
}

// learns which epoch the provider is given, and the share of callers in force then.
func (tr *trial) learns() {
	asked := tr.canaryAsked()
	if asked == nil {
		return
	}
	epoch := compose.Number(asked, 0, "epoch")
	if _, known := tr.given[epoch]; known {
		return
	}
	slot := compose.Text(asked, "slot")
	l, _ := tr.memory()
	g := grant{revision: runningIn(tr.request.Observed[names.Deployment(slot)]).Revision, weight: l.Weight}
	if _, byRoute := tr.reached(); tr.request.Observed[names.Route] != nil {
		g.weight = int32(byRoute[slot])
	}
	tr.given[epoch] = g
}

// canaryAsked is what the composed Analysis is asked about a candidate, or nil.
func (w *world) canaryAsked() map[string]any {
	o := w.request.Observed[names.Analysis]
	if o == nil {
		return nil
	}
	return compose.Map(o.Map(), "spec", "forProvider", "metrics", "canary")
}

// holdsCallers: at no time does nothing serve because of what was written, and no revision gets a greater share than it has a
// right to.
func (tr *trial) holdsCallers() {
	tr.tb.Helper()
	if tr.wish.replicas == 0 && !tr.wish.scaled {
		return
	}
	if tr.refuses() {
		return
	}
	byService, byRoute := tr.reached()
	for way, share := range map[string]map[string]float64{"Service": byService, "route": byRoute} {
		for slot, w := range share {
			tr.holdsShare(way, slot, w)
			if d := runningIn(tr.request.Observed[names.Deployment(slot)]); w > 0 && tr.mode[slot] == podsReady && tr.ready[names.Other(slot)] > 0 &&
				(d.Exists && d.Size == 0 || !d.Exists && tr.ready[slot] > 0) {
				tr.failf("callers", "%.0f %% of callers are sent to slot %s, whose pods were ended", w, slot)
			}
		}
	}
}

// holdsShare of callers that the pods of a slot can be reached by: it does not rise above what their revision has a right to,
// while nothing happens to other pods.
func (tr *trial) holdsShare(way, slot string, w float64) {
	tr.tb.Helper()
	revision := tr.runs[slot]
	if revision == "" || tr.ready[slot] == 0 {
		return
	}
	l, _ := tr.memory()
	well := tr.mode[names.SlotA] == podsReady && tr.mode[names.SlotB] == podsReady
	least := tr.request.Observed[names.Route] == nil && tr.ready[slot] == 1
	r := float64(tr.right(revision, l))
	if l.Standing() == v1alpha1.RolloutStepping && l.Candidate == revision {
		// What it was given it may keep, although another number of replicas would begin with less.
		r = max(r, float64(l.Weight))
	}
	if l.Capacity == v1alpha1.CapacityBorrow {
		// Clients of the Service share out by whole replicas.
		r += 100 / float64(max(tr.ready[names.SlotA]+tr.ready[names.SlotB], 1))
	}
	if well && !tr.wish.invalid && !least && w > tr.exposed[way+revision] && w > r {
		tr.failf("I2", "%.0f %% of callers can reach %s in slot %s by the %s, which has a right to %.0f %%", w, revision, slot, way, r)
	}
	tr.exposed[way+revision] = w
}

// look at Prometheus, as the provider does.
func (tr *trial) look(letter byte) {
	o := tr.request.Observed[names.Analysis]
	if o == nil {
		return
	}
	seen := observev1alpha1.AnalysisObservation{}
	for _, slot := range []string{names.SlotA, names.SlotB} {
		switch {
		case !tr.occupied(slot):
		case tr.mode[slot] == podsCrashing:
			seen.Findings = append(seen.Findings, observev1alpha1.Finding{Reason: "CrashLooping", Message: "it ends", Slot: slot})
		case tr.mode[slot] == podsPending:
			seen.Findings = append(seen.Findings, observev1alpha1.Finding{Reason: "Unschedulable", Message: "no node", Slot: slot})
		}
	}
	switch asked := tr.canaryAsked(); {
	case asked == nil:
		tr.canary = nil
	case tr.canary == nil || tr.canary.Epoch != compose.Number(asked, 0, "epoch"):
		tr.canary = &observev1alpha1.CanaryObservation{Epoch: compose.Number(asked, 0, "epoch")}
		tr.canary.StartedAt.Time = tr.request.Now
		tr.canary.LookedAt.Time = tr.request.Now
		for _, v := range compose.List(asked, "checks") {
			tr.canary.Checks = append(tr.canary.Checks, observev1alpha1.CanaryCheck{Name: compose.Text(v.(map[string]any), "name")})
		}
	}
	if c := tr.canary; c != nil {
		c.LookedAt.Time = tr.request.Now
		c.Looks++
		if letter == 'E' {
			c.Errors++
		} else {
			c.Errors = 0
		}
		for i := range c.Checks {
			l := letter
			// A candidate fails by one check at first.
			if letter == 'F' && i > 0 {
				l = 'I'
			}
			v := c.Checks[i].Verdicts + string(l)
			c.Checks[i].Verdicts = v[max(len(v)-10, 0):]
		}
		if g := tr.given[c.Epoch]; !slices.ContainsFunc(c.Checks, func(c observev1alpha1.CanaryCheck) bool { return !strings.HasSuffix(c.Verdicts, "PPP") }) {
			tr.passed[g.revision] = max(tr.passed[g.revision], g.weight)
		}
	}
	seen.Canary = tr.canary
	tr.measure(seen)
}

// kubernetes does what it is asked, as far as pods do.
func (tr *trial) kubernetes() {
	for _, slot := range []string{names.SlotA, names.SlotB} {
		o := tr.request.Observed[names.Deployment(slot)]
		if o == nil {
			tr.ready[slot], tr.runs[slot] = 0, ""
			continue
		}
		d := runningIn(o)
		before := tr.ready[slot]
		if tr.runs[slot] != d.Revision {
			before = 0
		}
		switch tr.mode[slot] {
		case podsReady:
			if tr.ready[slot] = d.Size; tr.slow[slot] > 0 {
				tr.ready[slot] = min(d.Size, before+tr.slow[slot])
			}
		case podsCrashing:
			tr.ready[slot] = 0
		default:
			tr.ready[slot] = min(before, d.Size)
		}
		tr.runs[slot] = d.Revision
		n := float64(tr.ready[slot])
		tr.runIn(slot, func(s map[string]any) { s["availableReplicas"], s["readyReplicas"] = n, n })
	}
	// Replicas that become ready, as an earlier pass wanted, take their share now.
	tr.holdsCallers()
}

// gate does what a Gateway controller does.
func (tr *trial) gate() {
	if tr.request.Observed[names.Route] == nil {
		return
	}
	switch tr.gateway {
	case gatewayAccepts:
		tr.accept()
	case gatewayRefuses:
		tr.accept()
		tr.change(names.Route, func(o composetest.Object) {
			p := compose.List(o, "status", "parents")[0].(map[string]any)
			c := compose.List(p, "conditions")[0].(map[string]any)
			c["status"], c["reason"] = "False", "NoMatchingParent"
		})
	}
}

func all(string) bool { return true }

// passes: time goes by, and every look at the candidate is good.
func passes(tr *trial, n int) {
	tr.round()
	tr.later(time.Minute)
	for range 3 {
		tr.look('P')
	}
	if n%4 > 0 {
		tr.round()
	}
}

// round of everybody: Crossplane, Kubernetes and the Gateway.
func (tr *trial) round() {
	tr.tb.Helper()
	tr.write(tr.pass(), all, true)
	tr.kubernetes()
	tr.gate()
	tr.autoscale(true)
}

// happenings, by number. Each gets another number to choose by. New ones come last, so that histories that were found go on to
// mean the same.
var happenings = []struct {
	name string
	do   func(tr *trial, n int)
}{
	{"round", func(tr *trial, _ int) { tr.round() }},
	{"round", func(tr *trial, _ int) { tr.round() }},
	{"rounds", func(tr *trial, _ int) { tr.round(); tr.round(); tr.round() }},
	{"crash", func(tr *trial, n int) {
		p := tr.pass()
		order := slices.Sorted(maps.Keys(p.Objects))
		r := rand.New(rand.NewPCG(uint64(n), 1))
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		order = order[:r.IntN(len(order)+1)]
		tr.write(p, func(resource string) bool { return slices.Contains(order, resource) }, false)
	}},
	{"unwritten", func(tr *trial, n int) {
		// One object is refused; the rest is written, and the status sometimes.
		refused := []string{names.Service, names.Route, names.Deployment(names.SlotA), names.Deployment(names.SlotB), names.Analysis}[n%5]
		tr.write(tr.pass(), func(resource string) bool { return resource != refused }, n%2 == 0)
	}},
	{"status first", func(tr *trial, _ int) { tr.write(tr.pass(), func(string) bool { return false }, true) }},
	{"status lost in writing", func(tr *trial, _ int) { tr.write(tr.pass(), all, false) }},
	{"kubernetes", func(tr *trial, _ int) { tr.kubernetes() }},
	{"pods", func(tr *trial, n int) {
		tr.mode[[]string{names.SlotA, names.SlotB}[n%2]] = n / 2 % podModes
		tr.kubernetes()
	}},
	{"pods of b ready", func(tr *trial, _ int) {
		tr.mode[names.SlotA], tr.mode[names.SlotB] = podsReady, podsReady
		tr.kubernetes()
	}},
	{"gateway", func(tr *trial, n int) { tr.gateway = n % gatewayModes; tr.gate() }},
	{"gateway accepts", func(tr *trial, _ int) { tr.gateway = gatewayAccepts; tr.gate() }},
	{"looks", func(tr *trial, n int) {
		for range n%4 + 1 {
			tr.look("PPPPFINE"[n/4%8])
		}
	}},
	{"passes", passes},
	{"passes", passes},
	{"passes", passes},
	{"little", func(tr *trial, n int) {
		for i := range 3 + n%2 {
			tr.look("IFNEI"[(n+i)%5])
		}
		tr.round()
	}},
	{"little", func(tr *trial, n int) {
		for range 4 {
			tr.look("INE"[n%3])
		}
		tr.round()
	}},
	{"silence", func(tr *trial, _ int) { tr.round(); tr.later(time.Minute); tr.round() }},
	{"fails", func(tr *trial, n int) {
		for range 1 + n%2 {
			tr.look('F')
		}
		tr.round()
	}},
	{"later", func(tr *trial, n int) {
		tr.later([]time.Duration{time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 6 * time.Minute, 25 * time.Minute, time.Hour, 5 * time.Hour}[n%8])
	}},
	{"clock", func(tr *trial, n int) { tr.later(time.Duration(n%121-60) * time.Minute) }},
	{"image", func(tr *trial, n int) { tr.wish.image = []string{"x", "z", "v"}[n%3]; tr.asks() }},
	{"image", func(tr *trial, n int) { tr.wish.image = []string{"x", "z", "v"}[n%3]; tr.asks() }},
	{"lifecycle", func(tr *trial, n int) {
		switch n % 7 {
		case 0:
			tr.wish.steps = [][]int{{20}, {10, 50}, {50}, {100}, {1}, {25, 50, 75}}[n/7%6]
		case 1:
			tr.wish.approval = []string{"", "BeforePromotion", "EveryStep"}[n/7%3]
		case 2:
			tr.wish.noData = []string{"", "Rollback", "Continue"}[n/7%3]
		case 3:
			tr.wish.replicas = []int{4, 1, 10, 2, 3}[n/7%5]
		case 4:
			tr.wish.standby = n / 7 % 3
		case 5:
			tr.wish.bare = n/7%3 == 0
		case 6:
			tr.wish.routed = n/7%2 == 0
		}
		tr.asks()
	}},
	{"token", func(tr *trial, n int) {
		l, _ := tr.memory()
		hash := []string{l.Candidate, l.Candidate, l.Revision, "0123456789"}[n%4]
		if hash == "" {
			return
		}
		switch n / 4 % 5 {
		case 0:
			tr.wish.promote = hash
		case 1:
			tr.wish.abort = hash
		case 2:
			tr.wish.approve = hash
		case 3:
			tr.wish.approve = hash + ":50"
		case 4:
			tr.wish.retry = fmt.Sprintf("%s#%d", hash, 2+n/20%3)
		}
		tr.asks()
	}},
	{"no tokens", func(tr *trial, n int) {
		tr.wish.promote, tr.wish.abort, tr.wish.approve, tr.wish.retry, tr.wish.pause = "", "", "", "", n%4 == 3
		tr.asks()
	}},
	{"invalid", func(tr *trial, n int) {
		tr.wish.invalid = true
		tr.asks()
		if n%4 > 0 {
			tr.round()
			tr.wish.invalid = false
			tr.asks()
		}
	}},
	{"valid", func(tr *trial, _ int) { tr.wish.invalid = false; tr.asks() }},
	{"lost", func(tr *trial, n int) {
		tr.request.Observed = maps.Clone(tr.request.Observed)
		switch n % 8 {
		case 0:
			tr.status(func(s map[string]any) { clear(s) })
		case 1:
			tr.status(func(s map[string]any) { delete(s, "rollout") })
		case 2, 3:
			forget(tr, []string{names.Service, names.Route}[n%2])
		case 4:
			delete(tr.request.Observed, names.Service)
		case 5:
			delete(tr.request.Observed, names.Route)
		default:
			slot := []string{names.SlotA, names.SlotB}[n%2]
			delete(tr.request.Observed, names.Deployment(slot))
			tr.ready[slot], tr.runs[slot] = 0, ""
			// The other replicas of a Service get what they had.
			if byService, _ := tr.reached(); tr.request.Observed[names.Route] == nil {
				tr.exposed["Service"+tr.runs[names.Other(slot)]] = byService[names.Other(slot)]
			}
		}
	}},
	{"restored", func(tr *trial, n int) {
		if len(tr.statuses) == 0 {
			return
		}
		xr := composetest.Object(maps.Clone(tr.request.Composite.Map()))
		xr["status"] = tr.statuses[n%len(tr.statuses)]
		tr.request.Composite = xr
	}},
	{"autoscaler", func(tr *trial, n int) {
		tr.wish.scaled = n%3 != 0
		tr.asks()
		if tr.wish.scaled {
			tr.load = float64(2 + n%6)
			tr.autoscale(false)
			tr.kubernetes()
		}
	}},
	{"mirror", func(tr *trial, n int) {
		tr.wish.mirror = n%3 > 0
		tr.asks()
		if tr.offers(feature("HTTPRouteRequestMirror")); n%5 == 0 {
			tr.offers()
		}
	}},
	{"experiment", func(tr *trial, n int) {
		tr.wish.experiment = []string{"one", "two", "three", ""}[n%4]
		tr.wish.percent = []int{50, 10, 25}[n/4%3]
		tr.asks()
	}},
	{"found", func(tr *trial, n int) {
		if tr.look('I'); tr.canary != nil && tr.canaryAsked()["experiment"] != nil {
			tr.canary.Experiment = &observev1alpha1.ExperimentObservation{Result: []observev1alpha1.ExperimentResult{
				observev1alpha1.ExperimentUndecided, observev1alpha1.ExperimentCanaryBetter, observev1alpha1.ExperimentBaselineBetter, observev1alpha1.ExperimentNoDifference,
			}[n%4]}
			tr.look('P')
		}
		tr.round()
	}},
	{"clock by hours", func(tr *trial, n int) {
		tr.later(time.Duration(n%21-10) * time.Hour)
		if n%2 == 0 {
			tr.round()
		}
	}},
	{"long silence", func(tr *trial, n int) { tr.round(); tr.later(time.Duration(2+n%3) * time.Minute); tr.round() }},
	{"set back", func(tr *trial, n int) {
		// What happens while the clock is behind: replicas serve, and who looks finds it good.
		tr.later(-time.Duration(1+n%50) * time.Minute)
		tr.round()
		tr.look("PIF"[n%3])
		tr.round()
	}},
	{"load", func(tr *trial, n int) {
		// The autoscalers see it, and their replicas take their time.
		tr.load = 1 + float64(n%21)/2
		tr.autoscale(false)
	}},
	{"slow start", func(tr *trial, n int) { tr.slow[[]string{names.SlotA, names.SlotB}[n%2]] = int64(n / 2 % 3) }},
	{"rollout under load", func(tr *trial, n int) {
		tr.wish.scaled, tr.wish.bare, tr.wish.invalid = true, false, false
		tr.wish.image = []string{"x", "z", "v"}[n%3]
		tr.asks()
		tr.load = float64(3 + n/3%8)
		for range 3 + n%4 {
			tr.autoscale(false)
			passes(tr, 1)
		}
	}},
	{"capacity", func(tr *trial, n int) {
		tr.wish.capacity = []v1alpha1.Capacity{v1alpha1.CapacityBorrow, v1alpha1.CapacityRecreate, ""}[n%3]
		tr.asks()
	}},
}

// forget takes the ledger off an observed object.
func forget(tr *trial, resource string) {
	if tr.request.Observed[resource] != nil {
		tr.change(resource, func(o composetest.Object) { delete(compose.Map(o, "metadata", "annotations"), names.AnnotationLedger) })
		delete(tr.applied, resource)
	}
}

// happens what a history says, two bytes each.
func (tr *trial) happens(history []byte) {
	tr.tb.Helper()
	for len(history) >= 2 && !tr.broken {
		h, n := happenings[int(history[0])%len(happenings)], int(history[1])
		history = history[2:]
		tr.notef("%s %d", h.name, n)
		h.do(tr, n)
		tr.remembers()
		tr.pass()
	}
}

// rests: with nothing new, plans come to an end.
func (tr *trial) rests() {
	tr.tb.Helper()
	epoch := int64(-1)
	for range 12 {
		tr.write(tr.pass(), all, true)
		l, _ := tr.memory()
		if l.Epoch == epoch {
			return
		}
		epoch = l.Epoch
	}
	l, _ := tr.memory()
	tr.failf("flapping", "nothing happens, and after 12 passes it still moves: %s %s", l.Phase, l.Reason)
}

// mended world: everything does what it is to do, and the spec asks for an image.
func (tr *trial) mended(image string) {
	tr.notef("mended, %s", image)
	tr.wish = wish{image: image, replicas: 4, routed: tr.wish.routed, scaled: tr.wish.scaled, capacity: tr.wish.capacity, steps: []int{25, 50}}
	tr.mode, tr.slow = map[string]int{}, map[string]int64{}
	// Without a Gateway a quarter takes three replicas beside the one of the candidate.
	tr.load = 8
	// No plan can know a load that no autoscaler has seen.
	tr.autoscale(false)
	tr.gateway = gatewayAccepts
	tr.asks()
}

// until a phase, with time, looks that all end with a letter, and somebody who gives every token that is asked for.
func (tr *trial) until(want v1alpha1.RolloutPhase, letter byte) {
	tr.tb.Helper()
	target := rolloutTarget(tr.tb, tr.world)
	l := rollout.Ledger{}
	for range 80 {
		tr.round()
		l, _ = tr.memory()
		switch {
		case tr.broken:
			return
		case want == v1alpha1.RolloutStable && l.Standing() == want && l.Phase != v1alpha1.RolloutHolding && l.Revision == target && len(tr.slotsInUse()) == 1,
			want == v1alpha1.RolloutRolledBack && l.Phase == want && l.Candidate == target && len(tr.slotsInUse()) == 1:
			return
		}
		for _, f := range l.Failed {
			if f.Revision == target && want == v1alpha1.RolloutStable {
				tr.wish.retry = fmt.Sprintf("%s#%d", target, f.Attempts+1)
			}
		}
		if l.Reason == v1alpha1.ReasonStateLost {
			tr.wish.abort = l.Candidate
		} else {
			tr.wish.abort = ""
		}
		tr.asks()
		tr.later(time.Minute)
		if l.Phase == v1alpha1.RolloutRolledBack || l.Reason == v1alpha1.ReasonRollbackLoop {
			tr.later(7 * time.Hour)
		}
		tr.look(letter)
		tr.look(letter)
		tr.look(letter)
	}
	tr.failf("termination", "it does not come to %s of %s: it is %s %s (held %s) with revision %s, candidate %s, weight %d: %s",
		want, target, l.Phase, l.Reason, l.Held, l.Revision, l.Candidate, l.Weight, rolloutOf(tr.tb, tr.plan()).Message)
}

// staysBack what was rolled back, however much time goes by.
func (tr *trial) staysBack() {
	tr.tb.Helper()
	for range 3 {
		tr.later(24 * time.Hour)
		tr.round()
	}
	if l, _ := tr.memory(); l.Phase != v1alpha1.RolloutRolledBack {
		tr.failf("I3", "nobody asks to try it again, and it is %s", l.Phase)
	}
}

func (tr *trial) slotsInUse() []string {
	var in []string
	for _, slot := range []string{names.SlotA, names.SlotB} {
		if tr.occupied(slot) {
			in = append(in, slot)
		}
	}
	return in
}

// roomOf a history, by its first byte.
func roomOf(b byte) v1alpha1.Capacity {
	return []v1alpha1.Capacity{v1alpha1.CapacityBorrow, v1alpha1.CapacityRecreate, "", ""}[b/8%4]
}

// tries a history on a world, and then to mend it: a good candidate gets there, and a bad one is rolled back.
func tries(tb testing.TB, history []byte) {
	tb.Helper()
	if len(history) == 0 {
		return
	}
	tr := newTrial(tb, wish{image: "x", replicas: 4, routed: history[0]%2 == 0, provider: history[0]%8 > 3, capacity: roomOf(history[0]), steps: []int{25, 50}})
	tr.happens(history[1:])
	tr.rests()
	tr.mended("z")
	tr.until(v1alpha1.RolloutStable, 'P')
	tr.later(2 * time.Hour)
	tr.mended("w")
	tr.until(v1alpha1.RolloutRolledBack, 'F')
	tr.rests()
	tr.staysBack()
}

// often things happen in random histories. What is not named here happens once in a hundred and more.
var often = map[string]int{
	"round": 12, "rounds": 4, "passes": 14, "crash": 10, "unwritten": 5, "status lost in writing": 4, "kubernetes": 5, "looks": 4, "later": 4,
	"pods of b ready": 8, "gateway accepts": 6, "image": 2, "lifecycle": 3, "lost": 3, "silence": 5, "fails": 4, "little": 4, "restored": 2, "no tokens": 3, "valid": 4,
	"load": 6, "slow start": 2, "rollout under load": 6,
	"experiment": 3, "found": 2, "mirror": 2, "long silence": 4, "set back": 4,
}

// randomly is a history of so many things.
func randomly(r *rand.Rand, length int) []byte {
	var choices []byte
	for i, h := range happenings {
		for range max(often[h.name], 1) {
			choices = append(choices, byte(i))
		}
	}
	history := []byte{byte(r.IntN(256))}
	for range length {
		history = append(history, choices[r.IntN(len(choices))], byte(r.IntN(256)))
	}
	return history
}

// TestRolloutProperties lets random things happen to rollouts.
func TestRolloutProperties(t *testing.T) {
	const trials, length = 24, 60
	for seed := range uint64(trials) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			tries(t, randomly(rand.New(rand.NewPCG(seed, 5)), length))
		})
	}
}

// TestRolloutHistories are those that once went wrong, as short as they can be.
func TestRolloutHistories(t *testing.T) {
	for name, history := range map[string]string{
		// A status of before, restored where the Service does not remember: callers were sent to a slot without pods, and those
		// that served them ended.
		"Restored": "b30ef50df717a00ff90e9d0d060ea40d4a02e90e250ef90fe90df41d621e8f",
		// The epoch that evidence of another revision had been gathered for began again.
		"EpochAgain": "3a21560ff7115718df13f31dbc1ede",
		// Somebody aborted while the clock was behind, and replicas started to take callers back.
		"AbortedWhileClockIsBack": "152999229c14e20d07001d10e5004e06be07bf06bf103314d4094409390c43013a25d10e4d0f9501dd03c30be1294309e201eb16991ec000100d6c2522091328ea28dd0b010d9f169211252650148225d70bfc07050d3f13120fe30e44195610da003e256a0e97063d011117a1131a09b914da26e525ef266b",
		// An autoscaler in the spec ended an exchange of replicas, and callers met half of them.
		"AutoscalerInExchange": "c0177a240e0f3514b30d900e770013284c0fb801d90d9003db020c12e5272702ad16e4292412ef105503c80dc023d208fc00270e6801970d9d013a0b6901950e2b1c0a024b1c5f0e5d0e11008901c81c23037014b40bf722bf16b326a10d740e7d20c10d4c2228153a10b600ad0e8f03fd0e80216826be2248",
		// Replicas that started counted as if they bore load, so that the candidate got too few for all callers.
		"LoadOfThoseThatServe": "6100420034027303260f6510f906bd0b002662028224da03850df403e80e421d0e0c64020a21b31ae00cfd12ed12a403a2025d28b804322846120300bb1cf421ce00bf0d640f09271b286b13ca0dc2099600a60fe40f8a0f830dab24b71af9216314c5266a0563183616ac16af1dc910d90e5d20130dab01dd",
		// Without a Gateway, a revert under load gave all requests back to too few replicas.
		"RevertedByReplicas": "e7164622620ee00f6428f80ff7",
		// The end of an experiment did the same.
		"ExperimentEndsUnderLoad": "aa21d42839",
		// A candidate grew faster than the live revision, so that its share rose, and then it got none.
		"GrowsFaster": "1528a9276317b012680d2b0fbd244d",
		// Live replicas were gone, and the Service left the candidate, which served all requests.
		"OnlyTheCandidateServes": "b9282f28100ed30d1e13210dc10e95082d",
		// A candidate failed while no live replica served, and all requests went to nothing.
		"BackToNothing": "d1180828be08c41369",
		// A promotion was taken back to the few replicas that had come back of the revision before.
		"BackToFew": "6427a728400938002600c20d050efc17410f7e0d960e8b125c084b0d3f139b0eef1daf0f290f920e7b25230949",
		// While the clock was behind a candidate was made with one replica, and was late for its others once the time had come.
		"SmallWhileClockIsBack": "5e213e017625e31d670fc314af",
		// A pause came just before the end of an exchange, and the last live replica ended all the same.
		"PausedAtTheEndOfAnExchange": "2317d900650d0d0dcf0ec10fa71acf0f72",
		// There was no data until the deadline, and the share went back to a revision that did not serve.
		"WithoutDataAlone": "8128822844243a089514f6",
		// What an experiment had was given back like what is exchanged, and other clients reached arm B.
		"ExperimentBesideExchange": "04183b21b6038a0ea0",
		// The Service was deleted, and a restored status named a slot where a candidate had started since.
		"RestoredWithoutService": "d2186f1050286d103612940f970ff612f50f26174d0f391e3f1d9c",
	} {
		t.Run(name, func(t *testing.T) {
			h, err := hex.DecodeString(history)
			if err != nil {
				t.Fatal(err)
			}
			tries(t, h)
		})
	}
}

// FuzzRollout finds histories that nobody thought of.
func FuzzRollout(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte{1, 18, 1, 2, 0, 2, 0, 13, 0, 2, 0, 13, 0, 2, 0})
	f.Add([]byte{0, 18, 1, 2, 0, 2, 0, 3, 7, 24, 2, 3, 9, 15, 0, 4, 0, 2, 0})
	f.Add([]byte{0, 18, 1, 2, 0, 2, 0, 13, 0, 6, 0, 24, 4, 25, 0, 2, 0})
	f.Fuzz(func(t *testing.T, history []byte) {
		if len(history) <= 80 {
			tries(t, history)
		}
	})
}
