// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/signals"
)

// ForSignals is what is known of the hooks that Signals may name.
func ForSignals(s *facts.Cluster) signals.HookFacts {
	return signals.HookFacts{
		Limit: func(hook string) (time.Duration, string) {
			h, declared := ofSignals(s, hook)
			if !declared {
				return 0, fmt.Sprintf("spec.maintenance.hooks.onSignal has no hook %q: declare it, or name another one", hook)
			}
			return Deadline(h), ""
		},
		// SQL waits for a leader. A request may be about the very lack of one.
		Ready: func(hook string) bool {
			h, declared := ofSignals(s, hook)
			return declared && (h.SQL == nil || s.Leads())
		},
		Seen: func(run v1alpha1.SignalHookStatus) signals.HookSeen { return signalSeen(s, run.Key) },
	}
}

func ofSignals(s *facts.Cluster, name string) (v1alpha1.DatabaseHook, bool) {
	i := slices.IndexFunc(s.SignalHooks(), func(h v1alpha1.DatabaseHook) bool { return h.Name == name })
	if i < 0 {
		return v1alpha1.DatabaseHook{}, false
	}
	return s.SignalHooks()[i], true
}

// SignalID is what the Job of a run is called by.
func SignalID(key string) string { return encoding.Hash(map[string]any{"signal": key}) }

// signalSeen is how far the Job of a run is. One that is being deleted does not end any more.
func signalSeen(s *facts.Cluster, key string) signals.HookSeen {
	id := SignalID(key)
	o := s.Observed[names.SignalHookPrefix+id]
	if o == nil {
		return signals.HookSeen{}
	}
	seen, job := signals.HookSeen{}, s.HookJob(id)
	if compose.TextOf(o, "metadata", "deletionTimestamp") == "" {
		seen.Object = "job/" + job
	}
	switch {
	case compose.IsTrue(o.Map(), "Complete"):
		seen.Done, seen.Passed = true, true
	case compose.IsTrue(o.Map(), "Failed"):
		how := "failed"
		if isLate(o) {
			how = "did not end in its time"
		}
		seen.Done, seen.Message = true, fmt.Sprintf("its Job %s: see kubectl logs -n %s job/%s", how, s.Namespace, job)
	}
	return seen
}
