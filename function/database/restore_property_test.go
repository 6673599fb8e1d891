// SPDX-License-Identifier: Apache-2.0

package database

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
)

// A history is what happens to the generations of one Database, by plans, edits and faults.
type history struct {
	*world

	r *rand.Rand

	// restored and undone count how often clients were switched, by id.
	restored, undone map[string]int

	// keptUntil is until when the members of a generation have to be there.
	keptUntil map[int]time.Time

	// ids that were asked for.
	ids int
	log []string

	// version that is asked for, and words about an upgrade to it.
	version, upgrade, asked string
	retries                 int

	// wal reports that the spec has a volume for the write-ahead log, which stays.
	wal bool

	// selects is the generation that the Service selected last.
	selects int
}

// id of a wish: a new one, or one of before.
func (h *history) id() int {
	if h.r.IntN(3) > 0 {
		h.ids++
	}
	return max(0, h.ids-h.r.IntN(2))
}

func (h *history) sayf(format string, args ...any) {
	h.log = append(h.log, h.request.Now.Format("Mon 15:04 ")+fmt.Sprintf(format, args...))
}

func (h *history) failf(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("%s\n%s\n%s", fmt.Sprintf(format, args...), strings.Join(h.log[max(0, len(h.log)-60):], "\n"), h.secret)
}

// carryOut a plan, all of it or, when Crossplane crashes halfway, a part.
func (h *history) carryOut(p *compose.Plan, crash bool) {
	h.t.Helper()
	next := map[string]compose.Object{}
	for _, name := range compose.SortedKeys(p.Objects) {
		was := h.request.Observed[name]
		if crash && h.r.IntN(2) == 0 {
			if was != nil {
				next[name] = was
			}
			continue
		}
		o, err := composetest.Decode(p.Objects[name].Object)
		if err != nil {
			h.t.Fatal(err)
		}
		if was != nil && was.Map()["status"] != nil {
			o.Map()["status"] = was.Map()["status"]
		}
		if was != nil {
			keepRecord(was, o)
		}
		next[name] = o
	}
	for name, o := range h.request.Observed {
		if next[name] == nil && crash {
			next[name] = o
		}
	}
	h.holds(next)
	h.request.Observed = next
	h.status(p, crash)
}

// holds what must never happen.
func (h *history) holds(next map[string]compose.Object) {
	h.t.Helper()
	selected := func(objects map[string]compose.Object) int {
		if objects[names.ReadWrite] == nil {
			return 0
		}
		if base := compose.Text(objects[names.ReadWrite].Map(), "spec", "selector", "capstan.dev/database"); base != "" {
			h.selects = h.generationNamed(base)
		}
		return h.selects // or whoever leads during an upgrade
	}
	h.fenced(next)
	was := selected(h.request.Observed)
	is := selected(next)

	// One that is recreated learns of its generation a pass later, and has no members before.
	if was > 0 && is > 0 && was != is && len(h.replicas(was)) > 0 {
		h.sayf("clients are led from %d to %d", was, is)
		if m := h.remembers(); m.Generation() != is {
			h.failf("clients are led to generation %d before the Secret remembers it", is)
		}

		// An upgrade fences in another way: nobody takes writes there, and nobody can.
		fenced := (&facts.Cluster{Names: names.Names{Generation: was}, Facts: &facts.Facts{Recollection: memory.Recollection{Memory: h.remembers()}}}).Kept().Fenced
		if fenced && h.fenceOf(was) == "" {
			h.failf("clients are led from generation %d to %d while the old one is not fenced", was, is)
		}
		if fenced && !h.upgrades.begun[is] && h.recordOf(was).State != apimembers.FenceCommitted {
			h.failf("clients are led to generation %d, which has no data", is)
		}
		for letter, n := range h.replicas(was) {
			if fenced {
				break
			}
			pod := h.request.Observed[(&names.Names{Generation: was}).In(names.MemberPrefix+letter)].Map()
			if n != 0 || compose.Map(pod, "status") == nil || compose.Number(pod, 0, "status", "replicas") != 0 {
				h.failf("clients are led from generation %d to %d while member %s of the old one runs", was, is, letter)
			}
		}
		h.count(was, is)
	}
	for name := range h.request.Observed {
		g, ok := names.GenerationOf(name)
		if !ok || next[name] != nil || !strings.HasPrefix(name, names.MemberPrefix) {
			continue
		}
		if g == is {
			h.failf("%s of the generation that serves is removed", name)
		}
		if until := h.keptUntil[g]; h.request.Now.Before(until) {
			h.failf("%s is removed, although its generation is to be kept until %s", name, until)
		}
	}
}

