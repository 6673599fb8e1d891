// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// atVersion is the spec of a Database that was made with backedUp: another version, and room for more.
func atVersion(version, more string) string {
	return strings.Replace(fmt.Sprintf(backedUp, more), `"17"`, fmt.Sprintf("%q", version), 1)
}

// says of a condition until it has a reason.
func (w *world) says(t, reason string) string {
	w.t.Helper()
	got, message := "", ""
	for range 20 {
		if _, got, message = condition(w.pass(), t); got == reason {
			return message
		}
	}
	w.t.Fatalf("%s is %s: %s, want %s; %s", t, got, message, reason, w.secret)
	return ""
}

// versions that StatefulSets of a generation are of.
func (w *world) versions(generation int) map[string]string {
	at, out := &names.Names{Generation: generation}, map[string]string{}
	for _, letter := range names.Letters {
		if o := w.request.Observed[at.In(names.MemberPrefix+letter)]; o != nil {
			out[letter] = compose.Text(o.Map(), "metadata", "annotations", names.AnnotationVersion)
		}
	}
	return out
}

func TestUpgrade(t *testing.T) {
	w := restorable(t)
	before := w.revisionsOf(1)
	w.edit(atVersion("18", ", upgrade: {keepOldFor: 48h}"))
	w.until(func() bool { return len(w.replicas(2)) > 0 })
	if diff := cmp.Diff(map[string]string{"a": "18"}, w.versions(2)); diff != "" {
		t.Errorf("one member of the later version fills it: %s", diff)
	}
	if diff := cmp.Diff(before, w.revisionsOf(1)); diff != "" {
		t.Errorf("members of the former version are changed: %s", diff)
	}
	var file pgmember.Config
	if err := json.Unmarshal([]byte(compose.Text(w.request.Observed[names.Config+"-g2"].Map(), "data", fileMember)), &file); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&pgmember.Upgrade{ID: "upgrade-17-18", From: "17", Database: "orders-db", Scope: "orders-db-3f2a9c1b", Member: "orders-db-g2-a"}, file.Upgrade); diff != "" {
		t.Errorf("what the member is told: %s", diff)
	}
	if file.Backup.Stanza != "orders-db-3f2a9c1b-g2-18" || file.From != nil {
		t.Errorf("it archives to %q, from %v", file.Backup.Stanza, file.From)
	}
	if text := compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig); !strings.Contains(text, "capstan_upgrade") {
		t.Error("the former generation keeps no slot for the copy")
	}

	// Clients are switched.
	w.until(w.active(2))
	p := w.until(func() bool { return w.selected(names.ReadWrite) == "orders-db.g2" })
	if w.fenceOf(1) != "upgrade-17-18" {
		t.Error("the fence of the former generation is taken away although clients were switched over")
	}
	for range 6 {
		p = w.pass()
	}
	if diff := cmp.Diff(map[string]string{"a": "18", "b": "18", "c": "18"}, w.versions(2)); diff != "" {
		t.Errorf("the others copy it then: %s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"a": 0, "b": 0, "c": 0}, w.replicas(1)); diff != "" {
		t.Errorf("the former generation is stopped: %s", diff)
	}
	led := compose.Text(w.request.Observed[names.MemberPrefix+"a"].Map(), "metadata", "annotations", names.AnnotationStopped)
	if led != facts.StoppedLeading {
		t.Errorf("who led last is to be known for the way back, got %q", led)
	}
	status, reason, message := condition(p, "Upgraded")
	if status != "True" || reason != "Upgraded" || !strings.Contains(message, "pg_partman could not be updated") || !strings.Contains(message, "WITHOUT the commits made since") {
		t.Errorf("%s %s: %s", status, reason, message)
	}
	st := told(t, p)
	if diff := cmp.Diff([]v1alpha1.UpgradePhase{v1alpha1.UpgradeDone}, []v1alpha1.UpgradePhase{st.Upgrade.Phase}); diff != "" {
		t.Error(diff)
	}
	if k := st.Generation.Kept; len(k) != 1 || k[0].Version != "17" || k[0].Until.Sub(st.Generation.Since.Time) != 48*time.Hour {
		t.Errorf("kept: %+v", k)
	}
	if p := w.pass(); p.TTL < time.Minute {
		t.Errorf("it is looked at every %s, although nothing happens", p.TTL)
	}

	// Nothing more happens by itself, and then it is removed.
	done := w.secret
	w.request.Now = w.request.Now.Add(49 * time.Hour)
	w.until(func() bool { return len(w.replicas(1)) == 0 })
	if w.remembers().Active != 2 || done == "" {
		t.Errorf("it remembers %s", w.secret)
	}
}

