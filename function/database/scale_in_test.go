// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// TestScaleInIsSynchronous: with a single member as the target, commits wait for another one as long as one exists that could be
// promoted.
func TestScaleInIsSynchronous(t *testing.T) {
	for name, tc := range map[string]struct{ durability, during, after string }{
		"Synchronous": {"Synchronous", `"synchronous_mode":"quorum","synchronous_mode_strict":false`, `"synchronous_mode":false`},
		"Strict":      {"Strict", `"synchronous_mode":"quorum","synchronous_mode_strict":false`, `"synchronous_mode":false`},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, availability: {durability: `+tc.durability+`}}`)
			w.edit(`{engine: postgres, version: "17", replicas: 1, storage: 50Gi, availability: {durability: ` + tc.durability + `}}`)
			passes := 0
			for ; passes < 12; passes++ {
				sets := 0
				for _, l := range []string{"a", "b", "c"} {
					if w.request.Observed[names.MemberPrefix+l] != nil {
						sets++
					}
				}
				p := w.pass()
				config := compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig)
				want := tc.during
				if sets == 1 {
					want = tc.after
				}
				if !strings.Contains(config, want) {
					t.Fatalf("pass %d: %d members exist, and the configuration lacks %s: %s", passes, sets, want, config)
				}
				if sets == 1 && p.Ready {
					break
				}
			}
			if passes == 12 {
				t.Fatal("members are never removed")
			}
		})
	}
}