// fenced generations stay so while the one that has their data comes up: what they took then it would not have.
func (h *history) fenced(next map[string]compose.Object) {
	h.t.Helper()
	step := h.remembers().Step
	if step == nil || step.Kind != memory.StepUpgrade {
		return
	}
	if id := h.fenceOf(step.To); id != "" {
		h.failf("generation %d comes up with the fence %s: its members would wait for another one", step.To, id)
	}
	if !h.upgrades.begun[step.To] || h.fenceOf(step.From) == "" {
		return
	}
	o := next[(&names.Names{Generation: step.From}).In(names.DCS)]
	if o == nil || !strings.Contains(compose.Text(o.Map(), "metadata", "annotations", names.AnnotationConfig), `"capstan_fence":`) {
		h.failf("the fence of generation %d is taken away while generation %d, which has its data, comes up", step.From, step.To)
	}
}

// count that clients were switched.
func (h *history) count(was, is int) {
	h.t.Helper()
	m := h.remembers()
	delete(h.keptUntil, is)
	h.keptUntil[was] = m.Since.Add(time.Hour)
	for _, d := range m.Done {
		switch {
		case d.State == "Done" && d.From == was && d.To == is:
			h.restored[d.Kind+d.ID]++
		case d.State == "Undone" && d.From == is && d.To == was:
			h.undone[d.Kind+d.ID]++
		}
	}
	for id, n := range h.restored {
		if n > 1 || h.undone[id] > 1 {
			h.failf("%s is carried out twice", id)
		}
	}
}

func (h *history) generationNamed(base string) int {
	for g := 1; g < 1000; g++ {
		if names.BaseOf("orders-db", g) == base {
			return g
		}
	}
	h.failf("the Service leads to %q", base)
	return 0
}

// status of the Database, unless Crossplane crashes before it is written.
func (h *history) status(p *compose.Plan, crash bool) {
	if crash {
		return
	}
	status, err := compose.AsMap(p.Status)
	if err != nil {
		h.t.Fatal(err)
	}
	var conditions []any
	for _, c := range p.Conditions {
		conditions = append(conditions, map[string]any{"type": string(c.Type), "status": string(c.Status), "reason": string(c.Reason), "message": c.Message})
	}
	status["conditions"] = append(conditions, map[string]any{"type": "Ready", "status": map[bool]string{true: "True", false: "False"}[p.Ready], "reason": "Available"})
	h.request.Composite.Map()["status"] = status
}

