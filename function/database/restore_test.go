// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
)

// backedUp is a Database with backups, and room for more of the spec.
const backedUp = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, backup: {enabled: true}%s}`

// restorable world: one that runs and has a backup.
func restorable(tb testing.TB) *world {
	tb.Helper()
	w := running(tb, fmt.Sprintf(backedUp, ""))
	w.backup = &observev1alpha1.BackupReport{
		Asked: true, Label: "20261119-000000F", Type: "full", Archive: observev1alpha1.ArchiveOK,
		Began: "2026-11-19T00:00:00Z", Ended: "2026-11-19T00:05:00Z", Earliest: "2026-11-19T00:05:00Z",
	}
	w.react()
	return w
}

// want of the spec: a restore.
func (w *world) want(restore string) {
	w.edit(fmt.Sprintf(backedUp, ", restore: "+restore))
}

// until something is so, pass after pass.
func (w *world) until(is func() bool) *compose.Plan {
	w.t.Helper()
	for range 20 {
		p := w.pass()
		if is() {
			return p
		}
	}
	_, reason, message := condition(w.plan(), "Restored")
	w.t.Fatalf("it does not come about: %s: %s; %s", reason, message, w.secret)
	return nil
}

// remembers what the Secret has.
func (w *world) remembers() memory.Memory {
	w.t.Helper()
	var m memory.Memory
	if w.secret != "" {
		if err := json.Unmarshal([]byte(w.secret), &m); err != nil {
			w.t.Fatal(err)
		}
	}
	return m
}

func (w *world) active(generation int) func() bool {
	return func() bool { m := w.remembers(); return m.Generation() == generation && m.Step == nil }
}

// replicas of the StatefulSets of a generation, by letter.
func (w *world) replicas(generation int) map[string]int64 {
	n := map[string]int64{}
	for name, o := range w.request.Observed {
		if g, ok := names.GenerationOf(name); ok && g == generation && strings.HasPrefix(name, names.MemberPrefix) {
			n[name[len(names.MemberPrefix):len(names.MemberPrefix)+1]] = compose.Number(o.Map(), -1, "spec", "replicas")
		}
	}
	return n
}

// selected generation: the one that a Service leads to.
func (w *world) selected(service string) string {
	if o := w.request.Observed[service]; o != nil && compose.Text(o.Map(), "spec", "selector", names.LabelInstance) != "" {
		// The leader of either generation, while one is upgraded to the other.
		if step := w.remembers().Step; step != nil {
			return names.BaseOf("orders-db", step.From)
		}
		return ""
	}
	return compose.Text(w.request.Observed[service].Map(), "spec", "selector", observev1alpha1.LabelDatabase)
}

func TestRestore(t *testing.T) {
	w := restorable(t)
	before := w.request.Observed
	w.want(`{id: r1, at: "2026-11-20T10:00:00Z"}`)

	// The new one is there beside the one that serves.
	w.until(func() bool { return len(w.replicas(2)) == 3 })
	for name, o := range before {
		if _, ok := names.GenerationOf(name); ok && !strings.HasPrefix(name, names.MemberPrefix) && name != names.Topology {
			if diff := cmp.Diff(o.Map()["spec"], w.request.Observed[name].Map()["spec"]); diff != "" {
				t.Errorf("%s of the generation that serves changes: %s", name, diff)
			}
		}
	}
	if diff := cmp.Diff(map[string]int64{"a": 1, "b": 1, "c": 1}, w.replicas(1)); diff != "" || w.selected(names.ReadWrite) != "orders-db" {
		t.Errorf("while the new one comes up the old one serves: %s", diff)
	}
	var begun pgmember.Config
	if err := json.Unmarshal([]byte(compose.Text(w.request.Observed[names.Config+"-g2"].Map(), "data", fileMember)), &begun); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	if diff := cmp.Diff(&pgmember.Source{Path: "/shop/orders-db", Stanza: "orders-db-3f2a9c1b-17", At: &at}, begun.From); diff != "" {
		t.Errorf("it begins with the backups of the one before: %s", diff)
	}
	if begun.Backup.Stanza != "orders-db-3f2a9c1b-g2-17" {
		t.Errorf("it archives to %q, among what the old one wrote", begun.Backup.Stanza)
	}
	made := w.revisionsOf(2)
	if begun.Backup.Former != nil {
		t.Errorf("stanzas %q expire while a restore is under way", begun.Backup.Former)
	}

	// Clients are switched.
	w.until(w.active(2))
	p := w.until(func() bool { return w.selected(names.ReadWrite) == "orders-db.g2" })
	if diff := cmp.Diff(map[string]int64{"a": 0, "b": 0, "c": 0}, w.replicas(1)); diff != "" {
		t.Errorf("the old one is stopped: %s", diff)
	}
	for range 4 {
		p = w.pass()
	}
	if status, reason, message := condition(p, "Restored"); status != "True" || reason != "Restored" {
		t.Errorf("it is told that it is restored: %s %s %s", status, reason, message)
	}
	if diff := cmp.Diff(made, w.revisionsOf(2)); diff != "" || !p.Ready {
		t.Errorf("no member restarts when clients are switched (ready %t): %s", p.Ready, diff)
	}
	if err := json.Unmarshal([]byte(compose.Text(w.request.Observed[names.Config+"-g2"].Map(), "data", fileMember)), &begun); err != nil {
		t.Fatal(err)
	}
	if begun.Backup.Former != nil {
		t.Errorf("stanzas %q expire while the restore can be undone", begun.Backup.Former)
	}
	st, at1, later := told(t, p), metav1.NewTime(now), metav1.NewTime(now.Add(24*time.Hour))
	if diff := cmp.Diff(&v1alpha1.GenerationStatus{
		Active: 2, Since: &at1, Kept: []v1alpha1.KeptGeneration{{Generation: 1, Restore: "r1", Until: later}},
	}, st.Generation); diff != "" {
		t.Errorf("the status tells which generation there is: %s", diff)
	}
	if diff := cmp.Diff(&v1alpha1.RestoreStatus{
		ID: "r1", Phase: v1alpha1.RestoreDone, From: 1, To: 2, At: "2026-11-20T10:00:00Z", Since: &at1,
	}, st.Restore); diff != "" {
		t.Errorf("the status tells what became of the wish: %s", diff)
	}
	if st.Backup.Stanza != "orders-db-3f2a9c1b-g2-17" {
		t.Errorf("backups go to stanza %q", st.Backup.Stanza)
	}
	if got := compose.Text(w.request.Observed[names.Access].Map(), "metadata", "annotations", names.LabelGeneration); got != "2" {
		t.Errorf("logins are looked at in generation %q", got)
	}

	// After a while the old one goes, but for its volumes.
	w.request.Now = now.Add(24 * time.Hour)
	w.until(func() bool { return len(w.replicas(1)) == 0 })
	for name := range w.request.Observed {
		if g, ok := names.GenerationOf(name); ok && g == 1 {
			t.Errorf("%s of the old generation stays", name)
		}
	}
	if w.selected(names.ReadWrite) != "orders-db.g2" || len(w.replicas(2)) != 3 {
		t.Error("the new one goes as well")
	}
	former := func() []string {
		var file pgmember.Config
		if err := json.Unmarshal([]byte(compose.Text(w.request.Observed[names.Config+"-g2"].Map(), "data", fileMember)), &file); err != nil {
			t.Fatal(err)
		}
		return file.Backup.Former
	}
	w.pass()
	if diff := cmp.Diff([]string{"orders-db-3f2a9c1b-17"}, former()); diff != "" {
		t.Errorf("its backups expire: -want, +got:\n%s", diff)
	}
	w.want(`{id: r2, at: "2026-11-20T10:00:00Z"}`)
	w.pass()
	if got := former(); got != nil {
		t.Errorf("stanzas %q expire although another restore is asked for", got)
	}
}

// TestRestoreHandsOver: members that can decide by themselves which generation serves, so that clients do not wait for Crossplane.
func TestRestoreHandsOver(t *testing.T) {
	shared := func(w *world) bool {
		return compose.Text(w.request.Observed[names.ReadWrite].Map(), "spec", "selector", names.LabelInstance) != ""
	}
	begin := func(t *testing.T, stuck bool) *world {
		t.Helper()
		w := restorable(t)
		w.upgrades.decides, w.upgrades.stuck = true, stuck
		w.want(`{id: r1}`)
		w.until(func() bool { return len(w.replicas(2)) == 3 })
		// Clients can follow before anything is fenced.
		w.until(func() bool {
			if w.fenceOf(1) != "" && !shared(w) {
				t.Fatal("the leader stops before clients can reach the next one")
			}
			return w.fenceOf(1) == "r1"
		})
		return w
	}
	t.Run("Taken", func(t *testing.T) {
		w := begin(t, false)
		if diff := cmp.Diff(map[string]int64{"a": 1, "b": 1, "c": 1}, w.replicas(1)); diff != "" {
			t.Errorf("members are stopped by Capstan as well: %s", diff)
		}
		w.until(w.active(2))
		p := w.until(func() bool { return w.selected(names.ReadWrite) == "orders-db.g2" && w.replicas(1)["a"] == 0 })
		if status, reason, message := condition(p, "Restored"); status != "True" {
			t.Errorf("%s: %s", reason, message)
		}
		led := compose.Text(w.request.Observed[names.MemberPrefix+"a"].Map(), "metadata", "annotations", names.AnnotationStopped)
		if led != facts.StoppedLeading {
			t.Errorf("who led last is to be known for the way back, got %q", led)
		}
		// The way back is by Capstan.
		w.want(`{undo: r1}`)
		w.until(w.active(1))
		w.until(func() bool { return w.selected(names.ReadWrite) == "orders-db" && w.replicas(2)["a"] == 0 })
		if fence := w.fenceOf(1); fence != "" {
			t.Errorf("generation 1 serves with the fence %q", fence)
		}
	})
	t.Run("Expires", func(t *testing.T) {
		w := begin(t, true)
		w.until(func() bool { return w.recordOf(1).State == apimembers.FenceHeld })
		p := w.pass()
		if _, reason, message := condition(p, "Restored"); reason != "RestoreFencing" || !strings.Contains(message, "generation 1 continues") {
			t.Errorf("%s: %s", reason, message)
		}
		if status, reason, _ := condition(p, "Available"); status != "False" || reason != "RestoreFencing" {
			t.Errorf("available %s, %s", status, reason)
		}
		w.request.Now = w.request.Now.Add(4 * time.Minute)
		if message := w.says("Restored", "RestoreFailed"); !strings.Contains(message, "generation 1 continues unchanged") || !strings.Contains(message, "choose another id") {
			t.Error(message)
		}
		w.until(func() bool {
			return w.fenceOf(1) == "" && len(w.replicas(2)) == 0 && w.selected(names.ReadWrite) == "orders-db"
		})
		if st := told(t, w.pass()); st.Restore == nil || st.Restore.Phase != v1alpha1.RestoreFailed {
			t.Errorf("%+v", st.Restore)
		}
		// It is not tried again by itself, and is with another id.
		w.upgrades.stuck = false
		w.want(`{id: r2}`)
		w.until(w.active(3))
	})
	t.Run("Cancelled", func(t *testing.T) {
		w := begin(t, true)
		w.want(`{undo: nothing}`)
		w.until(func() bool { return w.recordOf(1).State == apimembers.FenceWithdrawn })
		w.until(func() bool {
			return w.fenceOf(1) == "" && w.remembers().Step == nil && w.selected(names.ReadWrite) == "orders-db"
		})
		if m := w.remembers(); m.Generation() != 1 || len(m.Done) > 0 {
			t.Errorf("clients are switched, although the restore was withdrawn: %+v", m)
		}
	})
	t.Run("Leaderless", func(t *testing.T) {
		// Nobody would say that a leader has stopped which is not there. What is wrong with it may be why there is a restore.
		w := restorable(t)
		w.upgrades.decides, w.upgrades.stuck = true, true
		w.want(`{id: r1}`)
		w.until(func() bool { return w.remembers().Step != nil })
		w.broken = map[string]string{"orders-db-a": "Crashes", "orders-db-b": "Crashes", "orders-db-c": "Crashes"}
		w.until(func() bool {
			if w.fenceOf(1) != "" {
				t.Fatal("members that have no leader are asked to decide")
			}
			return w.active(2)()
		})
	})
	t.Run("Unobserved", func(t *testing.T) {
		// A memory that is not known at a moment must not take the fence away, nor the way that clients follow.
		w := begin(t, true)
		w.until(func() bool { return w.recordOf(1).State == apimembers.FenceHeld })
		delete(w.request.Observed[names.AccessCredential].Map(), "status")
		w.compose(w.plan())
		if w.fenceOf(1) != "r1" || !shared(w) {
			t.Errorf("the fence is %q, clients follow: %t", w.fenceOf(1), shared(w))
		}
	})
}

// revisionsOf the members of a generation.
func (w *world) revisionsOf(generation int) map[string]string {
	rs := map[string]string{}
	for name, o := range w.request.Observed {
		if g, ok := names.GenerationOf(name); ok && g == generation && strings.HasPrefix(name, names.MemberPrefix) {
			rs[name] = template(w.t, o)
		}
	}
	return rs
}

// TestRestoreRefused holds that nothing is touched, and why is told, when a restore cannot begin.
func TestRestoreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, restore string
		arrange         func(*world)
		want, says      string
	}{
		"ToCome": {"A moment in the future cannot be restored.", `{id: r1, at: "2026-11-20T13:00:00Z"}`, nil, "RestoreImpossible", "is in the future"},
		"TooEarly": {
			"Before the first backup there is nothing.", `{id: r1, at: "2026-11-18T00:00:00Z"}`, nil, "RestoreImpossible", "spec.restore.at: \"2026-11-18T00:00:00Z\": is before",
		},
		"NoBackup": {"Without a backup nothing can be restored.", `{id: r1}`, func(w *world) { w.backup = &observev1alpha1.BackupReport{Asked: true} }, "RestoreImpossible", "no backup"},
		"Unknown":  {"What there is has to be known.", `{id: r1}`, func(w *world) { w.backup = nil }, "RestoreWaiting", "BackupFresh"},
		"NotArchived": {
			"What is not in the archive cannot be restored yet.", `{id: r1, at: "2026-11-20T11:00:00Z"}`,
			func(w *world) {
				w.backup.Archive, w.backup.Since = observev1alpha1.ArchiveFailing, "2026-11-20T10:30:00Z"
			}, "RestoreWaiting", "latestRestorable",
		},
		"NothingToUndo": {"Only what was done can be undone.", `{undo: r0}`, nil, "RestoreImpossible", "no restore with this id"},
		"Frozen":        {"A freeze holds everything.", `{id: r1}, maintenance: {freeze: {until: "2026-11-21T00:00:00Z"}}`, nil, "Frozen", "2026-11-21"},
		"Hibernated":    {"Members that are stopped are not led away from.", `{id: r1}, hibernated: true`, nil, "RestoreWaiting", "stopped"},
		"Unread": {
			"What cannot be read is not overwritten.", `{id: r1}`,
			func(w *world) { w.secret = "{" }, "MemoryUnread", "credentials.capstan.dev/remembered",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := restorable(t)
			if tc.arrange != nil {
				tc.arrange(w)
			}
			w.react()
			w.want(tc.restore)
			var p *compose.Plan
			for range 5 {
				p = w.pass()
			}
			status, reason, message := condition(p, "Restored")
			if status != "False" || reason != tc.want || !strings.Contains(message, tc.says) {
				t.Errorf("%s: got %s %s: %s", tc.reason, status, reason, message)
			}
			for name := range w.request.Observed {
				if g, ok := names.GenerationOf(name); ok && g != 1 {
					t.Errorf("%s: %s is made", tc.reason, name)
				}
			}
			if got := compose.Text(w.request.Observed[names.AccessCredential].Map(), "spec", "forProvider", "remember"); got != "" && got != w.secret {
				t.Errorf("%s: it is written down: %s", tc.reason, got)
			}
		})
	}
}

// TestRestoreTakenBack holds that whoever serves goes on serving, however far it came.
func TestRestoreTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		until  func(*world) bool
		back   string
	}{
		"Filling": {"While the new one comes up.", func(w *world) bool { return len(w.replicas(2)) == 3 }, ""},
		"Blocked": {"When it cannot come up.", func(w *world) bool { return len(w.replicas(2)) == 3 }, ""},
		"Fencing": {
			"When the old one is being stopped already.",
			func(w *world) bool { return w.replicas(1)["b"] == 0 }, "",
		},
		"AnotherMoment": {"Another moment is another restore.", func(w *world) bool { return len(w.replicas(2)) == 3 }, `, restore: {id: r1, at: "2026-11-01T00:00:00Z"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := restorable(t)
			if name == "Blocked" {
				w.broken["orders-db-g2-a"], w.broken["orders-db-g2-b"], w.broken["orders-db-g2-c"] = "RestoreFailed", "RestoreFailed", "RestoreFailed"
			}
			w.want(`{id: r1}`)
			w.until(func() bool { return tc.until(w) })
			if name == "Blocked" {
				for range 4 {
					w.pass()
				}
				if _, reason, message := condition(w.plan(), "Restored"); reason != "RestoreFailed" || !strings.Contains(message, "to cancel, remove spec.restore") {
					t.Errorf("%s it is told why: %s: %s", tc.reason, reason, message)
				}
			}
			w.edit(fmt.Sprintf(backedUp, tc.back))
			w.until(func() bool { return len(w.replicas(2)) == 0 && len(w.replicas(3)) == 0 })
			var p *compose.Plan
			for range 6 {
				p = w.pass()
			}
			if diff := cmp.Diff(map[string]int64{"a": 1, "b": 1, "c": 1}, w.replicas(1)); diff != "" || !p.Ready || w.selected(names.ReadWrite) != "orders-db" {
				t.Errorf("%s ready %t, %s: %s", tc.reason, p.Ready, w.selected(names.ReadWrite), diff)
			}
			if m := w.remembers(); m.Step != nil || m.Last != 2 {
				t.Errorf("%s %s", tc.reason, w.secret)
			}
		})
	}
}

