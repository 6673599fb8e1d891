// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

const (
	// mostNotices wait for their delivery. The oldest are dropped for later ones.
	mostNotices = 10

	// noticeGrace is how long after its timeout a notice is kept, while those before it are tried.
	noticeGrace = 30 * time.Minute
)

// notifying ledger after a transition: it is reported to those hooks that the spec names. A spec that cannot be carried out says nothing of that,
// and the next pass finds out.
func (l Ledger) notifying(f Facts, before Ledger) Ledger {
	event := noticeOf(l, before)
	if event == "" || f.Lifecycle != nil && len(f.hooksAt(v1alpha1.HookTransition)) == 0 {
		return l
	}
	n := Notice{
		Epoch: l.Epoch, Event: event, Revision: l.Candidate, Weight: l.Weight, Reason: l.Reason, Message: clipped(l.Last.Message), At: l.Entered,
	}
	l.Notices = append(slices.Clone(l.Notices), n)
	if more := len(l.Notices) - mostNotices; more > 0 {
		l.Notices = l.Notices[more:]
		l.Unheard = fmt.Sprintf("%d notifications wait for delivery, and older ones were dropped", mostNotices)
	}
	return l
}

// noticed ledger: without the notices that every hook has a result for. Nothing waits for one that no hook takes.
func (l Ledger) noticed(f Facts) Ledger {
	hooks := f.hooksAt(v1alpha1.HookTransition)
	if len(hooks) == 0 {
		l.Notices, l.Unheard = nil, ""
		return l
	}
	var rest []Notice
	for _, n := range l.Notices {
		failed, waits := "", false
		for _, h := range hooks {
			s := f.Hooks[NoticeKey(h.Name, n)]
			late, _ := f.due(n.At, h.Timeout.Duration+noticeGrace)
			switch {
			case s.Done && !s.Passed:
				failed = fmt.Sprintf("hook %q: %s", h.Name, s.Message)
			case !s.Done && late:
				failed = fmt.Sprintf("hook %q: the provider reported no result", h.Name)
			case !s.Done:
				waits = true
			}
		}
		switch {
		case waits:
			rest = append(rest, n)
		case failed != "":
			l.Unheard = clipped(failed)
		default:
			l.Unheard = ""
		}
	}
	l.Notices = rest
	return l
}