func TestUpgradeUndo(t *testing.T) {
	w := restorable(t)
	w.edit(atVersion("18", ""))
	w.says("Upgraded", "Upgraded")
	w.until(func() bool { return len(w.replicas(2)) == 3 && w.replicas(1)["a"] == 0 })

	// The version alone is no way back.
	w.edit(atVersion("17", ""))
	if _, reason, message := condition(w.pass(), "Accepted"); reason != "VersionChangeUnsupported" || !strings.Contains(message, "spec.upgrade.undo") {
		t.Errorf("%s: %s", reason, message)
	}
	w.edit(atVersion("17", ", upgrade: {undo: upgrade-17-18}"))
	if message := w.says("Upgraded", "UpgradeUndoing"); !strings.Contains(message, "COMMITS MADE SINCE THE UPGRADE") {
		t.Error(message)
	}
	w.until(w.active(1))
	p := w.until(func() bool { return w.selected(names.ReadWrite) == "orders-db" })
	if fence := w.fenceOf(1); fence != "" || w.leads == "" {
		t.Errorf("generation 1 leads by %q with the fence %q", w.leads, fence)
	}
	if diff := cmp.Diff(map[string]int64{"a": 0, "b": 0, "c": 0}, w.replicas(2)); diff != "" {
		t.Errorf("the later generation is stopped: %s", diff)
	}
	if _, reason, message := condition(p, "Upgraded"); reason != "UpgradeUndone" || !strings.Contains(message, "only in generation 2") {
		t.Errorf("%s: %s", reason, message)
	}

	// Raised again it is not tried by itself, and with another word it is.
	w.edit(atVersion("18", ""))
	w.pass()
	if _, reason, _ := condition(w.pass(), "Upgraded"); reason != "UpgradeUndone" || w.remembers().Step != nil {
		t.Errorf("%s: it begins once more", reason)
	}
	w.edit(atVersion("18", ", upgrade: {retry: b}"))
	w.until(w.active(3))
}

func TestUpgradeTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		until  func(w *world) bool
	}{
		"Filling": {"Before the fence nothing was changed.", func(w *world) bool { return len(w.replicas(2)) == 1 }},
		"Fencing": {"As long as clients were not switched over, nothing was either.", func(w *world) bool { return w.fenceOf(1) != "" }},
	} {
		t.Run(name, func(t *testing.T) {
			w := restorable(t)
			w.upgrades.stuck = true
			w.edit(atVersion("18", ""))
			w.until(func() bool { return tc.until(w) })
			w.edit(atVersion("17", ""))
			w.until(func() bool { return len(w.replicas(2)) == 0 && w.fenceOf(1) == "" && w.remembers().Step == nil })
			p := w.until(func() bool { return w.leads != "" })
			if _, reason, message := condition(p, "Upgraded"); reason != "" {
				t.Errorf("%s: nobody asks for an upgrade: %s: %s", tc.reason, reason, message)
			}
			w.upgrades.stuck = false
			w.edit(atVersion("18", ""))
			w.until(w.active(3))
		})
	}
}