// TestRestoreUndone goes back to the generation before, once, and a Database that is recreated afterwards begins with it.
func TestRestoreUndone(t *testing.T) {
	w := restorable(t)
	w.want(`{id: r1}`)
	w.until(w.active(2))
	for range 4 {
		w.pass()
	}
	w.want(`{undo: r1}`)
	w.until(w.active(1))
	var p *compose.Plan
	for range 6 {
		p = w.pass()
	}
	if _, reason, _ := condition(p, "Restored"); reason != "RestoreUndone" || w.selected(names.ReadWrite) != "orders-db" || !p.Ready {
		t.Errorf("clients are led back: %s, %s", reason, w.selected(names.ReadWrite))
	}
	if diff := cmp.Diff(map[string]int64{"a": 0, "b": 0, "c": 0}, w.replicas(2)); diff != "" {
		t.Errorf("the other is kept in its turn: %s", diff)
	}

	// Neither of them is carried out again, and nothing begins with another generation.
	for _, revisionInputs := range []string{`{id: r1}`, `{undo: r1}`} {
		w.want(revisionInputs)
		for range 6 {
			w.pass()
		}
		w.request.Observed = map[string]compose.Object{}
		delete(w.request.Composite.Map(), "status")
		for range 8 {
			w.pass()
		}
		if diff := cmp.Diff(map[string]int64{"a": 1, "b": 1, "c": 1}, w.replicas(1)); diff != "" || len(w.replicas(2))+len(w.replicas(3)) != 0 {
			t.Errorf("after %s: %s; %s", revisionInputs, diff, w.secret)
		}
	}
}