// trouble of all kinds.
func (h *history) trouble() {
	switch h.r.IntN(200) {
	case 0, 1, 15, 16:
		h.ask(fmt.Sprintf(`{id: r%d, keepOldFor: 1h}`, h.id()))
	case 2:
		h.ask(fmt.Sprintf(`{id: r%d, at: "2026-11-20T10:0%d:00Z", keepOldFor: 1h}`, h.id(), h.r.IntN(3)))
	case 3, 4, 13, 14:
		h.ask(fmt.Sprintf(`{undo: r%d, keepOldFor: 1h}`, h.ids))
	case 5:
		h.ask("")
	case 6:
		h.ask(`{id: early, at: "2026-11-01T00:00:00Z"}`)
	case 7:
		h.sayf("the status is lost")
		delete(h.request.Composite.Map(), "status")
	case 8:
		h.sayf("the first Credential is lost")
		delete(h.request.Observed, names.AccessCredential)
	case 9:
		for _, g := range []int{1, 2, 3, 4, 5} {
			delete(h.broken, fmt.Sprintf("orders-db-g%d-a", g))
		}
		h.broken[fmt.Sprintf("orders-db-g%d-a", 2+h.r.IntN(4))] = "RestoreFailed"
	case 10:
		h.sayf("the Database is deleted and applied again")
		h.request.Observed = map[string]compose.Object{}
		delete(h.request.Composite.Map(), "status")
		clear(h.keptUntil)
	case 11:
		h.sayf("a Topology tells nothing")
		for name, o := range h.request.Observed {
			if strings.HasPrefix(name, names.Topology) && h.r.IntN(2) == 0 {
				delete(o.Map(), "status")
			}
		}
	case 12:
		h.broken = map[string]string{}
	case 17, 18, 19, 20, 21, 22:
		h.raise([]string{"15", "17", "18"}[h.r.IntN(3)])
	case 23, 24, 25:
		h.retries++
		h.about(fmt.Sprintf("{retry: t%d, keepOldFor: 1h}", h.retries))
	case 26, 27, 28:
		for _, d := range h.remembers().Done {
			if d.Kind == memory.StepUpgrade {
				h.about(fmt.Sprintf("{undo: %s, keepOldFor: 1h}", d.ID))
			}
		}
	case 29:
		h.about("")
	case 32, 33, 34, 35:
		h.sayf("a spec that is refused")
		h.edit(refusedSpec)
	case 36:
		h.upgrades.decides = !h.upgrades.decides
		h.sayf("members of the next upgrade decide: %t", h.upgrades.decides)
	case 30, 31:
		h.upgrades.findings, h.upgrades.failure, h.upgrades.stubborn, h.upgrades.stuck = "", "", false, false
		switch h.r.IntN(5) {
		case 0:
			h.upgrades.findings = "a view"
		case 1:
			h.upgrades.failure = "pg_upgrade ended"
		case 2:
			h.upgrades.stubborn = true
		case 3:
			h.upgrades.stuck = true
		}
		h.sayf("members: %q %q stubborn %t stuck %t", h.upgrades.findings, h.upgrades.failure, h.upgrades.stubborn, h.upgrades.stuck)
	}
}

// pause until the next pass: while members upgrade, or decide who takes writes, it is short, or none would end in time.
func (h *history) pause(usual time.Duration) time.Duration {
	if step := h.remembers().Step; step != nil && (step.Kind == memory.StepUpgrade || h.upgrades.decides) {
		return usual / 20
	}
	return usual
}

// raise or lower the version that is asked for.
func (h *history) raise(version string) {
	h.version = version
	h.sayf("version %s", version)
	h.ask(h.asked)
}

// about upgrades.
func (h *history) about(upgrade string) {
	h.upgrade = upgrade
	h.sayf("upgrade %s", upgrade)
	h.ask(h.asked)
}

func (h *history) ask(revisionInputs string) {
	h.sayf("asked for: %s", revisionInputs)
	h.asked = revisionInputs
	if revisionInputs != "" {
		revisionInputs = ", restore: " + revisionInputs
	}
	if h.wal = h.wal || len(h.log) > 15; h.wal { // in the middle of what happens
		revisionInputs += ", walStorage: 20Gi"
	}
	h.edit(atVersion(h.version, revisionInputs+", upgrade: "+cmp.Or(h.upgrade, "{keepOldFor: 1h}")))
}

// look as provider and controllers do. At times the Credential is late.
func (h *history) look(late bool) {
	before := h.secret
	told := any(nil)
	if o := h.request.Observed[names.AccessCredential]; o != nil {
		told = o.Map()["status"]
	}
	for g := range 12 {
		h.backups[g] = h.backup
	}
	said := map[string]any{}
	for name, o := range h.request.Observed {
		if strings.HasPrefix(name, names.MemberPrefix) && o.Map()["status"] != nil {
			said[name] = o.Map()["status"]
		}
	}
	h.react()
	if o := h.request.Observed[names.AccessCredential]; late && o != nil {
		// Written or not, nobody was told.
		if h.r.IntN(2) == 0 {
			h.secret = before
		}
		o.Map()["status"] = told
		if told == nil {
			delete(o.Map(), "status")
		}
	}

	// Of a StatefulSet that was changed the controller has not told, or done, anything yet.
	for name, o := range h.request.Observed {
		if late && said[name] != nil && h.r.IntN(2) == 0 {
			o.Map()["status"] = said[name]
		}
	}
}