func TestUpgradeHindered(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		fault   func(w *world)
		more    string
		want    string
		message string
		// ends reports that the step is over, and the former version serves.
		ends bool
	}{
		"Incompatible": {
			"PostgreSQL's own words are told, and the remedy.",
			func(w *world) { w.upgrades.findings = "extension adminpack is not available" },
			"", "Incompatible", `extension adminpack is not available; drop or change the objects that this names: Capstan tries again every minute; to cancel, set spec.version back to "17"`, false,
		},
		"CannotFence": {
			"A leader that cannot stop goes on.", func(w *world) { w.upgrades.stubborn = true },
			"", "CannotFence", "orders-db-b has not heard yet that nobody is to be promoted, and continues to serve", false,
		},
		"Failed": {
			"What failed is told, and nothing was changed.", func(w *world) { w.upgrades.failure = "pg_upgrade: could not connect" },
			"", "UpgradeFailed", "continues unchanged: pg_upgrade: could not connect; to try again", true,
		},
		"Late": {
			"A fence does not last for ever.", func(w *world) { w.upgrades.stuck = true },
			"", "UpgradeFailed", "no member of generation 2 became the leader in time", true,
		},
		"Broken": {
			"A member that does not start says why.", func(w *world) { w.broken["orders-db-g2-a"] = "ImagePullFailed" },
			"", "ImagePullFailed", "member orders-db-g2-a: it says why: correct it", false,
		},
		"Approval": {
			"Clients are switched over once somebody approved.", func(*world) {},
			", maintenance: {approval: Manual}", "AwaitingApproval", "spec.maintenance.approve", false,
		},
		"Window": {
			"It waits for a window.", func(*world) {},
			`, maintenance: {windows: [{start: "02:00", duration: 1h, timeZone: UTC}]}`, "AwaitingWindow", "window from 2026-11-21T02:00:00Z", false,
		},
		"Frozen": {
			"In a freeze not even a copy is begun.", func(*world) {},
			`, maintenance: {freeze: {until: "2026-11-21T00:00:00Z"}}`, "Frozen", "spec.maintenance.freeze blocks every change until", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := restorable(t)
			tc.fault(w)
			w.edit(atVersion("18", tc.more))
			if name == "Late" {
				w.until(func() bool { return w.fenceOf(1) != "" })
				w.request.Now = w.request.Now.Add(10 * time.Minute)
			}
			if message := w.says("Upgraded", tc.want); !strings.Contains(message, tc.message) {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.message, message)
			}
			for range 3 {
				w.pass()
			}
			if w.selected(names.ReadWrite) != "orders-db" || w.leads == "" {
				t.Errorf("%s: the former version does not serve", tc.reason)
			}
			if step := w.remembers().Step; (step == nil) != tc.ends {
				t.Errorf("%s: the step is %+v", tc.reason, step)
			}
			if tc.ends && (w.fenceOf(1) != "" || len(w.replicas(2)) > 0) {
				t.Errorf("%s: something is left: %v", tc.reason, w.replicas(2))
			}
		})
	}
}