// TestRestoreSkipped makes a Database with a restore in its manifest.
func TestRestoreSkipped(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(backedUp, `, restore: {id: r1}`))
	var p *compose.Plan
	for range 8 {
		p = w.pass()
	}
	if _, reason, message := condition(p, "Restored"); reason != "RestoreSkipped" || len(w.replicas(1)) != 3 || len(w.replicas(2)) != 0 {
		t.Errorf("what the Database is made with is not carried out: %s: %s", reason, message)
	}

	// Recreated after a restore, it takes up the generation that was active.
	w.backup = restorable(t).backup
	w.react()
	w.want(`{id: r2}`)
	w.until(w.active(2))
	w.request.Observed = map[string]compose.Object{}
	delete(w.request.Composite.Map(), "status")
	for range 8 {
		p = w.pass()
	}
	var made pgmember.Config
	if err := json.Unmarshal([]byte(compose.Text(w.request.Observed[names.Config+"-g2"].Map(), "data", fileMember)), &made); err != nil {
		t.Fatal(err)
	}
	if len(w.replicas(2)) != 3 || len(w.replicas(1)) != 0 || made.From != nil || !p.Ready {
		t.Errorf("recreated, it has generation 2 and restores nothing: %v %v %+v", w.replicas(2), w.replicas(1), made.From)
	}
}

