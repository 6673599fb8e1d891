// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/definition"
)

// Prefixes of the names that objects are required under: originals, and what is left of a Preview whose time is up.
const (
	basePrefix     = "base-"
	leftoverPrefix = "rest-"
)

// suffixDatabase follows the name of the Preview in the name of its Database.
const suffixDatabase = "-db"

// theDefinition of Previews.
var theDefinition = definition.Once(apis.Preview)

// facts are everything that a plan is made of: the request, decoded once. Nothing changes them after gather.
type facts struct {
	compose.Request

	name, namespace string

	// created is when the Preview was. Outside of a cluster that is now.
	created time.Time

	// spec with the defaults of its schema, and its problems. As long as there are any, nothing is made or changed.
	spec     v1alpha1.PreviewSpec
	problems []check.Problem

	// before is the status as it was written.
	before v1alpha1.PreviewStatus
}

// A copyOf something: what it is called, and what it is of.
type copyOf struct {
	resource string // within the composition
	kind     schema.GroupVersionKind
	name, of string
}

// gather the facts of a request. It errs only for a composite resource that has no name or namespace.
func gather(r compose.Request) (*facts, error) {
	xr := r.Composite.Map()
	f := &facts{
		Request: r, name: compose.Text(xr, "metadata", "name"), namespace: compose.Text(xr, "metadata", "namespace"),
	}
	if f.name == "" || f.namespace == "" {
		return nil, errors.New("metadata.name and metadata.namespace must not be empty")
	}
	f.Now = r.Now.UTC().Truncate(time.Second)
	f.created = f.Now
	if at, err := time.Parse(time.RFC3339, compose.Text(xr, "metadata", "creationTimestamp")); err == nil {
		f.created = at.UTC()
	}
	spec, problems, _ := definition.Decode[v1alpha1.PreviewSpec](theDefinition(), f.name, compose.Map(xr, "spec"))
	f.spec = spec
	f.problems = slices.Concat(r.Unsupported, check.Settings(r.SettingsErr), problems)
	if len(problems) == 0 {
		f.problems = append(f.problems, f.tooLong()...)
	}
	raw, err := json.Marshal(compose.Map(xr, "status"))
	if err != nil || json.Unmarshal(raw, &f.before) != nil {
		f.before = v1alpha1.PreviewStatus{} // Only this function writes it.
	}
	return f, nil
}

// requested are the copies that the spec asks for. The Database is first, because the Algorithm uses it.
func (f *facts) requested() []copyOf {
	var cs []copyOf
	if d := f.spec.Database; d != nil {
		cs = append(cs, copyOf{Database, v1alpha1.DatabaseGroupVersionKind, f.name + suffixDatabase, d.Of})
	}
	if a := f.spec.Algorithm; a != nil {
		cs = append(cs, copyOf{Algorithm, v1alpha1.AlgorithmGroupVersionKind, f.name, a.Of})
	}
	return cs
}

// A verdict about an original: whether it can be copied, and why not.
type verdict struct {
	allowed bool
	reason  xpv2.ConditionReason
	message string

	// base is the spec of the original.
	base map[string]any

	// mask of the copied data.
	mask []v1alpha1.MaskStatement
}

// judge an original.
func (f *facts) judge(c copyOf) verdict {
	o, sought := f.Required[basePrefix+c.resource], f.Sought[basePrefix+c.resource]
	field := fmt.Sprintf("spec.%s.of: %q", c.resource, c.of)
	switch {
	case o == nil && !sought:
		return verdict{reason: v1alpha1.ReasonAwaitingBase, message: field + ": Crossplane has not read it yet"}
	case o == nil:
		return verdict{reason: v1alpha1.ReasonBaseMissing, message: fmt.Sprintf(
			"%s: there is no %s of this name in this namespace: correct the name, or create it", field, c.kind.Kind)}
	case compose.TextOf(o, "metadata", "annotations", v1alpha1.AnnotationPreviews) != v1alpha1.PreviewsAllowed:
		return verdict{reason: v1alpha1.ReasonPreviewsNotAllowed, message: fmt.Sprintf(
			"%s: this %s does not allow previews: its team can set the annotation %s: %s on it", field, c.kind.Kind, v1alpha1.AnnotationPreviews, v1alpha1.PreviewsAllowed)}
	case compose.PreviewOf(o.Map()) != "":
		return verdict{reason: v1alpha1.ReasonBaseUnusable, message: fmt.Sprintf(
			"%s: it belongs to Preview %s, and a copy has no backups and ends with it: name an original", field, compose.PreviewOf(o.Map()))}
	}
	base := compose.Map(o.Map(), "spec")
	if c.resource == Database {
		if why := f.whyNotCopied(base); why != "" {
			return verdict{reason: v1alpha1.ReasonBaseUnusable, message: field + ": " + why}
		}
		mask, unusable := f.mask()
		if !unusable.allowed {
			return unusable
		}
		return verdict{allowed: true, base: base, mask: mask}
	}
	return verdict{allowed: true, base: base}
}

// whyNotCopied says why the data of a Database cannot be copied, or is empty.
func (f *facts) whyNotCopied(base map[string]any) string {
	backup := compose.Map(base, "backup")
	switch {
	case f.spec.Database.Data == v1alpha1.PreviewEmpty:
		return ""
	case backup == nil, backup["enabled"] == false:
		return fmt.Sprintf("it has no backups, which spec.database.data %s needs: set spec.backup of the Database, or make the Preview with data Empty", f.spec.Database.Data)
	default:
		return ""
	}
}

// isReady reports whether a copy is observed and ready.
func (f *facts) isReady(resource string) bool {
	o := f.Observed[resource]
	return o != nil && ready(o)
}

// ready reports whether an Algorithm or a Database is, and runs as its latest spec describes: while a new revision starts, an Algorithm is
// ready with the one before.
func ready(o compose.Object) bool {
	m := o.Map()
	c := compose.Condition(m, string(xpv2.TypeReady))
	generation := compose.Number(m, 0, "metadata", "generation")
	return compose.Text(c, "status") == string(corev1.ConditionTrue) && compose.Number(c, generation, "observedGeneration") >= generation &&
		compose.Text(compose.Condition(m, string(v1alpha1.TypeUpdated)), "status") != string(corev1.ConditionFalse)
}