// restoreSeeds of a run. More take minutes, and found nothing else.
func restoreSeeds() []uint64 { return []uint64{0, 1, 2, 3} }

// TestRestoreProperties drives generations through edits, crashes between writes, lost objects and a Database that is recreated,
// and holds every plan to the rules: clients are led away only from a generation that has stopped; each restore and each undo is
// carried out once; the members of a generation that is kept, or that serves, stay; and once faults stop, always an end.
func TestRestoreProperties(t *testing.T) {
	for _, seed := range restoreSeeds() {
		h := &history{
			world: restorable(t), r: rand.New(rand.NewPCG(seed, 11)),
			restored: map[string]int{}, undone: map[string]int{}, keptUntil: map[int]time.Time{}, version: "17",
		}
		h.sayf("seed %d", seed)
		for name, o := range h.request.Observed {
			delete(o.Map()["metadata"].(map[string]any), "managedFields")
			h.request.Observed[name] = o
		}
		for range 200 {
			h.trouble()
			h.carryOut(h.plan(), h.r.IntN(6) == 0)
			h.look(h.r.IntN(2) == 0)
			h.request.Now = h.request.Now.Add(h.pause(time.Duration(h.r.IntN(8)) * time.Minute))
		}
		h.ends()
	}
}

// ends what was begun, and carries out one more.
func (h *history) ends() {
	h.t.Helper()
	h.broken, h.upgrade = map[string]string{}, ""
	h.upgrades.findings, h.upgrades.failure, h.upgrades.stubborn, h.upgrades.stuck = "", "", false, false

	// What has the data now goes on.
	h.version = cmp.Or(h.remembers().Versions[h.remembers().Generation()], "17")
	h.ask("")
	over := func(what string, is func() bool) {
		for range 40 {
			h.carryOut(h.plan(), false)
			h.look(false)
			if is() {
				return
			}
			h.request.Now = h.request.Now.Add(h.pause(10 * time.Minute))
		}
		p := h.plan()
		_, reason, message := condition(p, "Restored")
		_, upgraded, how := condition(p, "Upgraded")
		h.failf("%s: it does not end: %s: %s; %s: %s", what, reason, message, upgraded, how)
	}
	serves := func() bool {
		m := h.remembers()
		all := h.replicas(m.Generation())
		return m.Step == nil && h.plan().Ready && h.selected(names.ReadWrite) == names.BaseOf("orders-db", m.Generation()) && len(all) == 3 &&
			!slices.Contains([]int64{all["a"], all["b"], all["c"]}, 0)
	}
	over("taken back", serves)
	h.ask(`{id: last, keepOldFor: 1h}`)
	over("restored", func() bool { d, ok := h.remembers().Restored("last"); return ok && d.State == "Done" && serves() })
	h.ask(`{undo: last, keepOldFor: 1h}`)
	over("undone", func() bool { d, _ := h.remembers().Restored("last"); return d.State == "Undone" && serves() })
	if h.version == "17" {
		h.about("{retry: last, keepOldFor: 1h}")
		h.raise("18")
		over("upgraded", func() bool { return h.remembers().Versions[h.remembers().Generation()] == "18" && serves() })
		h.version = "17"
		h.about("{undo: upgrade-17-18-last, keepOldFor: 1h}")
		over("taken back", func() bool { return h.remembers().Versions[h.remembers().Generation()] == "17" && serves() })
	}
	over("removed", func() bool {
		for name := range h.request.Observed {
			if g, ok := names.GenerationOf(name); ok && g != h.remembers().Generation() {
				return false
			}
		}
		return serves()
	})
}