// TestRememberedWishes: however many there were, what the spec names is not forgotten, because it would be carried out once more,
// and what is remembered has room.
func TestRememberedWishes(t *testing.T) {
	s := &facts.Cluster{Data: "17", Facts: &facts.Facts{
		Engine: engineOf(""),
		Spec:   v1alpha1.DatabaseSpec{Version: "18", Restore: &v1alpha1.DatabaseRestore{ID: "r0"}, Upgrade: &v1alpha1.DatabaseUpgrade{Retry: "t0"}},
	}}
	all := []memory.Done{
		{ID: "r0", State: v1alpha1.RestoreDone},
		{ID: "upgrade-17-18-t0", Kind: memory.StepUpgrade, State: v1alpha1.RestoreFailed, Why: "it is told"},
	}
	why := strings.Repeat("ü", 300)
	for i := range 3 * memory.DoneKept {
		all = decision.Remembered(s, all, memory.Done{ID: fmt.Sprintf("upgrade-17-18-u%d", i), Kind: memory.StepUpgrade, State: v1alpha1.RestoreFailed, From: 1, To: 2 + i, When: now, Why: why})
	}
	if len(all) != memory.DoneKept || all[0].ID != "r0" || all[1].Why != "it is told" {
		t.Errorf("%d are remembered, the first of them %+v and %+v", len(all), all[0], all[1])
	}
	if last := all[len(all)-1]; last.Why != why || last.ID != fmt.Sprintf("upgrade-17-18-u%d", 3*memory.DoneKept-1) {
		t.Errorf("the last one is %+v", last)
	}
	text := memory.Memory{Active: 1, Done: all}.Text()

	// As many characters the API takes for what a Credential remembers.
	if n := utf8.RuneCountInString(text); n > 16384/2 {
		t.Errorf("what is remembered has %d characters", n)
	}
}
