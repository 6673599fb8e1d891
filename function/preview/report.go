// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

// phase in one word.
func (p *pass) phase() v1alpha1.PreviewPhase {
	switch {
	case p.removing:
		return v1alpha1.PreviewExpiring
	case p.expired:
		return v1alpha1.PreviewExpired
	case len(p.problems) > 0:
		if len(p.Observed) > 0 {
			return cmp.Or(p.before.Phase, v1alpha1.PreviewStarting)
		}
		return v1alpha1.PreviewPending
	case p.ready():
		if p.isAsleep() {
			return v1alpha1.PreviewAsleep
		}
		return v1alpha1.PreviewReady
	}
	for _, c := range p.copies {
		if !c.verdict.allowed && p.Observed[c.resource] == nil {
			return v1alpha1.PreviewPending
		}
	}
	return v1alpha1.PreviewStarting
}

// isAsleep reports whether the Algorithm has no replica until the next request.
func (p *pass) isAsleep() bool {
	o := p.Observed[Algorithm]
	return o != nil && compose.IsTrue(o.Map(), v1alpha1.TypeAsleep)
}

// status is complete: Crossplane removes what is left out. What a Preview was stays when its time is up.
func (p *pass) status(d *compose.Draft) v1alpha1.PreviewStatus {
	st := v1alpha1.PreviewStatus{Phase: p.phase(), ExpiresAt: &metav1.Time{Time: p.until}, Withheld: d.Withheld()}
	if p.isOver() {
		// It is about this deadline: for a later one the Preview has not expired.
		if p.expired {
			st.ExpiredAt = p.before.ExpiredAt
			if st.ExpiredAt == nil {
				st.ExpiredAt = &metav1.Time{Time: p.Now}
			}
		}
		state := v1alpha1.CopyRemoving
		if st.Phase == v1alpha1.PreviewExpired {
			state = v1alpha1.CopyRemoved
		}
		for _, c := range p.before.Copies {
			c.State = state
			st.Copies = append(st.Copies, c)
		}
		return st
	}
	if len(p.problems) > 0 {
		st.Copies, st.URL, st.ConnectionSecrets = p.before.Copies, p.before.URL, p.before.ConnectionSecrets
		return st
	}
	for _, c := range p.copies {
		st.Copies = append(st.Copies, v1alpha1.PreviewCopy{
			Kind: c.kind.Kind, Name: c.name, Of: c.of, Image: p.image(c.resource), State: p.state(c),
		})
	}
	st.URL = p.url()
	if o := p.Observed[Database]; o != nil {
		raw, err := json.Marshal(compose.List(o.Map(), "status", "connectionSecrets"))
		if err != nil || json.Unmarshal(raw, &st.ConnectionSecrets) != nil {
			st.ConnectionSecrets = nil // Only the planner of Databases writes it.
		}
	}
	return st
}

// image of a copied Algorithm, or version of a Database.
func (p *pass) image(resource string) string {
	o := p.Observed[resource]
	switch {
	case o == nil:
		return ""
	case resource == Database:
		return compose.TextOf(o, "spec", "engine") + " " + compose.TextOf(o, "spec", "version")
	default:
		return compose.TextOf(o, "spec", "image")
	}
}

func (p *pass) state(c copied) v1alpha1.PreviewCopyState {
	switch {
	case p.Observed[c.resource] == nil:
		return v1alpha1.CopyWaiting
	case !c.ready:
		return v1alpha1.CopyStarting
	case c.resource == Algorithm && p.isAsleep():
		return v1alpha1.CopyAsleep
	default:
		return v1alpha1.CopyReady
	}
}

// url of the Algorithm: of its route once a Gateway accepts it, and until then and without one inside the cluster.
func (p *pass) url() string {
	o := p.Observed[Algorithm]
	if o == nil {
		return ""
	}
	if route := compose.TextOf(o, "status", "route"); route != "" {
		return cmp.Or(p.Settings.Preview.Scheme, usualScheme) + "://" + strings.TrimSuffix(route, "/")
	}
	if compose.Map(o.Map(), "spec", "route") != nil {
		return "" // no client reaches it there yet
	}
	return compose.TextOf(o, "status", "endpoint")
}

// usualScheme of URLs outside of the cluster.
const usualScheme = "https"

// conditions of the Preview.
func (p *pass) conditions(d *compose.Draft) []xpv2.Condition {
	return []xpv2.Condition{check.Accepted(p.problems), d.Composed(len(p.problems) == 0), p.baseAllowed(), p.previewReady(), p.expiry()}
}

