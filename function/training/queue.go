// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"
	"strings"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/training/names"
	"github.com/capstan-dev/capstan/function/training/runs"
)

// requiredWorkload is the name that what Kueue says of the Job is required under.
const requiredWorkload = "workload"

// queued reports whether a queue keeps the present run from its pods, and the cluster has the kind in which Kueue says why.
func (f *facts) queued(l runs.Ledger) bool {
	return l.State == runs.Active && f.jobs[l.Run].Suspended && f.Kinds[jobpod.WorkloadGVK] == compose.Available &&
		compose.TextOf(f.Observed[names.Job(l.Run)], "metadata", "uid") != ""
}

// wait as Kueue describes it, or nil.
func (p *pass) wait() *jobpod.Waiting {
	if !p.queued(p.ledger) {
		return nil
	}
	return jobpod.Wait(p.Required[requiredWorkload])
}

// evaluated reports whether it is known why a run waits: Kueue has checked it, or the cluster does not have what says so.
func (p *pass) evaluated() bool {
	if p.Kinds[jobpod.WorkloadGVK] != compose.Available {
		return true
	}
	w := p.wait()
	return w != nil && w.Cause != ""
}

// inQueue is where a run stands that a queue does not let run: the cause in the words of Kueue, and what helps.
func (p *pass) inQueue() string {
	var b strings.Builder
	run, w := p.ledger.Run, p.wait()
	if w != nil && w.Evicted != "" {
		fmt.Fprintf(&b, "%s took run %d back: %s. It continues from the newest checkpoint once it is admitted again", p.queue(), run, w.Evicted)
	} else {
		fmt.Fprintf(&b, "run %d waits for %s to admit it", run, p.queue())
	}
	switch {
	case w == nil || w.Cause == "":
		fmt.Fprintf(&b, ": see the Workload of Job %s. Without one, check that Kueue runs and manages Jobs of this namespace", p.Job(run))
	case w.Misconfigured:
		fmt.Fprintf(&b, ": %s. Name another queue in spec.queue.name, or correct that one", w.Cause)
	default:
		if w.Cause != w.Evicted {
			fmt.Fprintf(&b, ": %s", w.Cause)
		}
		b.WriteString(". If that lasts, raise the quota of its ClusterQueue, lower spec.workers or spec.resources, or name another queue in spec.queue.name")
	}
	return b.String()
}

// queue in words. The spec of a run that exists may have changed since.
func (p *pass) queue() string {
	if q := p.spec.Queue; q != nil {
		return fmt.Sprintf("queue %q", q.Name)
	}
	return "a queue"
}
