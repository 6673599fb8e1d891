// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// fileMember is the file that the program in members reads, in the fixtures of this package.
const fileMember = pgmember.FileConfig

// upgrades of a world: what the programs of members make of them.
type upgrades struct {
	// reports of members that fill a generation, and begun the generations that have data since.
	reports map[int]*observev1alpha1.UpgradeReport
	begun   map[int]bool

	// of are the generations whose data they have.
	of map[int]int

	// findings in the way, failure of what is tried once the leader has stopped, and stubborn reports that the leader cannot
	// stop.
	findings, failure string
	stubborn          bool

	// decides reports that members decide a fence, as those of this release do. Otherwise they are of an earlier image.
	decides bool

	// stuck reports that no member of a later generation gets further than to be ready.
	stuck bool
}

// fenceOf a generation, as Patroni has it.
func (w *world) fenceOf(generation int) string {
	w.t.Helper()
	var config struct {
		Pause bool   `json:"pause"`
		Fence string `json:"capstan_fence"`
	}
	if o := w.request.Observed[(&names.Names{Generation: generation}).In(names.DCS)]; o != nil {
		if err := json.Unmarshal([]byte(compose.Text(o.Map(), "metadata", "annotations", names.AnnotationConfig)), &config); err != nil {
			w.t.Fatal(err)
		}
	}
	if config.Fence != "" && !config.Pause {
		w.t.Fatal("a fence comes with a pause")
	}
	return config.Fence
}

// upgrade the data of a generation, as its members do.
func (w *world) upgrade(generation int, seen *observev1alpha1.TopologyObservation) {
	w.t.Helper()
	if id := w.fenceOf(generation); id != "" {
		w.stop(seen)
	}
	at := &names.Names{Generation: generation}
	var file pgmember.Config
	if o := w.request.Observed[at.In(names.Config)]; o != nil {
		if err := json.Unmarshal([]byte(compose.Text(o.Map(), "data", fileMember)), &file); err != nil {
			w.t.Fatal(err)
		}
	}
	if t := file.TakeOver; t != nil {
		w.takeOver(generation, t.ID, t.Database)
	}
	r := w.upgrades.reports[generation]
	runs := func(m observev1alpha1.TopologyMember) bool {
		return m.State != observev1alpha1.MemberStopped && m.State != observev1alpha1.MemberFailed
	}
	if u := file.Upgrade; u != nil && !w.upgrades.begun[generation] && slices.ContainsFunc(seen.Members, runs) {
		from := 1
		for names.BaseOf("orders-db", from) != u.Database {
			from++
		}
		w.upgrades.of[generation] = from
		r = w.progress(r, u.ID, w.decide(from, generation, r, u.ID))
		if w.upgrades.reports[generation] = r; r.Phase == apimembers.UpgradeSettling {
			w.upgrades.begun[generation] = true
		}
	}
	if seen.Upgrade = r; r == nil && file.Upgrade == nil {
		return
	}
	if w.upgrades.begun[generation] {
		if r.Phase = apimembers.UpgradeDone; generation%2 == 0 {
			r.Message = "pg_partman could not be updated"
		}
		return
	}
	seen.Leader, seen.SystemIdentifier, seen.Phase = "", "", observev1alpha1.TopologyBootstrapping
	for i := range seen.Members {
		if m := &seen.Members[i]; runs(*m) {
			m.State, m.Role, m.Ready, m.Reason, m.Message = observev1alpha1.MemberStarting, "", false, "Upgrading", "it says how far it is"
		}
	}
}

// takeOver the clients of another generation, as members of one do that a restore fills.
func (w *world) takeOver(generation int, id, database string) {
	w.t.Helper()
	from := 1
	for names.BaseOf("orders-db", from) != database {
		from++
	}
	o := w.request.Observed[(&names.Names{Generation: from}).In(names.DCS)]
	if o == nil {
		return
	}
	fence, r, base := w.fenceOf(from), w.recordOf(from), names.BaseOf("orders-db", generation)
	own := r.ID == id && r.To == base
	switch {
	case !own && w.upgrades.decides && fence == "":
		w.record(from, apimembers.FenceRecord{ID: id, To: base, State: apimembers.FenceOffered})
	case !own, fence != id, r.State == apimembers.FenceCommitted, r.State == apimembers.FenceWithdrawn:
	case strings.Contains(compose.Text(o.Map(), "metadata", "annotations", names.AnnotationConfig), "capstan_fence_withdraw"),
		r.Until != nil && !w.request.Now.Before(*r.Until):
		r.State, r.Until, r.Why = apimembers.FenceWithdrawn, nil, base+" did not take over"
		w.record(from, r)
	case r.State == apimembers.FenceOffered:
		until := w.request.Now.Add(3 * time.Minute)
		r.State, r.Until = apimembers.FenceHeld, &until
		w.record(from, r)
	case w.upgrades.stuck, w.upgrades.stubborn:
	default:
		r.State, r.Until = apimembers.FenceCommitted, nil
		w.record(from, r)
	}
}