// baseAllowed reports whether every original exists and allows Previews.
func (p *pass) baseAllowed() xpv2.Condition {
	const t = v1alpha1.TypeBaseAllowed
	switch {
	case p.isOver():
		return compose.Unknown(t, v1alpha1.ReasonNotNeeded, "the time of the Preview is up, and originals are not read")
	case len(p.problems) > 0:
		return compose.Unknown(t, v1alpha1.ReasonNotNeeded, "originals are not read until the spec is accepted")
	}
	var reason xpv2.ConditionReason
	var messages []string
	for _, c := range p.copies {
		if v := c.verdict; !v.allowed {
			// What a person has to do is more than what Crossplane has to.
			if reason == "" || reason == v1alpha1.ReasonAwaitingBase {
				reason = v.reason
			}
			messages = append(messages, v.message+p.kept(c.resource))
		}
	}
	switch {
	case len(messages) == 0:
		return compose.True(t, v1alpha1.ReasonBaseAllowed, "every original exists and allows previews")
	case reason == v1alpha1.ReasonAwaitingBase:
		return compose.Unknown(t, reason, strings.Join(messages, "; "))
	default:
		return compose.False(t, reason, strings.Join(messages, "; "))
	}
}

// kept says what happens to a copy whose original is gone.
func (p *pass) kept(resource string) string {
	if p.Observed[resource] == nil {
		return ""
	}
	return ". The copy stays as it is until the time is up"
}

// previewReady reports whether every copy is ready, and otherwise what the first one that is not says.
func (p *pass) previewReady() xpv2.Condition {
	const t = v1alpha1.TypePreviewReady
	switch {
	case p.isOver():
		return compose.False(t, v1alpha1.ReasonTimeUp, "the time of the Preview is up: to make it again, raise spec.ttl or set a later spec.expiresAt")
	case len(p.problems) > 0:
		if before := compose.Unchanged(p.Composite.Map(), t); len(before) > 0 && len(p.Observed) > 0 {
			return before[0]
		}
		return compose.False(t, v1alpha1.ReasonNothingMade, "nothing is made until the spec is accepted: see the condition Accepted")
	case p.ready() && p.isAsleep():
		return compose.True(t, v1alpha1.ReasonCopiesAsleep, "every copy is ready, and the Algorithm sleeps until the next request")
	case p.ready():
		return compose.True(t, v1alpha1.ReasonCopiesReady, "every copy is ready")
	}
	for _, c := range p.copies {
		o := p.Observed[c.resource]
		switch {
		case c.ready:
		case !c.verdict.allowed && o == nil:
			return compose.False(t, v1alpha1.ReasonNothingMade, "nothing is made while an original cannot be copied: see the condition BaseAllowed")
		case o == nil:
			return compose.False(t, v1alpha1.ReasonCopyNotReady, fmt.Sprintf("%s %s is being created", c.kind.Kind, c.name))
		default:
			return compose.False(t, v1alpha1.ReasonCopyNotReady, fmt.Sprintf("%s %s is not ready%s", c.kind.Kind, c.name, causeOf(o)))
		}
	}
	return compose.False(t, v1alpha1.ReasonCopyNotReady, "copies are being created")
}

// causes are conditions of an Algorithm and a Database that say why it is not ready, the first cause first.
var causes = []xpv2.ConditionType{v1alpha1.TypeAccepted, v1alpha1.TypeComposed, v1alpha1.TypePodsHealthy, v1alpha1.TypeRouteAccepted, v1alpha1.TypeAvailable}

// causeOf a copy that is not ready, by its first condition that is False.
func causeOf(o compose.Object) string {
	for _, t := range causes {
		c := compose.Condition(o.Map(), string(t))
		if compose.Text(c, "status") == string(corev1.ConditionFalse) {
			return fmt.Sprintf(": %s is False (%s): %s", t, compose.Text(c, "reason"), compose.Text(c, "message"))
		}
	}
	return ""
}

// expiry reports whether the time is up. The message has no time that is left, which would change with each look.
func (p *pass) expiry() xpv2.Condition {
	const t = v1alpha1.TypeExpired
	at := p.until.UTC().Format(time.RFC3339)
	switch {
	case p.expired && p.removing:
		return compose.True(t, v1alpha1.ReasonTimeUp, fmt.Sprintf("the time was up at %s, and the copies are being removed with their data", at))
	case p.expired:
		return compose.True(t, v1alpha1.ReasonTimeUp, fmt.Sprintf("the time was up at %s, and the copies do not exist any more. This object is the record: delete it when it is no longer needed", at))
	case p.removing:
		return compose.False(t, v1alpha1.ReasonNotExpired, fmt.Sprintf("the Preview is extended to %s, and begins again when the former copies are removed", at))
	default:
		return compose.False(t, v1alpha1.ReasonNotExpired, fmt.Sprintf("the Preview lives until %s: raise spec.ttl or set a later spec.expiresAt to extend it", at))
	}
}
