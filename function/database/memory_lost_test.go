// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/function/database/names"
)

// TestMemoryLost: the Credential and the annotation of its Secret are lost together. The generation that serves continues to, and
// no object of any generation is removed.
func TestMemoryLost(t *testing.T) {
	for name, lose := range map[string]func(*world){
		"Memory":          func(*world) {},
		"MemoryAndStatus": func(w *world) { delete(w.request.Composite.Map(), "status") },
	} {
		t.Run(name, func(t *testing.T) {
			w := restorable(t)
			w.want(`{id: r1, at: "2026-11-20T10:00:00Z", keepOldFor: 1h}`)
			w.until(w.active(2))
			for range 4 {
				w.pass()
			}
			before, serves := w.replicas(2), w.selected(names.ReadWrite)
			w.secret = ""
			delete(w.request.Observed, names.AccessCredential)
			lose(w)
			for range 6 {
				w.pass()
				if diff := cmp.Diff(before, w.replicas(2)); diff != "" {
					t.Fatalf("members of the generation that serves: -before, +now:\n%s", diff)
				}
				if got := w.selected(names.ReadWrite); got != serves {
					t.Fatalf("clients are led to %s, and were to %s", got, serves)
				}
				if got := w.replicas(1); got["a"] > 0 {
					t.Fatal("a generation that was kept is woken up")
				}
			}
			if _, reason, message := condition(w.plan(), "Restored"); reason == "Restored" && strings.Contains(message, "r1") {
				t.Logf("Restored: %s: %s", reason, message)
			}
		})
	}
}
