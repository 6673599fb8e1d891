// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// A fleet is the pods of both slots, on nodes. All of them are well, and it takes them as long as it takes to start.
type fleet struct {
	*trial

	r    *rand.Rand
	pods map[string][]fleetPod

	// start is how long a pod of the candidate takes to become ready, and inTurn whether one waits for the one before.
	start  time.Duration
	inTurn bool

	// registryAway is until when images cannot be pulled, and outage until when both revisions fail their requests.
	registryAway, outage time.Time

	// alone reports whether an outage has hit a candidate that served alone, so that it looked like its own fault.
	alone bool
}

type fleetPod struct {
	node           int
	created, ready time.Time

	// pulled reports whether its image has arrived.
	pulled bool
}

// serves reports whether the pod is ready, which is zero until it has its turn to start.
func (p fleetPod) serves(now time.Time) bool { return !p.ready.IsZero() && !p.ready.After(now) }

const fleetNodes = 3

func (f *fleet) now() time.Time { return f.request.Now }

// add a pod to a slot.
func (f *fleet) add(slot string, live bool) {
	p := fleetPod{node: f.r.IntN(fleetNodes), created: f.now()}
	if live {
		p.pulled, p.ready = true, f.now().Add(5*time.Second)
	}
	f.pods[slot] = append(f.pods[slot], p)
}

// kubelets start pods, and the controllers of Deployments replace those that are gone.
func (f *fleet) kubelets() {
	l, _ := f.memory()
	for _, slot := range names.Slots {
		o := f.request.Observed[names.Deployment(slot)]
		d := runningIn(o)
		if o == nil || f.runs[slot] != d.Revision {
			f.pods[slot] = nil
		}
		f.runs[slot], f.ready[slot] = d.Revision, 0
		if o == nil {
			continue
		}
		for int64(len(f.pods[slot])) < d.Size {
			f.add(slot, d.Revision != rolloutTarget(f.tb, f.world) || l.Candidate == "")
		}
		f.pods[slot] = f.pods[slot][:d.Size]
		starts := func(p fleetPod) bool { return p.ready.After(f.now()) }
		for i := range f.pods[slot] {
			p := &f.pods[slot][i]
			p.pulled = p.pulled || !f.now().Before(f.registryAway)
			if p.pulled && p.ready.IsZero() && (!f.inTurn || !slices.ContainsFunc(f.pods[slot], starts)) {
				p.ready = f.now().Add(f.start)
			}
			if p.serves(f.now()) {
				f.ready[slot]++
			}
		}
		n := float64(f.ready[slot])
		f.runIn(slot, func(s map[string]any) { s["availableReplicas"], s["readyReplicas"] = n, n })
	}
}

// findings as the provider has them.
func (f *fleet) findings() []observev1alpha1.Finding {
	var out []observev1alpha1.Finding
	for _, slot := range names.Slots {
		byReason := map[string]*observev1alpha1.Finding{}
		for _, p := range f.pods[slot] {
			reason, cause := "ImagePullFailed", observev1alpha1.FindingOutside
			switch {
			case !p.pulled:
			case !p.serves(f.now()) && f.now().Sub(p.created) >= time.Minute:
				reason, cause = "NotListening", ""
			default:
				continue
			}
			if byReason[reason] == nil {
				byReason[reason] = &observev1alpha1.Finding{Reason: reason, Message: "it waits", Slot: slot, Cause: cause}
			}
			if s := byReason[reason].Since; s == nil || p.created.After(s.Time) {
				byReason[reason].Since = &metav1.Time{Time: p.created}
			}
		}
		for _, reason := range compose.SortedKeys(byReason) {
			out = append(out, *byReason[reason])
		}
	}
	return out
}

// looks of the provider. Both revisions fail in an outage; where only one serves, that one fails.
func (f *fleet) looks() {
	letter := byte('P')
	if l, _ := f.memory(); f.now().Before(f.outage) {
		if letter = 'S'; l.Standing() == v1alpha1.RolloutBaking {
			letter, f.alone = 'F', true
		}
	}
	f.look(letter)
	if f.request.Observed[names.Analysis] == nil {
		return
	}
	f.change(names.Analysis, func(o composetest.Object) {
		found := []any{}
		for _, one := range f.findings() {
			raw, err := composetest.Decode(one)
			if err != nil {
				f.tb.Fatal(err)
			}
			found = append(found, map[string]any(raw))
		}
		if at := compose.Map(o, "status", "atProvider"); at != nil {
			at["findings"] = found
		}
	})
}

