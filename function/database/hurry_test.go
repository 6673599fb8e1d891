// SPDX-License-Identifier: Apache-2.0

package database

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/report"
)

// TestHurry: while clients are switched to another generation nobody can write, and it is looked at all the time, whatever
// Crossplane hears. It is not for ever.
func TestHurry(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec string }{
		"Upgrade": {"The data is upgraded.", atVersion("18", "")},
		"Restore": {"Members of before are stopped.", atVersion("17", `, restore: {id: r1, at: "2026-11-20T11:00:00Z"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			w := restorable(t)
			w.edit(tc.spec)
			seen := 0
			for range 30 {
				step := w.remembers().Step
				if step == nil || step.Phase != v1alpha1.RestoreFencing {
					w.pass()
					continue
				}
				seen++
				if ttl := w.plan().TTL; ttl > 3*time.Second {
					t.Errorf("%s: the next look comes in %s", tc.reason, ttl)
				}
				later := &facts.Cluster{Facts: &facts.Facts{Request: compose.Request{Now: step.Since.Add(report.HurryFor)}, Recollection: memory.Recollection{Memory: w.remembers()}}}
				if report.Hurried(later) {
					t.Errorf("%s: it is still looked at all the time after %s", tc.reason, report.HurryFor)
				}
				w.pass()
			}
			if seen == 0 || w.remembers().Active != 2 {
				t.Errorf("%s: clients were not switched over: %s", tc.reason, w.secret)
			}
		})
	}
}
