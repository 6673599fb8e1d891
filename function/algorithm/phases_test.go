// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// rolloutOf a plan.
func rolloutOf(tb testing.TB, p *compose.Plan) v1alpha1.RolloutStatus {
	tb.Helper()
	st, ok := p.Status.(v1alpha1.AlgorithmStatus)
	if !ok {
		raw, err := json.Marshal(p.Status)
		if err == nil {
			err = json.Unmarshal(raw, &st)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if st.Rollout == nil {
		return v1alpha1.RolloutStatus{}
	}
	return *st.Rollout
}

// judge the candidate: every check that the composed Analysis is asked has these verdicts, for the epoch that it was given.
func (w *world) judge(verdicts string) {
	w.t.Helper()
	asked := compose.Map(w.request.Observed[names.Analysis].Map(), "spec", "forProvider", "metrics", "canary")
	if asked == nil {
		w.t.Fatalf("nobody asks for evidence: %+v", rolloutOf(w.t, w.plan()))
	}
	seen := observev1alpha1.CanaryObservation{Epoch: compose.Number(asked, 0, "epoch")}
	seen.LookedAt.Time = w.request.Now
	for _, v := range compose.List(asked, "checks") {
		name := compose.Text(v.(map[string]any), "name")
		seen.Checks = append(seen.Checks, observev1alpha1.CanaryCheck{
			Name: name, Verdicts: verdicts, Value: new(0.95), Lower: new(0.93), Upper: new(0.97), Samples: new(int64(400)),
		})
	}
	w.measure(observev1alpha1.AnalysisObservation{Canary: &seen})
}

// settle what Kubernetes and the Gateway do about a plan.
func (w *world) settle() {
	w.compose(w.plan())
	for _, slot := range []string{names.SlotA, names.SlotB} {
		if w.occupied(slot) {
			w.runIn(slot, nil)
		}
	}
	if w.request.Observed[names.Route] != nil || w.request.Observed[names.GRPCRoute] != nil {
		w.accept()
	}
}

// acts are what a person asks of a rollout, for the end of a template whose last block is the lifecycle.
func acts(requests string) string { return "}, rollout: {" + requests }

// TestPhases of a rollout.
func TestPhases(t *testing.T) {
	const (
		routed   = "{image: %s, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {steps: [10, 40], soak: 1m, bake: 10m%s}}"
		plain    = "{image: %s, replicas: 4, lifecycle: {canaryWeight: 20, soak: 1m, bake: 10m%s}}"
		bare     = "{image: %s, replicas: 4}"
		single   = "{image: %s, replicas: 1, lifecycle: {canaryWeight: 20, soak: 1m, bake: 10m%s}}"
		atOnce   = "{image: %s, replicas: 1, lifecycle: {canaryWeight: 100, bake: 10m%s}}"
		passed   = "PPP"
		borrow   = "{image: %s, replicas: 4, lifecycle: {canaryWeight: 50, soak: 1m, bake: 10m, capacity: Borrow%s}}"
		recreate = "{image: %s, replicas: 1, lifecycle: {soak: 1m, bake: 10m, capacity: Recreate%s}}"
		failing  = "PPFF"

		borrowRouted = "{image: %s, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {canaryWeight: 50, soak: 1m, bake: 10m, capacity: Borrow%s}}"
	)
	type step struct {
		reason string
		do     func(w *world)
		want   string
		phase  string
	}

	// What a world without a spec yet is edited to.
	edit := func(spec string, words ...any) func(w *world) {
		return func(w *world) { w.edit(fmt.Sprintf(spec, words...)) }
	}
	settle := func(w *world) { w.settle() }
	seen := func(w *world) { w.compose(w.plan()) }
	judge := func(verdicts string) func(w *world) {
		return func(w *world) { w.settle(); w.settle(); w.judge(verdicts) }
	}
	looked := func(verdicts string) func(w *world) { return func(w *world) { w.judge(verdicts) } }
	later := func(d time.Duration) func(w *world) { return func(w *world) { w.later(d) } }
	all := func(fs ...func(w *world)) func(w *world) {
		return func(w *world) {
			for _, f := range fs {
				f(w)
			}
		}
	}
	token := func(spec, field string) func(w *world) {
		return func(w *world) {
			c := rolloutOf(w.t, w.plan()).Candidate
			w.edit(fmt.Sprintf(spec, "z", strings.ReplaceAll(field, "HASH", c)))
		}
	}
	// No pod of the candidate finds room.
	full := func(w *world) {
		w.compose(w.plan())
		w.runIn(names.SlotB, func(s map[string]any) { s["availableReplicas"] = 0.0 })
		w.find(observev1alpha1.Finding{Reason: "Unschedulable", Message: "no node", Slot: "b"})
	}
	surge := strings.Replace(borrow, "Borrow", "Surge", 1)
	cases := map[string]struct {
		spec  string
		steps []step
	}{
		"Promoted": {routed, []step{
			{"at rest", nil, "a=x*4 callers=a reco-slot-a:100 reco-slot-b:0", "Stable"},
			{"the candidate starts as large as its first share needs", edit(routed, "z", ""), "a=x*4 b=z*1 callers=a reco-slot-a:100 reco-slot-b:0", "Preparing"},
			{"a share goes there once it serves", settle, "a=x*4 b=z*1 callers=a reco-slot-a:90 reco-slot-b:10", "Stepping/Applying"},
			{"evidence counts from when it is in force", settle, "a=x*4 b=z*1 callers=a reco-slot-a:90 reco-slot-b:10", "Stepping/Soaking"},
			{"time without evidence is nothing", all(settle, later(5*time.Minute)), "a=x*4 b=z*1 callers=a reco-slot-a:90 reco-slot-b:10", "Holding/MetricsUnavailable"},
			{"evidence after that counts from zero", all(settle, later(time.Minute), looked(passed)), "a=x*4 b=z*1 callers=a reco-slot-a:90 reco-slot-b:10", "Stepping/Soaking"},
			{"it soaks as long as it must", judge(passed), "a=x*4 b=z*1 callers=a reco-slot-a:90 reco-slot-b:10", "Stepping/Soaking"},
			{"and grows before its share does", all(later(time.Minute), looked(passed)), "a=x*4 b=z*3 callers=a reco-slot-a:90 reco-slot-b:10", "Stepping/Sizing"},
			{"which then does", settle, "a=x*4 b=z*3 callers=a reco-slot-a:60 reco-slot-b:40", "Stepping/Applying"},
			{"old evidence does not count", settle, "a=x*4 b=z*3 callers=a reco-slot-a:60 reco-slot-b:40", "Stepping/Soaking"},
			{"it becomes as large as the live one", all(settle, settle, later(time.Minute), judge(passed)), "a=x*4 b=z*4 callers=a reco-slot-a:60 reco-slot-b:40", "Stepping/Sizing"},
			{"and all callers go over", settle, "a=x*4 b=z*4 callers=b reco-slot-a:0 reco-slot-b:100", "Promoting"},
			{"the one before stays", settle, "a=x*4 b=z*4 callers=b reco-slot-a:0 reco-slot-b:100", "Baking"},
			{"as long as it bakes", all(settle, settle, later(9*time.Minute), looked("P")), "a=x*4 b=z*4 callers=b reco-slot-a:0 reco-slot-b:100", "Baking"},
			{"and then ends", all(later(time.Minute), looked("PP")), "a=x*0 b=z*4 callers=b reco-slot-a:0 reco-slot-b:100", "Draining"},
			{"and is gone, which ends the rollout", settle, "b=z*4 callers=b reco-slot-a:0 reco-slot-b:100", "Stable"},
			{"and all is calm", settle, "b=z*4 callers=b reco-slot-a:0 reco-slot-b:100", "Stable"},
		}},
		"RolledBack": {routed, []step{
			{"a share tries it", all(edit(routed, "z", ""), settle, settle, settle, settle), "a=x*4 b=z*1 callers=a reco-slot-a:90 reco-slot-b:10", "Stepping/Soaking"},
			{"one failure may be chance", judge("PPF"), "a=x*4 b=z*1 callers=a reco-slot-a:90 reco-slot-b:10", "Stepping/Soaking"},
			{"two are not", judge(failing), "a=x*4 b=z*1 callers=a reco-slot-a:100 reco-slot-b:0", "RollingBack/MetricFailed"},
			{"its requests are finished", settle, "a=x*4 b=z*1 callers=a reco-slot-a:100 reco-slot-b:0", "RollingBack/MetricFailed"},
			{"and then it ends", later(time.Minute), "a=x*4 b=z*0 callers=a reco-slot-a:100 reco-slot-b:0", "RollingBack/MetricFailed"},
			{"and is not tried again", all(settle, settle), "a=x*4 callers=a reco-slot-a:100 reco-slot-b:0", "RolledBack/RolledBack"},
			{"not even later", all(settle, later(24*time.Hour)), "a=x*4 callers=a reco-slot-a:100 reco-slot-b:0", "RolledBack/RolledBack"},
			{"until the spec is corrected", all(settle, edit(routed, "v", "")), "a=x*4 b=v*1 callers=a reco-slot-a:100 reco-slot-b:0", "Preparing"},
		}},
		"Retried": {plain, []step{
			{"it is rolled back", all(edit(plain, "z", ""), settle, settle, settle, settle, judge(failing), settle, later(time.Minute), settle, settle), "a=x*4 callers=a", "RolledBack/RolledBack"},
			{"too early to try again", token(plain, acts("retry: 'HASH#2'")), "a=x*4 callers=a", "RolledBack/CoolingDown"},
			{"and then it is", all(settle, later(9*time.Minute)), "a=x*4 b=z*1 callers=a", "Preparing"},
			{"it fails again", all(settle, settle, settle, settle, judge(failing), settle, later(time.Minute), settle, settle), "a=x*4 callers=a", "RolledBack/RolledBack"},
			{"the same attempt is not made twice", all(settle, later(24*time.Hour)), "a=x*4 callers=a", "RolledBack/RolledBack"},
		}},
		"FlippedBack": {atOnce, []step{
			{"all callers go over at once", all(edit(atOnce, "z", ""), settle, settle, settle, settle), "a=x*1 b=z*1 callers=b", "Baking"},
			{"and come back at once", judge(failing), "a=x*1 b=z*1 callers=a", "RollingBack/MetricFailed"},
			{"and stay", all(settle, later(time.Minute), settle, settle), "a=x*1 callers=a", "RolledBack/RolledBack"},
		}},
		"RevertedWhileBaking": {atOnce, []step{
			{"it bakes", all(edit(atOnce, "z", ""), settle, settle, settle, settle), "a=x*1 b=z*1 callers=b", "Baking"},
			{"callers come back at once", edit(atOnce, "x", ""), "a=x*1 b=z*1 callers=a", "RollingBack/Reverted"},
			{"which is no failure", all(settle, later(time.Minute), settle, settle, settle), "a=x*1 callers=a", "Stable"},
		}},
		"EditedWhileBaking": {atOnce, []step{
			{"it bakes", all(edit(atOnce, "z", ""), settle, settle, settle, settle), "a=x*1 b=z*1 callers=b", "Baking"},
			{"another one needs the place", edit(atOnce, "v", ""), "a=x*1 b=z*1 callers=b", "Draining"},
			{"once requests are finished", all(settle, later(time.Minute)), "a=x*0 b=z*1 callers=b", "Draining"},
			{"and gets it", settle, "b=z*1 callers=b", "Draining"},
			{"and gets it", settle, "a=v*1 b=z*1 callers=b", "Preparing"},
		}},
		"WithoutGateway": {plain, []step{
			{"one replica beside four is a fifth", all(edit(plain, "z", ""), settle), "a=x*4 b=z*1 callers=", "Stepping/Applying"},
			{"the number of replicas is the share", all(settle, settle), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"all of them start for all callers", all(settle, later(time.Minute), judge(passed)), "a=x*4 b=z*4 callers=", "Stepping/Sizing"},
			{"who go over then", settle, "a=x*4 b=z*4 callers=b", "Promoting"},
		}},
		"LeastShare": {strings.Replace(plain, "20", "5", 1), []step{
			{"a share finer than one of five replicas is one replica", edit(strings.Replace(plain, "20", "5", 1), "z", ""), "a=x*4 b=z*1 callers=a", "Preparing"},
			{"which gets requests", settle, "a=x*4 b=z*1 callers=", "Stepping/Applying"},
			{"and evidence counts", all(settle, settle), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"and all of them start for all callers", all(settle, later(time.Minute), judge(passed)), "a=x*4 b=z*4 callers=", "Stepping/Sizing"},
			{"who go over then", settle, "a=x*4 b=z*4 callers=b", "Promoting"},
		}},
		"SingleReplica": {single, []step{
			{"one replica beside one is half of them, which nobody asked for", edit(single, "z", ""), "a=x*1 b=z*1 callers=a", "Preparing"},
			{"so all go over at once", settle, "a=x*1 b=z*1 callers=b", "Promoting"},
			{"and can go back while it bakes", all(settle, settle), "a=x*1 b=z*1 callers=b", "Baking"},
			{"when it fails", judge(failing), "a=x*1 b=z*1 callers=a", "RollingBack/MetricFailed"},
		}},
		"SingleReplicaHalved": {strings.Replace(single, "20", "50", 1), []step{
			{"half of them is what one replica beside one gets", all(edit(strings.Replace(single, "20", "50", 1), "z", ""), settle, settle, settle), "a=x*1 b=z*1 callers=", "Stepping/Soaking"},
		}},
		"SingleReplicaApproved": {single, []step{
			{"all callers at once need an approval where promotion does", all(edit(single, "z", ", approval: BeforePromotion"), settle), "a=x*1 b=z*1 callers=a", "Holding/AwaitingApproval"},
			{"and go over with it", token(single, ", approval: BeforePromotion"+acts("approve: ['HASH:100']")), "a=x*1 b=z*1 callers=b", "Promoting"},
		}},
		"Approved": {plain, []step{
			{"somebody has to agree", all(edit(plain, "z", ", approval: BeforePromotion"), settle, settle, settle, settle, later(time.Minute), judge(passed)), "a=x*4 b=z*1 callers=", "Holding/AwaitingApproval"},
			{"about this revision", all(settle, edit(plain, "z", ", approval: BeforePromotion"+acts("approve: ['0123456789:100']"))), "a=x*4 b=z*1 callers=", "Holding/AwaitingApproval"},
			{"and that far", all(settle, token(plain, ", approval: BeforePromotion"+acts("approve: ['HASH:50']"))), "a=x*4 b=z*1 callers=", "Holding/AwaitingApproval"},
			{"twice is once", all(settle, token(plain, ", approval: BeforePromotion"+acts("approve: ['HASH:100', HASH]"))), "a=x*4 b=z*4 callers=", "Stepping/Sizing"},
			{"and on it goes", settle, "a=x*4 b=z*4 callers=b", "Promoting"},
		}},
		"Aborted": {plain, []step{
			{"a share tries it", all(edit(plain, "z", ""), settle, settle, settle), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"somebody knows better", token(plain, acts("abort: HASH")), "a=x*4 b=z*1 callers=a", "RollingBack/Aborted"},
		}},
		"PromotedByHand": {plain, []step{
			{"a share tries it", all(edit(plain, "z", ""), settle, settle, settle), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"somebody knows better", token(plain, acts("promote: HASH")), "a=x*4 b=z*4 callers=", "Stepping/Sizing"},
			{"and all callers go over", settle, "a=x*4 b=z*4 callers=b", "Promoting"},
		}},
		"Superseded": {plain, []step{
			{"a share tries it", all(edit(plain, "z", ""), settle, settle, settle), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"another one is wanted", edit(plain, "v", ""), "a=x*4 b=z*1 callers=a", "RollingBack/Superseded"},
			{"and has its turn", all(settle, later(time.Minute), settle, settle), "a=x*4 b=v*1 callers=a", "Preparing"},
		}},
		"LifecycleRemoved": {plain, []step{
			{"a share tries it", all(edit(plain, "z", ""), settle, settle, settle), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"nobody has said that it is good enough for all", edit(bare, "z"), "a=x*4 b=z*1 callers=a", ""},
			{"and it stays away", all(settle, later(time.Minute), settle, settle, settle), "a=x*4 callers=a", ""},
			{"until it is tried again", all(edit(plain, "z", ""), settle), "a=x*4 callers=a", "RolledBack/RolledBack"},
			{"by a person who says so", token(plain, acts("retry: 'HASH#2'")), "a=x*4 callers=a", "RolledBack/CoolingDown"},
		}},
		"LifecycleRemovedEarly": {plain, []step{
			{"nobody has met it yet", edit(plain, "z", ""), "a=x*4 b=z*1 callers=a", "Preparing"},
			{"which says nothing for it", all(seen, edit(bare, "z")), "a=x*4 b=z*0 callers=a", ""},
		}},
		"LifecycleRemovedForAnother": {plain, []step{
			{"a share tries it", all(edit(plain, "z", ""), settle, settle, settle), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"another one is wanted without any test", edit(bare, "v"), "a=x*4 b=z*1 callers=a", ""},
			{"and goes live", all(settle, later(time.Minute), settle, settle, settle, settle), "a=x*4 b=v*4 callers=b", ""},
		}},
		"LifecycleRemovedWhileBaking": {atOnce, []step{
			{"it bakes", all(edit(atOnce, "z", ""), settle, settle, settle, settle), "a=x*1 b=z*1 callers=b", "Baking"},
			{"all callers are there already", edit("{image: %s, replicas: 1}", "z"), "a=x*1 b=z*1 callers=b", ""},
			{"and the one before ends", all(settle, later(time.Minute), settle, settle), "b=z*1 callers=b", ""},
		}},
		"StoppedInTheMiddle": {plain, []step{
			{"a share tries it", all(edit(plain, "z", ""), settle, settle, settle), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"zero replicas promote nothing", edit(strings.Replace(plain, "replicas: 4", "replicas: 0", 1), "z", ""), "a=x*0 b=z*1 callers=a", "Stable"},
			{"and what served serves again", all(settle, later(time.Minute), settle, settle, edit(plain, "z", ""), settle), "a=x*4 callers=a", "RolledBack/RolledBack"},
		}},
		"Reverted": {plain, []step{
			{"a share tries it", all(edit(plain, "z", ""), settle, settle, settle), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"it is taken back", edit(plain, "x", ""), "a=x*4 b=z*1 callers=a", "RollingBack/Reverted"},
			{"which is no failure", all(settle, later(time.Minute), settle, settle, settle), "a=x*4 callers=a", "Stable"},
		}},
		"CrashLooping": {plain, []step{
			{"a share tries it", all(edit(plain, "z", ""), settle, settle, settle), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"and it crashes", func(w *world) {
				w.settle()
				w.runIn(names.SlotB, func(s map[string]any) { s["availableReplicas"] = 0.0 })
				w.find(observev1alpha1.Finding{Reason: "CrashLooping", Message: "it ends", Slot: "b"})
			}, "a=x*4 b=z*1 callers=a", "RollingBack/CrashLooping"},
		}},
		"NoCapacity": {plain, []step{
			{"it finds no room", func(w *world) {
				edit(plain, "z", "")(w)
				w.compose(w.plan())
				w.runIn(names.SlotB, func(s map[string]any) { s["availableReplicas"] = 0.0 })
				w.find(observev1alpha1.Finding{Reason: "Unschedulable", Message: "no node", Slot: "b"})
			}, "a=x*4 b=z*1 callers=a", "Preparing"},
			{"for two minutes", all(seen, later(2*time.Minute)), "a=x*4 b=z*1 callers=a", "Holding/NoCapacity"},
			{"and then it does", settle, "a=x*4 b=z*1 callers=", "Stepping/Applying"},
		}},
		"Released": {plain, []step{
			{"it finds no room", func(w *world) {
				edit(plain, "z", "")(w)
				w.compose(w.plan())
				w.runIn(names.SlotB, func(s map[string]any) { s["availableReplicas"] = 0.0 })
				w.find(observev1alpha1.Finding{Reason: "Unschedulable", Message: "no node", Slot: "b"})
			}, "a=x*4 b=z*1 callers=a", "Preparing"},
			{"for two minutes", all(seen, later(2*time.Minute)), "a=x*4 b=z*1 callers=a", "Holding/NoCapacity"},
			{"and an hour: what becomes free is not for it", all(seen, later(time.Hour)), "a=x*4 b=z*0 callers=a", "Holding/CandidateReleased"},
			{"until a person promotes it", all(settle, token(plain, acts("promote: HASH"))), "a=x*4 b=z*4 callers=a", "Preparing"},
		}},
		"Borrowed": {borrow, []step{
			{"a live replica goes first", edit(borrow, "z", ""), "a=x*3 b=z*0 callers=a", "Preparing"},
			{"and one of the candidate takes its place", settle, "a=x*3 b=z*1 callers=a", "Preparing"},
			{"and serves with the others", settle, "a=x*3 b=z*1 callers=", "Stepping/Applying"},
			{"then the next one goes", settle, "a=x*2 b=z*1 callers=", "Stepping/Applying"},
			{"for the second of the candidate", settle, "a=x*2 b=z*2 callers=", "Stepping/Applying"},
			{"which is half of all", settle, "a=x*2 b=z*2 callers=", "Stepping/Soaking"},
			{"the rest follows", all(settle, later(time.Minute), judge(passed)), "a=x*1 b=z*2 callers=", "Stepping/Sizing"},
			{"one by one", settle, "a=x*1 b=z*3 callers=", "Stepping/Sizing"},
			{"until the candidate is enough for all requests", settle, "a=x*1 b=z*3 callers=b", "Promoting"},
			{"then the last one goes", settle, "a=x*0 b=z*3 callers=b", "Baking"},
			{"and the candidate is whole", settle, "a=x*0 b=z*4 callers=b", "Baking"},
			{"a fault", judge(failing), "a=x*0 b=z*3 callers=b", "Holding/StandbyStarting"},
			{"starts the one before again", settle, "a=x*1 b=z*3 callers=b", "Holding/StandbyStarting"},
			{"and requests go back as they came", settle, "a=x*1 b=z*3 callers=", "RollingBack/MetricFailed"},
			{"one replica", settle, "a=x*1 b=z*2 callers=", "RollingBack/MetricFailed"},
			{"after the other", all(settle, settle, settle), "a=x*3 b=z*1 callers=", "RollingBack/MetricFailed"},
			{"until the live ones are enough", settle, "a=x*3 b=z*1 callers=a", "RollingBack/MetricFailed"},
			{"and all of them are back", all(settle, later(time.Minute), settle, settle, settle), "a=x*4 callers=a", "RolledBack/RolledBack"},
		}},
		"BorrowedRouted": {borrowRouted, []step{
			{"a live replica goes first", edit(borrowRouted, "z", ""), "a=x*3 b=z*0 callers=a reco-slot-a:100 reco-slot-b:0", "Preparing"},
			{"and one of the candidate takes its place", settle, "a=x*3 b=z*1 callers=a reco-slot-a:100 reco-slot-b:0", "Preparing"},
			{"which gets what it bears", settle, "a=x*3 b=z*1 callers= reco-slot-a:67 reco-slot-b:33", "Stepping/Applying"},
			{"the next one goes once the Gateway has taken that", settle, "a=x*2 b=z*1 callers= reco-slot-a:67 reco-slot-b:33", "Stepping/Applying"},
			{"for the second of the candidate", settle, "a=x*2 b=z*2 callers= reco-slot-a:66 reco-slot-b:34", "Stepping/Applying"},
			{"which bears half of all", settle, "a=x*2 b=z*2 callers= reco-slot-a:50 reco-slot-b:50", "Stepping/Applying"},
			{"and evidence counts", settle, "a=x*2 b=z*2 callers= reco-slot-a:50 reco-slot-b:50", "Stepping/Soaking"},
			{"requests go before the replicas that served them", all(settle, settle, later(time.Minute), judge(passed)), "a=x*2 b=z*2 callers= reco-slot-a:34 reco-slot-b:66", "Stepping/Sizing"},
			{"which then go", settle, "a=x*1 b=z*2 callers= reco-slot-a:34 reco-slot-b:66", "Stepping/Sizing"},
			{"one by one", settle, "a=x*1 b=z*3 callers= reco-slot-a:33 reco-slot-b:67", "Stepping/Sizing"},
			{"until the candidate is enough for all requests", settle, "a=x*1 b=z*3 callers=b reco-slot-a:0 reco-slot-b:100", "Promoting"},
			{"then the last one goes", settle, "a=x*0 b=z*3 callers=b reco-slot-a:0 reco-slot-b:100", "Baking"},
			{"and the candidate is whole", settle, "a=x*0 b=z*4 callers=b reco-slot-a:0 reco-slot-b:100", "Baking"},
		}},
		"BorrowedSwitchedToSurge": {borrow, []step{
			{"half is lent", all(edit(borrow, "z", ""), settle, settle, settle, settle, settle, settle), "a=x*2 b=z*2 callers=", "Stepping/Soaking"},
			{"another way to find room changes nothing of that", edit(surge, "z", ""), "a=x*2 b=z*2 callers=", "Stepping/Soaking"},
			{"all requests would be too many for two replicas, so one comes back", edit(surge, "x", ""), "a=x*2 b=z*1 callers=", "RollingBack/Reverted"},
			{"and starts", settle, "a=x*3 b=z*1 callers=", "RollingBack/Reverted"},
			{"and is enough for all requests with the others", settle, "a=x*3 b=z*1 callers=a", "RollingBack/Reverted"},
			{"the next candidate finds room beside them", all(settle, later(time.Minute), settle, settle, edit(surge, "v", ""), settle), "a=x*4 b=v*4 callers=a", "Preparing"},
		}},
		"BorrowedNoCapacity": {borrow, []step{
			{"another pod takes the place of the live replica", all(edit(borrow, "z", ""), settle, full), "a=x*3 b=z*1 callers=a", "Preparing"},
			{"for two minutes, and the time to finish requests", all(seen, later(3*time.Minute)), "a=x*3 b=z*1 callers=a", "Holding/NoCapacity"},
			{"a person who promotes it makes no room", all(seen, token(borrow, acts("promote: HASH"))), "a=x*3 b=z*1 callers=a", "Holding/NoCapacity"},
			{"so its room is free for an hour later", all(seen, later(time.Hour)), "a=x*3 b=z*0 callers=a", "Holding/CandidateReleased"},
			{"but it is promoted, and is tried again", seen, "a=x*3 b=z*1 callers=a", "Preparing"},
			{"and now there is room", settle, "a=x*3 b=z*1 callers=", "Stepping/Sizing"},
			{"for one", settle, "a=x*2 b=z*1 callers=", "Stepping/Sizing"},
			{"after the other", settle, "a=x*2 b=z*2 callers=", "Stepping/Sizing"},
		}},
		"BorrowedReleased": {borrow, []step{
			{"another pod takes the place of the live replica", all(edit(borrow, "z", ""), settle, full, seen, later(3*time.Minute), seen, later(time.Hour)), "a=x*3 b=z*0 callers=a", "Holding/CandidateReleased"},
			{"what becomes free belongs to what serves", settle, "a=x*4 b=z*0 callers=a", "Holding/CandidateReleased"},
			{"until it is tried again", all(settle, later(time.Hour)), "a=x*3 b=z*0 callers=a", "Preparing"},
		}},
		"RecreatedNoCapacity": {recreate, []step{
			{"the live revision stops, and others take its room", all(edit(recreate, "z", ""), settle, settle, full), "a=x*0 b=z*1 callers=a", "Preparing"},
			{"a person who promotes it makes no room", all(seen, token(recreate, acts("promote: HASH"))), "a=x*0 b=z*1 callers=a", "Preparing"},
			{"so the one before serves again", all(seen, later(3*time.Minute)), "a=x*0 b=z*0 callers=a", "RollingBack/NoCapacity"},
			{"once the candidate is gone", settle, "a=x*1 callers=a", "RolledBack/RolledBack"},
		}},
		"Recreated": {recreate, []step{
			{"nothing starts yet", edit(recreate, "z", ""), "a=x*1 b=z*0 callers=a", "Preparing"},
			{"the live revision stops", settle, "a=x*0 b=z*0 callers=a", "Preparing"},
			{"and makes room", settle, "a=x*0 b=z*1 callers=a", "Preparing"},
			{"for what gets all requests", settle, "a=x*0 b=z*1 callers=b", "Promoting"},
			{"as long as it does well", settle, "a=x*0 b=z*1 callers=b", "Baking"},
			{"it stops in turn", judge(failing), "a=x*0 b=z*0 callers=a", "RollingBack/MetricFailed"},
			{"for the one before", settle, "a=x*1 b=z*0 callers=a", "RollingBack/MetricFailed"},
		}},
		"RecreatedWithApproval": {recreate, []step{
			{"the live revision serves until a person agrees", all(edit(recreate, "z", ", approval: BeforePromotion"), settle), "a=x*1 b=z*0 callers=a", "Holding/AwaitingApproval"},
		}},
		"NeverPulled": {plain, []step{
			{"its image is not there", func(w *world) {
				edit(plain, "z", "")(w)
				w.compose(w.plan())
				w.runIn(names.SlotB, func(s map[string]any) { s["availableReplicas"] = 0.0 })
				w.find(observev1alpha1.Finding{Reason: "ImagePullFailed", Message: "not found", Slot: "b", Cause: observev1alpha1.FindingOfRevision})
			}, "a=x*4 b=z*1 callers=a", "Preparing"},
			{"for three minutes", all(seen, later(3*time.Minute)), "a=x*4 b=z*0 callers=a", "RollingBack/ImagePullFailed"},
		}},
		"Inconclusive": {plain, []step{
			{"too few requests", all(edit(plain, "z", ""), settle, settle, settle, settle, judge("II"), later(time.Hour), looked("IIIIIIIIII")), "a=x*4 b=z*1 callers=", "Holding/Inconclusive"},
			{"and then enough", judge("IIPPP"), "a=x*4 b=z*4 callers=", "Stepping/Sizing"},
		}},
		"NoDataRollsBack": {plain, []step{
			{"too few requests, and so it was asked", all(edit(plain, "z", ", onNoData: Rollback"), settle, settle, settle, settle, judge("II"), later(time.Hour), looked("II")), "a=x*4 b=z*1 callers=a", "RollingBack/Inconclusive"},
		}},
		"NoDataContinues": {plain, []step{
			{"too few requests, and so it was asked", all(edit(plain, "z", ", onNoData: Continue"), settle, settle, settle, settle, judge("II"), later(time.Hour), looked("II")), "a=x*4 b=z*4 callers=", "Stepping/Sizing"},
		}},
		"Frozen": {plain, []step{
			{"nothing begins at this time", edit(plain, "z", ", freeze: [{cron: '0 11 * * *', for: 3h}]"), "a=x*4 callers=a", "Holding/FreezeWindow"},
			{"until it is over", all(settle, later(2*time.Hour)), "a=x*4 b=z*1 callers=a", "Preparing"},
		}},
		"Stopped": {strings.Replace(plain, "replicas: 4", "replicas: 0", 1), []step{
			{"where nobody is served, nobody tries anything", edit(strings.Replace(plain, "replicas: 4", "replicas: 0", 1), "z", ""), "a=x*0 b=z*0 callers=a", "Stable"},
			{"and what is asked for is there at once", settle, "a=x*0 b=z*0 callers=b", "Stable"},
		}},
		"FunctionAwayFailing": {plain, []step{
			{"a share tries it", all(edit(plain, "z", ""), settle, settle, settle), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"what failed while nobody decided counts at once", all(settle, settle, later(10*time.Minute), looked(failing)), "a=x*4 b=z*1 callers=a", "RollingBack/MetricFailed"},
		}},
		"FunctionAway": {plain, []step{
			{"a share tries it", all(edit(plain, "z", ""), settle, settle, settle), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"time alone proves nothing", all(settle, settle, later(10*time.Minute), seen), "a=x*4 b=z*1 callers=", "Holding/MetricsUnavailable"},
			{"it goes on where it was once somebody looks", all(settle, later(10*time.Second), judge(passed)), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"and counts from zero", all(seen, settle, later(time.Minute), judge(passed)), "a=x*4 b=z*4 callers=", "Stepping/Sizing"},
		}},
		"BadEdit": {plain, []step{
			{"a share tries it", all(edit(plain, "z", ""), settle, settle, settle), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"a spec that cannot be carried out changes nothing", all(settle, func(w *world) { w.told(w.plan()); w.told(w.plan()) }, edit(plain, "'a b'", "")), "a=x*4 b=z*1 callers=", "Stepping/Soaking"},
			{"but a candidate that fails", func(w *world) { w.judge(failing) }, "a=x*4 b=z*1 callers=a", "Stepping/Soaking"},
			{"and stays away", func(w *world) { w.compose(w.plan()) }, "a=x*4 b=z*1 callers=a", "Stepping/Soaking"},
			{"which is told once the spec is corrected", all(edit(plain, "z", ""), func(w *world) { w.told(w.plan()) }), "a=x*4 b=z*1 callers=a", "RollingBack/MetricFailed"},
		}},
		"BadEditRouted": {routed, []step{
			{"a share tries it", all(edit(routed, "z", ""), settle, settle, settle, settle), "a=x*4 b=z*1 callers=a reco-slot-a:90 reco-slot-b:10", "Stepping/Soaking"},
			{"a spec that cannot be carried out does not hold up a rollback", func(w *world) {
				w.settle()
				w.told(w.plan())
				w.told(w.plan())
				edit(routed, "'a b'", "")(w)
				w.judge(failing)
			}, "a=x*4 b=z*1 callers=a reco-slot-a:100 reco-slot-b:0", "Stepping/Soaking"},
		}},
		"StatusAndServiceLost": {routed, []step{
			{"a share tries it", all(edit(routed, "z", ""), settle, settle, settle, settle), "a=x*4 b=z*1 callers=a reco-slot-a:90 reco-slot-b:10", "Stepping/Soaking"},
			{"the route remembers", func(w *world) { w.settle(); delete(w.request.Observed, names.Service) }, "a=x*4 b=z*1 callers=a reco-slot-a:90 reco-slot-b:10", "Stepping/Soaking"},
			{"without that, nobody decides", func(w *world) {
				w.settle()
				delete(w.request.Observed, names.Service)
				w.change(names.Route, func(o composetest.Object) { delete(compose.Map(o, "metadata", "annotations"), names.AnnotationLedger) })
			}, "a=x*4 b=z*1 callers=a reco-slot-a:90 reco-slot-b:10", "Holding/StateLost"},
			{"until somebody does", token(routed, acts("abort: HASH")), "a=x*4 b=z*1 callers=a reco-slot-a:100 reco-slot-b:0", "RollingBack/Aborted"},
		}},
		"RouteNeverTaken": {routed, []step{
			{"the candidate is there", func(w *world) {
				edit(routed, "z", "")(w)
				w.settle()
				w.stale()
			}, "a=x*4 b=z*1 callers=a reco-slot-a:100 reco-slot-b:0", "Preparing"},
			{"and the Gateway is not", all(seen, later(2*time.Minute)), "a=x*4 b=z*1 callers=a reco-slot-a:100 reco-slot-b:0", "Holding/AwaitingRoute"},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, fmt.Sprintf(tc.spec, "x", ""))
			w.settle()
			for _, s := range tc.steps {
				if s.do != nil {
					s.do(w)
				}
				p := w.plan()
				if diff := cmp.Diff(s.want, scene(t, p)); diff != "" {
					t.Errorf("%s: -want, +got:\n%s", s.reason, diff)
				}
				st := rolloutOf(t, p)
				got := string(st.Phase)
				switch st.Phase {
				case v1alpha1.RolloutStepping, v1alpha1.RolloutHolding, v1alpha1.RolloutRollingBack, v1alpha1.RolloutRolledBack:
					got += "/" + st.Reason
				default:
				}
				if got != s.phase {
					t.Fatalf("%s: got %s (%s), want %s", s.reason, got, st.Message, s.phase)
				}
			}
		})
	}
}