// evict one pod, or all that are on a node.
func (f *fleet) evict(node int) {
	slot := names.Slots[f.r.IntN(len(names.Slots))]
	if n := len(f.pods[slot]); node < 0 && n > 0 {
		f.notef("evicts a pod of %s", slot)
		i := f.r.IntN(n)
		f.pods[slot] = slices.Delete(slices.Clone(f.pods[slot]), i, i+1)
		return
	}
	if node < 0 {
		return
	}
	f.notef("drains node %d", node)
	for _, slot := range names.Slots {
		f.pods[slot] = slices.DeleteFunc(slices.Clone(f.pods[slot]), func(p fleetPod) bool { return p.node == node })
	}
}

// goes on for a while.
func (f *fleet) goes(d time.Duration) {
	f.tb.Helper()
	const tick = 30 * time.Second
	for ; d > 0 && !f.broken; d -= tick {
		f.later(tick)
		f.kubelets()
		f.gate()
		f.looks()
		f.write(f.pass(), all, true)
		f.kubelets()
		f.gate()
	}
}

// blips happen at random to a rollout of a good revision, which is live in the end and never condemned.
func blips(tb testing.TB, seed uint64) {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	steps := [][]int{{20}, {10, 50}, {50}, {25, 50, 75}}[r.IntN(4)]
	tr := newTrial(tb, wish{image: "x", replicas: 2 + r.IntN(3), routed: r.IntN(3) > 0, steps: steps})
	if !tr.wish.routed {
		tr.wish.replicas, tr.wish.steps = 4, []int{25, 50}
	}
	f := &fleet{trial: tr, r: r, pods: map[string][]fleetPod{}}
	f.start = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 6 * time.Minute, 10 * time.Minute, 15 * time.Minute}[r.IntN(6)]
	f.inTurn = r.IntN(3) == 0
	f.notef("%d replicas, starts in %s, in turn %t, steps %v", tr.wish.replicas, f.start, f.inTurn, tr.wish.steps)
	for range tr.wish.replicas {
		f.add(names.SlotA, true)
	}
	f.goes(time.Minute)
	tr.wish.image = "z"
	tr.asks()
	good := rolloutTarget(tb, tr.world)
	for range 12 {
		f.goes(time.Duration(1+r.IntN(8)) * time.Minute)
		l, _ := tr.memory()
		switch r.IntN(6) {
		case 0, 1:
			f.evict(-1)
		case 2:
			f.evict(r.IntN(fleetNodes))
		case 3:
			f.registryAway = f.now().Add(time.Duration(1+r.IntN(40)) * time.Minute)
			f.notef("the registry is away for %s", f.registryAway.Sub(f.now()))
			f.evict(-1)
		case 4:
			// Another one could hit it alone again, and twice is no chance.
			if f.alone {
				continue
			}
			f.outage = f.now().Add(time.Duration(30+r.IntN(300)) * time.Second)
			f.notef("both fail for %s, in %s", f.outage.Sub(f.now()), l.Standing())
			f.goes(f.outage.Sub(f.now()) + 15*time.Second)
		}
	}
	f.notef("nothing happens any more")
	for range 60 {
		l, _ := tr.memory()
		if len(l.Failed) > 0 || l.Revision == good && l.Standing() == v1alpha1.RolloutStable || tr.broken {
			break
		}
		f.goes(10 * time.Minute)
	}
	l, _ := tr.memory()
	if len(l.Failed) > 0 {
		tr.failf("blips", "a good revision was condemned: %s: %s", l.Failed[0].Reason, l.Failed[0].Message)
	}
	if l.Revision != good || l.Standing() != v1alpha1.RolloutStable {
		tr.failf("blips", "a good revision is not live ten hours later: %s %s: %s", l.Phase, l.Reason, rolloutOf(tb, tr.plan()).Message)
	}
}

// TestBlipsCondemnNobody lets pods start slowly, nodes be drained, a registry be away and both revisions fail, in any order.
func TestBlipsCondemnNobody(t *testing.T) {
	const trials = 8
	for seed := range uint64(trials) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { blips(t, seed) })
	}
}
