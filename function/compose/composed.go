// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Asked is a composed object that should exist.
type Asked struct {
	// Resource is its name within the composition.
	Resource string
	// Kind and Name are what people know it by.
	Kind, Name string
	// Observed reports whether it exists.
	Observed bool
	// New reports that no earlier pass required it, so that it cannot exist yet.
	New bool
	// Optional reports that its absence does not make the composite resource not ready.
	Optional bool
}

// String is what people know the object by.
func (a Asked) String() string { return fmt.Sprintf("%s %q", a.Kind, a.Name) }

// Missing reports whether an object is waited for. One that is new is not when all was well before: an edit that adds an object
// would change a condition and change it back within a second, without use (see Settle for what that costs).
func (a Asked) Missing(wellBefore bool) bool { return !a.Observed && (!a.New || !wellBefore) }

// Referenced reports whether a composite resource refers to an object, which it does from the first pass on that asked for it.
func Referenced(xr map[string]any, kind, name string) bool {
	return slices.ContainsFunc(List(xr, "spec", "crossplane", "resourceRefs"), func(v any) bool {
		ref, ok := v.(map[string]any)
		return ok && ref["kind"] == kind && ref["name"] == name
	})
}

// Composed is the condition of that type: whether every desired object exists as desired, and if not, what to do. A spec that is not
// accepted has no desired objects.
func Composed(r Request, asked []Asked, w *Withholding, accepted bool) xpv2.Condition {
	var refused, waiting []string
	before := IsTrue(r.Composite.Map(), v1alpha1.TypeComposed)
	reason := v1alpha1.ReasonRefused
	for _, a := range asked {
		refusal := w.Refusal(a.Resource)
		switch {
		case w.Invalid(a.Resource):
			refused = append(refused, fmt.Sprintf("%s was refused as invalid: the events of this object say why. "+
				"Correct the field they name; if another controller owns an object of that name, rename one of the two", a))
		case refusal != "":
			if notAllowed(refusal) {
				reason = v1alpha1.ReasonNotAllowedToCompose
			}
			refused = append(refused, fmt.Sprintf("%s was refused: %s. %s", a, strings.TrimRight(refusal, "."), remedy(refusal)))
		case a.Missing(before):
			waiting = append(waiting, a.String())
		}
	}
	c := xpv2.Condition{Type: v1alpha1.TypeComposed, Status: corev1.ConditionFalse}
	switch {
	case len(refused) > 0:
		c.Reason, c.Message = reason, strings.Join(refused, "; ")
	case len(waiting) > 0:
		c.Reason, c.Message = v1alpha1.ReasonComposing, "waiting for "+strings.Join(waiting, ", ")
	default:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, v1alpha1.ReasonComposed, "every object exists"
	}
	switch {
	case accepted:
	case len(r.Observed) == 0:
		c.Status, c.Reason = corev1.ConditionFalse, v1alpha1.ReasonComposing
		c.Message = "nothing is made until the spec is accepted"
	default:
		c.Message = "what exists is kept as it is until the spec is accepted"
	}
	return c
}

// notAllowed reports whether a refusal is about Crossplane's rights. Quotas and admission policies refuse with the word forbidden,
// too, but name no user.
func notAllowed(refusal string) bool { return strings.Contains(refusal, "forbidden: User ") }

// remedy for a refusal.
func remedy(refusal string) string {
	switch {
	case notAllowed(refusal):
		return "Apply platform.yaml of the installed release (package/platform.yaml in the sources), which lets Crossplane compose this kind"
	case strings.Contains(refusal, takeoverRemedy):
		return "Capstan tries again within a minute"
	case strings.Contains(refusal, "exceeded quota"):
		return "Raise the quota of the namespace, or ask for less"
	case strings.Contains(refusal, "no matches for kind"):
		return "Install what serves this kind"
	case strings.Contains(refusal, "denied"):
		return "Satisfy the policy that denied it, or make an exception to it"
	default:
		return "Remove what the message names; if it is another object of that name, rename one of the two"
	}
}