// TestUpgradeImpossible: what the later version does not take is told before anything is begun, and all else is carried out for
// the version that the data has.
func TestUpgradeImpossible(t *testing.T) {
	w := running(t, `{engine: postgres, version: "15", replicas: 3, storage: 50Gi, extensions: [adminpack]}`)
	w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 80Gi, extensions: [adminpack]}`)
	if message := w.says("Upgraded", "UpgradeImpossible"); !strings.Contains(message, `"adminpack": is not in the image for version 17`) {
		t.Error(message)
	}
	p := w.pass()
	if _, reason, message := condition(p, "Accepted"); reason != "Valid" {
		t.Errorf("%s: %s", reason, message)
	}
	if size := compose.Text(w.request.Observed[names.VolumeClaim].Map(), "spec", "forProvider", "size"); size != "80Gi" {
		t.Errorf("the rest of the spec is not carried out: volumes are to be of %q", size)
	}
	w.request.Settings.Database.Images = []inputv1alpha1.DatabaseImage{
		{Image: "registry.local/pg15:1", Versions: []inputv1alpha1.DatabaseVersion{{Version: "15", Extensions: []string{"adminpack"}}}},
		{Image: "registry.local/pg17:1", Versions: []inputv1alpha1.DatabaseVersion{{Version: "17", Extensions: []string{"adminpack"}}}},
	}
	if _, reason, message := condition(w.plan(), "Upgraded"); reason != "UpgradeImpossible" || !strings.Contains(message, "has no programs of version 15") {
		t.Errorf("%s: %s", reason, message)
	}
}

// TestUpgradeApproved: the change that is told is the one that is approved, with the time that writes wait.
func TestUpgradeApproved(t *testing.T) {
	w := restorable(t)
	w.edit(atVersion("18", ", maintenance: {approval: Manual}"))
	w.says("Upgraded", "AwaitingApproval")
	c := told(t, w.pass()).Change
	if c == nil || c.State != v1alpha1.ChangeWaiting || !strings.Contains(c.Summary, "upgrade the data for spec.version") || !strings.Contains(c.WritePause, "6 s") {
		t.Fatalf("%+v", c)
	}
	if w.fenceOf(1) != "" {
		t.Error("nobody approved")
	}
	w.edit(atVersion("18", ", maintenance: {approval: Manual, approve: "+c.Hash+"}"))
	w.until(w.active(2))
}

// TestUpgradeHooks: they are run around it as they are around a restart.
func TestUpgradeHooks(t *testing.T) {
	w := restorable(t)
	w.edit(atVersion("18", `, consumers: [{name: app}], maintenance: {hooks: {before: [{name: drain, sql: {statement: "select 1"}}], after: [{name: fill, sql: {statement: "select 1"}}]}}`))
	w.says("Upgraded", "HookRunning")
	if w.fenceOf(1) != "" {
		t.Error("the fence comes before the hook is done")
	}
	job := func() compose.Object {
		for name, o := range w.request.Observed {
			if strings.HasPrefix(name, names.HookPrefix) && !compose.IsTrue(o.Map(), "Complete") {
				return o
			}
		}
		return nil
	}
	complete := func() {
		w.until(func() bool { return job() != nil })
		job().Map()["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	}
	complete()
	w.until(w.active(2))
	complete()
	w.until(func() bool { return w.request.Observed[names.Hooks] == nil })
}

// TestOneStepAtATime: what is asked for beside a step that is under way waits, and is told as nothing else.
func TestOneStepAtATime(t *testing.T) {
	for name, tc := range map[string]struct {
		reason             string
		first, both        string
		condition, waiting string
	}{
		"RestoreWaits": {
			"A restore begins after the upgrade.", atVersion("18", ""), atVersion("18", ", restore: {id: r1}"), "Restored", "RestoreWaiting",
		},
		"UpgradeWaits": {
			"An upgrade begins after the restore.", atVersion("17", ", restore: {id: r1}"), atVersion("18", ", restore: {id: r1}"), "Upgraded", "UpgradeWaiting",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := restorable(t)
			w.broken["orders-db-g2-a"] = "Unschedulable"
			w.edit(tc.first)
			w.until(func() bool { return len(w.replicas(2)) > 0 })
			step := w.remembers().Step
			w.edit(tc.both)
			for range 3 {
				w.pass()
			}
			status, reason, message := condition(w.plan(), tc.condition)
			if status != "False" || reason != tc.waiting || !strings.Contains(message, step.ID+" is under way") {
				t.Errorf("%s\n%s is %s, %s: %s", tc.reason, tc.condition, status, reason, message)
			}
			if diff := cmp.Diff(step, w.remembers().Step); diff != "" {
				t.Errorf("%s\nthe step that is under way: %s", tc.reason, diff)
			}
		})
	}
}

// TestUpgradeWait: no commit is acknowledged before a standby has it, from the first moment on, and that ends for good with the first standby.
func TestUpgradeWait(t *testing.T) {
	w := restorable(t)
	w.edit(atVersion("18", ", upgrade: {wait: Standby}"))
	strict := func() bool {
		o := w.request.Observed[names.DCS+"-g2"]
		return o != nil && strings.Contains(compose.Text(o.Map(), "metadata", "annotations", names.AnnotationConfig), `"synchronous_mode_strict":true`)
	}
	w.until(func() bool { return w.request.Observed[names.DCS+"-g2"] != nil })
	if !strict() {
		t.Error("the later generation would begin with commits on one member")
	}
	w.until(w.active(2))
	p := w.pass()
	if status, reason, message := condition(p, "Upgraded"); !strict() || status != "False" || reason != "UpgradeSettling" || !strings.Contains(message, "set spec.upgrade.wait to None") {
		t.Errorf("strict %t, %s %s: %s", strict(), status, reason, message)
	}
	if st := told(t, p); st.Upgrade.Phase != v1alpha1.UpgradeSettling {
		t.Errorf("the phase is %s", st.Upgrade.Phase)
	}
	w.says("Upgraded", "Upgraded")
	w.until(func() bool { return !strict() })

	// All standbys are lost later: with this durability, writes go on.
	w.broken["orders-db-g2-b"], w.broken["orders-db-g2-c"] = "Unschedulable", "Unschedulable"
	for range 3 {
		w.pass()
	}
	if strict() {
		t.Error("commits wait for a standby again, which the durability does not ask for")
	}
}

// TestUpgradeWaitImpossible is refused before anything moves.
func TestUpgradeWaitImpossible(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"Alone":        {"Nothing could be waited for.", strings.Replace(atVersion("17", ", upgrade: {wait: Standby}"), "replicas: 3", "replicas: 1", 1), "there is no standby"},
		"Asynchronous": {"Nothing would wait.", atVersion("17", ", availability: {durability: Asynchronous}, upgrade: {wait: Standby}"), "Asynchronous"},
	} {
		t.Run(name, func(t *testing.T) {
			w := restorable(t)
			w.edit(tc.spec)
			if _, reason, message := condition(w.pass(), "Accepted"); reason != "InvalidSpec" || !strings.Contains(message, "spec.upgrade.wait") || !strings.Contains(message, tc.want) {
				t.Errorf("%s\n%s: %s", tc.reason, reason, message)
			}
		})
	}
}

// TestUpgradeStrict: nobody could write if commits waited for a member that there is not yet.
func TestUpgradeStrict(t *testing.T) {
	w := restorable(t)
	w.edit(atVersion("17", ", availability: {durability: Strict}"))
	w.pass()
	w.edit(atVersion("18", ", availability: {durability: Strict}"))
	strict := func(resource string) bool {
		return strings.Contains(compose.Text(w.request.Observed[resource].Map(), "metadata", "annotations", names.AnnotationConfig), `"synchronous_mode_strict":true`)
	}
	w.until(func() bool { return w.request.Observed[names.DCS+"-g2"] != nil })
	if strict(names.DCS+"-g2") || !strict(names.DCS) {
		t.Error("strict is on without a second member, or off beside one")
	}
	w.until(w.active(2))
	w.until(func() bool { return strict(names.DCS + "-g2") })

	// It stays on when members are lost.
	w.broken["orders-db-g2-b"], w.broken["orders-db-g2-c"] = "CrashLooping", "CrashLooping"
	for range 3 {
		w.pass()
	}
	if !strict(names.DCS + "-g2") {
		t.Error("a commit is acknowledged by one member")
	}
}

// TestUpgradeBackup: the new generation has a backup of its own at once.
func TestUpgradeBackup(t *testing.T) {
	w := restorable(t)
	w.edit(atVersion("18", ""))
	w.until(w.active(2))
	none := *w.backup
	none.Label, none.Ended = "", ""
	w.backups[2] = &none
	w.until(func() bool {
		return w.request.Observed[names.BackupNowPrefix+backup.NowName(backup.FirstBackup)] != nil
	})
}

// TestUpgradeAwaitsArchive: the tail of the former generation would be on the volume of a leader that never archives again.
func TestUpgradeAwaitsArchive(t *testing.T) {
	w := restorable(t)
	w.backup.Archive, w.backup.Message = observev1alpha1.ArchiveFailing, "no connection to the bucket"
	w.edit(atVersion("18", ""))
	message := w.says("Upgraded", string(v1alpha1.ReasonAwaitingArchive))
	for range 4 {
		w.pass()
	}
	if step := w.remembers().Step; step == nil || step.Phase != v1alpha1.RestoreFilling {
		t.Errorf("the step is %+v", step)
	}
	for _, part := range []string{"no connection to the bucket", "ArchiveHealthy", "spec.backup.enabled to false"} {
		if !strings.Contains(message, part) {
			t.Errorf("want %q in %q", part, message)
		}
	}
	w.backup.Archive = observev1alpha1.ArchiveOK
	w.until(w.active(2))
}

// TestUpgradeDecided: what members record about the fence is what becomes of the upgrade.
func TestUpgradeDecided(t *testing.T) {
	fenced := func(w *world) {
		w.edit(atVersion("18", ""))
		w.until(func() bool { return w.recordOf(1).State == apimembers.FenceHeld })
	}
	for name, tc := range map[string]struct {
		reason string
		stuck  bool
		then   func(w *world)
		want   string
		says   string
		active int
	}{
		"Committed": {
			"The later version takes over.", false, func(*world) {}, "Upgraded", "clients were switched to generation 2", 2,
		},
		"Withdrawn": {
			"Members ended the fence while Capstan did not run: the upgrade is over, and its cause is known.", true, func(w *world) {
				w.request.Now = w.request.Now.Add(4 * time.Minute)
				w.react()
			}, "UpgradeFailed", "continues unchanged: orders-db.g2 did not take over; to try again, set spec.upgrade", 1,
		},
		"CancelledLate": {
			"The later version serves, so that the spec is too late.", true, func(w *world) {
				r := w.recordOf(1)
				r.State, r.Until = apimembers.FenceCommitted, nil
				w.record(1, r)
				w.edit(atVersion("17", ""))
				for range 3 {
					w.pass()
				}
				if step := w.remembers().Step; step == nil || w.fenceOf(1) == "" {
					t.Errorf("the fence is %q, the step %+v", w.fenceOf(1), step)
				}
				w.edit(atVersion("18", ""))
				w.upgrades.stuck = false
			}, "Upgraded", "clients were switched to generation 2", 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := restorable(t)
			w.upgrades.decides, w.upgrades.stuck = true, tc.stuck
			if tc.stuck {
				fenced(w)
			} else {
				w.edit(atVersion("18", ""))
			}
			tc.then(w)
			if message := w.says("Upgraded", tc.want); !strings.Contains(message, tc.says) {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.says, message)
			}
			w.until(func() bool { return w.serves(tc.active) })
		})
	}
}

// TestUpgradeAsksMembers: the fence of members that decide is not removed before they ended it, whatever the spec says and however late
// it is. What was observed may be old, and the later version may serve since.
func TestUpgradeAsksMembers(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"Cancelled": func(w *world) { w.edit(atVersion("17", "")) },
		"Late":      func(w *world) { w.request.Now = w.request.Now.Add(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			w := restorable(t)
			w.upgrades.decides, w.upgrades.stuck = true, true
			w.edit(atVersion("18", ""))
			w.until(func() bool { return w.recordOf(1).State == apimembers.FenceHeld })
			held := w.recordOf(1)
			end(w)
			config := ""
			for range 4 { // members do not answer
				w.compose(w.plan())
				config = compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig)
				w.record(1, held)
			}
			if !strings.Contains(config, `"pause":true`) || !strings.Contains(config, `"capstan_fence_withdraw":true`) || w.remembers().Step == nil {
				t.Errorf("the step is %+v with the configuration %s", w.remembers().Step, config)
			}
			if _, _, message := condition(w.plan(), "Upgraded"); !strings.Contains(message, "being stopped, and generation 1 continues when one of its members has recorded that") {
				t.Error(message)
			}
			w.until(func() bool { return w.remembers().Step == nil })
			w.until(func() bool { return w.serves(1) })
		})
	}
}

// TestUpgradeService: during an upgrade the Service of the leader selects members of both generations, so that clients follow without
// Crossplane.
func TestUpgradeService(t *testing.T) {
	w := restorable(t)
	w.upgrades.stuck = true
	w.edit(atVersion("18", ""))
	w.until(func() bool { return len(w.replicas(2)) > 0 })
	want := map[string]any{names.LabelName: "postgres", names.LabelInstance: "orders-db", observev1alpha1.LabelRole: "leader"}
	if diff := cmp.Diff(want, compose.Map(w.request.Observed[names.ReadWrite].Map(), "spec", "selector")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	for name, o := range w.request.Observed {
		if !strings.HasPrefix(name, names.MemberPrefix) {
			continue
		}
		labels := compose.Map(o.Map(), "spec", "template", "metadata", "labels")
		if labels[names.LabelName] != want[names.LabelName] || labels[names.LabelInstance] != want[names.LabelInstance] {
			t.Errorf("%s has the labels %v", name, labels)
		}
	}
}
