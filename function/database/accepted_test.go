// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// refusedSpec asks for a parameter that nobody may set.
const refusedSpec = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, backup: {enabled: true}, config: {archive_mode: "off"}}`

// TestRefusedWhileFencing: whenever a spec is refused while writes stand still, and whatever the step is and what becomes of it,
// it ends, and what serves then is whole.
func TestRefusedWhileFencing(t *testing.T) {
	fencing := func(w *world) bool {
		step := w.remembers().Step
		return step != nil && step.Phase == v1alpha1.RestoreFencing
	}
	upgraded := func(w *world) {
		w.edit(atVersion("18", ""))
		w.until(w.active(2))
		w.until(func() bool { return len(w.replicas(2)) == 3 && w.replicas(1)["a"] == 0 })
	}
	for name, tc := range map[string]struct {
		reason string
		begin  func(w *world)
		spec   string
		want   int
	}{
		"Upgrade": {"Clients are switched over.", func(*world) {}, atVersion("18", ""), 2},
		"UpgradeFails": {
			"The former version goes on when the upgrade fails.", func(w *world) { w.upgrades.failure = "pg_upgrade ended" }, atVersion("18", ""), 1,
		},
		"UpgradeLate": {
			"The former version goes on when the time is over.", func(w *world) { w.upgrades.stuck = true }, atVersion("18", ""), 1,
		},
		"UpgradeTakenBack": {
			"What ends a step stands in as well.", func(w *world) {
				w.upgrades.stuck = true
				w.edit(atVersion("18", ""))
				w.until(func() bool { return fencing(w) })
				w.edit(atVersion("17", ""))
				w.pass()
			}, "", 1,
		},
		"UndoUpgrade": {"Clients are led back.", upgraded, atVersion("17", ", upgrade: {undo: upgrade-17-18}"), 1},
		"Restore":     {"Clients are switched over.", func(*world) {}, fmt.Sprintf(backedUp, ", restore: {id: r1}"), 2},
		"UndoRestore": {
			"Clients are led back.", func(w *world) {
				w.edit(fmt.Sprintf(backedUp, ", restore: {id: r1}"))
				w.until(w.active(2))
				w.until(func() bool { return w.selected(names.ReadWrite) == "orders-db.g2" })
			}, fmt.Sprintf(backedUp, ", restore: {undo: r1}"), 1,
		},
	} {
		for _, after := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s/%d", name, after), func(t *testing.T) {
				w := restorable(t)
				tc.begin(w)
				if tc.spec != "" {
					w.edit(tc.spec)
					w.until(func() bool { return fencing(w) })
				}
				for range after {
					w.pass()
				}
				w.edit(refusedSpec)
				w.until(func() bool {
					w.request.Now = w.request.Now.Add(time.Minute)
					return w.serves(tc.want)
				})
				p := w.plan()
				if status, _, message := condition(p, "Accepted"); status != "False" || !strings.Contains(message, "archive_mode") {
					t.Errorf("Accepted is %s: %s", status, message)
				}
				if status, reason, _ := condition(p, "Updated"); status != "False" || reason != "NotAccepted" {
					t.Errorf("Updated is %s, %s", status, reason)
				}

				// Corrected, it is as any other, and nothing of the former spec is left.
				w.edit(atVersion(w.versions(tc.want)["a"], ""))
				p = w.until(func() bool { return w.serves(tc.want) && w.kept() == "" })
				if status, _, message := condition(w.plan(), "Accepted"); status != "True" {
					t.Errorf("%s\nAccepted is %s: %s", tc.reason, status, message)
				}
				if !p.Ready {
					t.Errorf("%s\nit is not ready", tc.reason)
				}
			})
		}
	}
}

// serves reports whether clients are switched to a generation that takes writes.
func (w *world) serves(generation int) bool {
	leader := w.leads
	if generation > 1 {
		leader = w.led[generation]
	}
	return w.active(generation)() && w.fenceOf(generation) == "" && leader != "" && w.replicas(generation)["a"] == 1 &&
		w.selected(names.ReadWrite) == names.BaseOf("orders-db", generation)
}

// kept spec of the first Credential.
func (w *world) kept() string {
	return compose.Text(w.request.Observed[names.AccessCredential].Map(), "metadata", "annotations", names.AnnotationAccepted)
}

// TestRefusedWhileFilling: as long as writes go on, a spec that is refused holds everything.
func TestRefusedWhileFilling(t *testing.T) {
	w := restorable(t)
	w.edit(atVersion("18", ""))
	w.until(func() bool { return len(w.replicas(2)) == 1 })
	w.edit(refusedSpec)
	for range 8 {
		w.pass()
	}
	if step := w.remembers().Step; step == nil || step.Phase != v1alpha1.RestoreFilling || w.fenceOf(1) != "" {
		t.Errorf("the step goes on although the spec is refused: %+v", step)
	}
}

// TestAcceptedSpecKept: only while a step is under way, and always as it was accepted last.
func TestAcceptedSpecKept(t *testing.T) {
	w := restorable(t)
	if diff := cmp.Diff("", w.kept()); diff != "" {
		t.Errorf("nothing is under way: %s", diff)
	}
	w.edit(atVersion("18", ""))
	w.until(func() bool { return len(w.replicas(2)) == 1 })
	w.edit(atVersion("18", ", config: {work_mem: 8MB}"))
	w.pass()
	const want = `{"backup":{"enabled":true},"config":{"work_mem":"8MB"},"engine":"postgres","replicas":3,"storage":"50Gi","version":"18"}`
	if diff := cmp.Diff(want, w.kept()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
