// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// existingPrefix precedes the name within the composition in the name that an object of the same kind and name is required by.
const existingPrefix = "existing."

// Consent to the takeover of an object is an annotation with its name, and the mark of a composite resource is a label with that one's.
const (
	annotationAdopt = "capstan.dev/adopt"
	labelComposite  = "crossplane.io/composite"
)

// A Reference names an object by its kind and name.
type Reference struct {
	Kind schema.GroupVersionKind
	Name string
}

// Existing requires what may be there already under the names of new objects, which were never asked for: Crossplane would take it
// over by force. It has to be known before Crossplane refers to it. It does so before it applies anything, and once it refers to
// what another client made, every pass fails, and the function is not even called. What was found stays required until the pass ends.
func Existing(r Request, desired map[string]Reference) map[string]Requirement {
	xr := r.Composite.Map()
	namespace := Text(xr, "metadata", "namespace")
	rs := map[string]Requirement{}
	for resource, ref := range desired {
		if r.Observed[resource] == nil && !Referenced(xr, ref.Kind.Kind, ref.Name) {
			rs[existingPrefix+resource] = Requirement{Kind: ref.Kind, Namespace: namespace, Name: ref.Name}
		}
	}
	for name, o := range r.Required {
		if strings.HasPrefix(name, existingPrefix) {
			m := o.Map()
			kind := schema.FromAPIVersionAndKind(Text(m, "apiVersion"), Text(m, "kind"))
			rs[name] = Requirement{Kind: kind, Namespace: namespace, Name: Text(m, "metadata", "name")}
		}
	}
	return rs
}

// takeovers are refusals of objects that another client made, by the names of the new objects within the composition. The policy
// capstan-takeover of package/platform.yaml refuses the same, with the same words, for what is made between two looks.
func takeovers(r Request) map[string]string {
	refusals := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.Required)) {
		if resource, ok := strings.CutPrefix(name, existingPrefix); ok {
			if m := r.Required[name].Map(); foreign(r.Composite.Map(), m) {
				refusals[resource] = takeover(r.Composite.Map(), m)
			}
		}
	}
	return refusals
}

// foreign reports whether an object has no controller, was not made for the composite resource, and is not handed over. Crossplane
// itself refuses one with another controller.
func foreign(xr, object map[string]any) bool {
	for _, o := range List(object, "metadata", "ownerReferences") {
		if ref, ok := o.(map[string]any); ok && ref["controller"] == true {
			return false
		}
	}
	// A composite resource, such as what a Preview copies, has its own name as the mark, which says nothing of who made it.
	marked := Text(object, "metadata", "labels", labelComposite) == Text(xr, "metadata", "name") &&
		!strings.HasPrefix(Text(object, "apiVersion"), v1alpha1.GroupVersion.Group+"/")
	return !marked &&
		Text(object, "metadata", "annotations", annotationAdopt) != Text(object, "metadata", "name")
}

func takeover(xr, object map[string]any) string {
	name := Text(object, "metadata", "name")
	return fmt.Sprintf("%s %s exists, and %s %s did not make it: rename one of the two, or hand it over with the annotation %s=%s",
		Text(object, "kind"), name, Text(xr, "kind"), Text(xr, "metadata", "name"), annotationAdopt, name)
}
