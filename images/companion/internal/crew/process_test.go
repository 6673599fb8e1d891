// SPDX-License-Identifier: Apache-2.0

package crew_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	contract "github.com/capstan-dev/capstan/apis/crew"
)

// trainer is one of the small programs that this binary plays as a rank.
func trainer(string) int { return 0 }

// complete is the pattern of the demo's trainer.
const complete = "attempt-*-step-*/manifest.json"

// exact reports whether the demo's trainer counted each step once.
func (r *rig) exact() {
	r.t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.dir, "checkpoints", "result.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	var result struct{ Exact bool }
	if err := json.Unmarshal(raw, &result); err != nil || !result.Exact {
		r.t.Errorf("the result is %s, want an exact one", raw)
	}
}

func TestFaultsOfRanks(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		plan   contract.Plan
		faults []string
		class  contract.Class
		said   string
	}{
		"Exit": {
			reason: "A rank that ends with an error makes all ranks begin again from the newest checkpoint.",
			faults: []string{"--fault=exit:1:25"}, class: contract.ClassUser, said: "rank 1 ended with exit code 3",
		},
		"Killed": {
			reason: "A rank that was killed while the kernel had memory was killed from elsewhere.",
			faults: []string{"--fault=kill:2:25"}, class: contract.ClassInfrastructure, said: "rank 2 was ended by the signal",
		},
		"NaN": {
			reason: "A loss that is not a number is found in the output.",
			faults: []string{"--fault=nan:0:25", "--report=Output"}, class: contract.ClassNonFinite, said: "rank 0 has the loss nan at step 25",
		},
		"Hang": {
			reason: "A rank that hangs makes all others hang. Its stack is in the log.",
			plan:   contract.Plan{Watch: contract.Watch{Phases: contract.Phases{Step: 1}}},
			faults: []string{"--fault=hang:3:25"}, class: contract.ClassStalled, said: "no step for",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.plan.Workers, tc.plan.Processes = 2, 2
			tc.plan.Checkpoints = &contract.Checkpoints{Complete: complete}
			r := newRig(t, tc.plan, demo(t, append([]string{"--steps=40", "--step=10ms", "--every=10"}, tc.faults...)...)...)
			r.begin(r.all()...)
			for _, index := range r.all() {
				if code := r.code(index, 60*time.Second); code != contract.ExitDone {
					t.Errorf("%s\npod %d ended with %d", tc.reason, index, code)
				}
			}
			r.exact()
			s := r.last()
			if s.Phase != contract.PhaseSucceeded || s.Restarts != 1 || s.LastFault == nil || s.LastFault.Class != tc.class || !strings.Contains(s.LastFault.Message, tc.said) {
				t.Errorf("%s\nlast words: %+v, last fault %+v", tc.reason, s, s.LastFault)
			}
			if diff := cmp.Diff(filepath.Join(r.dir, "checkpoints", "attempt-1-step-00000040"), s.Checkpoint.URI); diff != "" {
				t.Errorf("newest checkpoint: -want, +got:\n%s", diff)
			}
			stop := r.at("stopped", 0, r.all()...).Sub(r.first("stop", 0))
			start := r.at("attempt begins", 1, r.all()...).Sub(r.at("stopped", 0, r.all()...))
			t.Logf("all ranks stopped %s after the fault was known, all started %s later", stop, start)
		})
	}
}
