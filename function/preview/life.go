// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

// usualTTL of a Preview that says nothing.
const usualTTL = 48 * time.Hour

// A life is how long a Preview lives, and whether that is over. The deadline follows from what is written, and never from an event: a pass
// that comes late, for instance because Capstan did not run, decides the same.
type life struct {
	// until is when the time is up.
	until time.Time

	// expired reports that the time is up. It stays so for the same deadline, also when a clock goes back.
	expired bool

	// removing reports that something of the Preview still exists, although its time is or was up.
	removing bool
}

// isOver reports whether nothing is composed. A Preview that is extended after its time was up begins only when the rest of it is gone: its
// data must not be taken for what is copied again.
func (l life) isOver() bool { return l.expired || l.removing }

// lifetime returns how long a Preview lives.
func (f *facts) lifetime() life {
	l := life{until: f.deadline()}
	same := f.before.ExpiresAt != nil && f.before.ExpiresAt.Time.Equal(l.until)
	l.expired = !f.Now.Before(l.until) || f.before.ExpiredAt != nil && same
	if l.expired || f.before.Phase == v1alpha1.PreviewExpiring {
		l.removing = len(f.Observed) > 0 || f.hasLeftovers()
	}
	return l
}

// deadline by the spec. While that is not accepted, the one that was accepted last holds. Where the status with it was lost, it is the
// latest that could have been accepted, so that a mistake ends nothing.
func (f *facts) deadline() time.Time {
	switch {
	case len(f.problems) > 0 && f.before.ExpiresAt != nil:
		return f.before.ExpiresAt.UTC()
	case len(f.problems) > 0 && len(f.Observed) > 0:
		return f.created.Add(f.longest())
	case f.spec.ExpiresAt != nil:
		return f.spec.ExpiresAt.UTC().Truncate(time.Second)
	case f.spec.TTL != nil:
		return f.created.Add(f.spec.TTL.Duration)
	default:
		return f.usualDeadline()
	}
}

// usualDeadline of a Preview that says nothing. It follows from the platform's limit, whose later changes neither end a Preview early nor
// make one again that has expired.
func (f *facts) usualDeadline() time.Time {
	until, most := f.created.Add(min(usualTTL, f.longest())), f.created.Add(usualTTL)
	was := f.before.ExpiresAt
	if was != nil && (f.before.ExpiredAt != nil || was.After(until) && !was.After(most)) {
		return was.UTC()
	}
	return until
}

// longest life that the platform allows.
func (f *facts) longest() time.Duration {
	if limit := f.Settings.Preview.MaxTTL; limit != nil {
		return limit.Duration
	}
	return maxTTL
}

// maxTTL of the schema.
const maxTTL = 2160 * time.Hour

// tooLong reports a life beyond the platform's limit.
func (f *facts) tooLong() []check.Problem {
	limit := f.longest()
	remedy := fmt.Sprintf("the platform allows a Preview to live for %s from its creation: lower it", check.Duration(limit))
	switch {
	case f.spec.TTL != nil && f.spec.TTL.Duration > limit:
		return []check.Problem{check.Invalid("spec.ttl", check.Duration(f.spec.TTL.Duration), remedy)}
	case f.spec.ExpiresAt != nil && f.spec.ExpiresAt.After(f.created.Add(limit)):
		return []check.Problem{check.Invalid("spec.expiresAt", f.spec.ExpiresAt.UTC().Format(time.RFC3339), remedy)}
	default:
		return nil
	}
}

// seeksLeftovers reports whether it has to be found out what is left of a Preview whose time is or was up. That depends on what is written
// and on the time only, because Crossplane asks until the same is required twice.
func (p *pass) seeksLeftovers() bool {
	return p.expired && p.before.Phase != v1alpha1.PreviewExpired || !p.expired && p.before.Phase == v1alpha1.PreviewExpiring
}

// hasLeftovers reports whether something of a Preview whose time is or was up still exists, as far as was looked for. Before the first look it
// may.
func (f *facts) hasLeftovers() bool {
	if f.before.Phase == v1alpha1.PreviewExpired {
		return false
	}
	for _, c := range f.requested() {
		o := f.Required[leftoverPrefix+c.resource]
		if !f.Sought[leftoverPrefix+c.resource] || o != nil && compose.PreviewOf(o.Map()) == f.name {
			return true
		}
	}
	return false
}