// stop the leader for a fence.
func (w *world) stop(seen *observev1alpha1.TopologyObservation) {
	seen.Paused = true
	for i := range seen.Members {
		switch m := &seen.Members[i]; {
		case m.Name != seen.Leader || seen.Leader == "":
		case w.upgrades.stubborn:
			m.Reason, m.Message = "CannotFence", "orders-db-b has not heard yet that nobody is to be promoted"
			return
		default:
			m.State, m.Role, m.Ready, m.Reason = observev1alpha1.MemberStarting, "", false, "Fenced"
		}
	}
	if seen.Leader != "" {
		seen.Leader, seen.Phase = "", observev1alpha1.TopologyNoLeader
	}
}

// progress of an upgrade in a pass.
func (w *world) progress(r *observev1alpha1.UpgradeReport, id, fence string) *observev1alpha1.UpgradeReport {
	if r == nil || r.ID != id {
		return &observev1alpha1.UpgradeReport{ID: id, Phase: apimembers.UpgradeCopying}
	}
	next := *r
	switch r.Phase {
	case apimembers.UpgradeCopying:
		next.Phase = apimembers.UpgradeChecking
	case apimembers.UpgradeChecking, apimembers.UpgradeIncompatible:
		next.Phase, next.GapSeconds, next.Findings = apimembers.UpgradeReady, 6, ""
		if w.upgrades.findings != "" {
			next.Phase, next.GapSeconds, next.Findings = apimembers.UpgradeIncompatible, 0, w.upgrades.findings
		}
	case apimembers.UpgradeReady:
		switch {
		case fence != id || w.upgrades.stuck || w.upgrades.stubborn:
		case w.upgrades.failure != "":
			next.Phase, next.Message = apimembers.UpgradeFailed, w.upgrades.failure
		default:
			next.Phase = apimembers.UpgradeSettling
		}
	}
	return &next
}

// keepRecord that members wrote into an object, which Crossplane does not own.
func keepRecord(was compose.Object, o compose.Object) {
	if text := compose.Text(was.Map(), "metadata", "annotations", apimembers.AnnotationFence); text != "" {
		o.Map()["metadata"].(map[string]any)["annotations"].(map[string]any)[apimembers.AnnotationFence] = text
	}
}

// recordOf a generation, as its members keep it.
func (w *world) recordOf(generation int) apimembers.FenceRecord {
	w.t.Helper()
	var r apimembers.FenceRecord
	if o := w.request.Observed[(&names.Names{Generation: generation}).In(names.DCS)]; o != nil {
		if text := compose.Text(o.Map(), "metadata", "annotations", apimembers.AnnotationFence); text != "" {
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	return r
}

// record of a generation, as its members write it.
func (w *world) record(generation int, r apimembers.FenceRecord) {
	w.t.Helper()
	raw, err := json.Marshal(r)
	if err != nil {
		w.t.Fatal(err)
	}
	o := w.request.Observed[(&names.Names{Generation: generation}).In(names.DCS)]
	o.Map()["metadata"].(map[string]any)["annotations"].(map[string]any)[apimembers.AnnotationFence] = string(raw)
}

// decide a fence as members do, and return the fence that is in force for the generation that upgrades.
func (w *world) decide(from, to int, said *observev1alpha1.UpgradeReport, id string) string {
	w.t.Helper()
	fence, r, base := w.fenceOf(from), w.recordOf(from), names.BaseOf("orders-db", to)
	o := w.request.Observed[(&names.Names{Generation: from}).In(names.DCS)]
	if o == nil {
		return fence
	}
	config := compose.Text(o.Map(), "metadata", "annotations", names.AnnotationConfig)
	own := r.ID == id && r.To == base
	switch {
	case !own && w.upgrades.decides && fence == "" && said != nil && said.Phase == apimembers.UpgradeChecking:
		w.record(from, apimembers.FenceRecord{ID: id, To: base, State: apimembers.FenceOffered})
	case !own, fence != id:
	case r.State == apimembers.FenceWithdrawn:
		return ""
	case strings.Contains(config, "capstan_fence_withdraw"), r.Until != nil && !w.request.Now.Before(*r.Until):
		r.State, r.Until, r.Why = apimembers.FenceWithdrawn, nil, base+" did not take over"
		w.record(from, r)
		return ""
	case r.State == apimembers.FenceOffered && strings.Contains(config, "capstan_fence_to"):
		until := w.request.Now.Add(3 * time.Minute)
		r.State, r.Until = apimembers.FenceHeld, &until
		w.record(from, r)
	case w.upgrades.stuck, w.upgrades.stubborn:
	case w.upgrades.failure != "":
		r.State, r.Until, r.Why = apimembers.FenceWithdrawn, nil, w.upgrades.failure
		w.record(from, r)
	case r.State != apimembers.FenceCommitted:
		r.State, r.Until = apimembers.FenceCommitted, nil
		w.record(from, r)
		return fence
	}
	if own && r.State != apimembers.FenceCommitted && w.upgrades.failure == "" {
		return "" // it does not get further
	}
	return fence
}
