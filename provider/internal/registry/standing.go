// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// A Standing is what an owner tag means to one managed resource.
type Standing string

// What an owner tag can mean.
const (
	// Ours: the entry is the managed resource's own.
	Ours Standing = "Ours"
	// Unowned: the entry has no owner.
	Unowned Standing = "Unowned"
	// Siblings: the entry is another managed resource's of the same namespace.
	Siblings Standing = "Siblings"
	// Foreign: the entry belongs to another namespace, or another cluster.
	Foreign Standing = "Foreign"
)

// Stand says what an owner tag means to the managed resource of this name. An entry without the tag has "".
func Stand(t outside.Tenant, name, tag string) Standing {
	switch {
	case tag == "":
		return Unowned
	case tag == t.Owner(name):
		return Ours
	case t.Owns(tag):
		return Siblings
	default:
		return Foreign
	}
}

// A Claim is what a managed resource wants with an entry that exists.
type Claim struct {
	// Tenant on whose behalf the managed resource acts.
	Tenant outside.Tenant

	// Name of the managed resource.
	Name string

	// What the entry is, for people: model "reco".
	What string

	// Tag that names the owner, or "".
	Tag string

	// Adopt means that the managed resource asks for what has no owner.
	Adopt bool
}

// Manage decides whether the managed resource may change and delete the entry. It returns true when it first has to take it over,
// and a Failure when it must not touch it. The owner is not named, unless it is of the same namespace: names of others are
// none of its business.
func (c Claim) Manage() (adopt bool, _ error) {
	switch Stand(c.Tenant, c.Name, c.Tag) {
	case Ours:
		return false, nil
	case Siblings:
		return false, &outside.Failure{
			Reason:  v1alpha1.ReasonNameTaken,
			Message: fmt.Sprintf("%s belongs to %q of the same namespace", c.What, strings.TrimPrefix(c.Tag, c.Tenant.Owner(""))),
			Remedy:  "use another name",
		}
	case Unowned:
		return c.take()
	case Foreign:
	}
	return false, &outside.Failure{
		Reason:  v1alpha1.ReasonNameTaken,
		Message: c.What + " belongs to another owner",
		Remedy:  "use another name",
	}
}

// take what has no owner, if both sides agree.
func (c Claim) take() (bool, error) {
	if !c.Tenant.Adoption {
		return false, &outside.Failure{
			Reason:  v1alpha1.ReasonNameTaken,
			Message: fmt.Sprintf("%s exists, has no owner, and %s allows no adoption", c.What, c.Tenant.Config),
			Remedy:  "use another name, or ask the platform team to set spec.adoption to Unowned",
		}
	}
	if !c.Adopt {
		return false, &outside.Failure{
			Reason:  v1alpha1.ReasonNameTaken,
			Message: c.What + " exists and has no owner",
			Remedy:  "set spec.forProvider.adopt to true to take it over, or use another name",
		}
	}
	return true, nil
}

// Enter decides whether a tenant may see a model with this owner tag, and make versions and aliases of it. With a config of its
// own it may do what its credentials may.
func Enter(t outside.Tenant, model, tag string) error {
	switch {
	case !t.Shared, t.Owns(tag):
		return nil
	case tag != "":
		return &outside.Failure{
			Reason:  v1alpha1.ReasonForbidden,
			Message: fmt.Sprintf("model %q belongs to another owner", model),
			Remedy:  "use a model of this namespace, or a ProviderConfig of your own",
		}
	case t.Adoption:
		return nil
	default:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonForbidden,
			Message: fmt.Sprintf("model %q has no owner, and %s does not open such models", model, t.Config),
			Remedy:  "use a model of this namespace, or ask the platform team to set spec.adoption to Unowned",
		}
	}
}
