// SPDX-License-Identifier: Apache-2.0

// Package act decides what an act of a person changes in the spec of an Algorithm or a Database. It refuses what cannot be done now, says
// what will happen, and recognises the outcome. It reads nothing but its arguments.
package act

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A Plan is what an act does to an object of type T.
type Plan[T any] struct {
	// Words are what will happen, a sentence each.
	Words []string

	// Ask is true of acts that move traffic, interrupt writes or touch data: a person has to agree.
	Ask bool

	// Done is why nothing is left to do. Then there is no patch.
	Done string

	// Spec is the part of the spec that it sets. A value of nil removes a field.
	Spec map[string]any

	// Replaces reports whether a list is written as a whole. Then the patch must not reach an object that was edited since it was read.
	Replaces bool

	// Outcome of the act, as the object shows it afterwards.
	Outcome func(T) Progress
}

// Progress of an act.
type Progress struct {
	// Done reports whether the act has its effect.
	Done bool

	// Failed reports whether it never will.
	Failed bool

	// Message is what it waits for, or how it ended.
	Message string
}

// Patch is the JSON merge patch of the act: nothing but the fields that it sets. With a resourceVersion it applies to that version only.
func (p Plan[T]) Patch(resourceVersion string) ([]byte, error) {
	patch := map[string]any{"spec": p.Spec}
	if resourceVersion != "" {
		patch["metadata"] = map[string]any{"resourceVersion": resourceVersion}
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the patch: %w", err)
	}

	return data, nil
}

// Manifest is the same change as text for a manifest in Git: YAML of the fields to set, and a comment for each to remove.
func (p Plan[T]) Manifest() (string, error) {
	set := runtime.DeepCopyJSON(map[string]any{"spec": p.Spec})
	var text strings.Builder
	for _, path := range prune(set, "") {
		fmt.Fprintf(&text, "# Remove %s.\n", path)
	}
	if len(set) == 0 {
		return text.String(), nil
	}
	data, err := yaml.Marshal(set)
	if err != nil {
		return "", fmt.Errorf("cannot encode the change: %w", err)
	}
	text.Write(data)

	return text.String(), nil
}

// prune fields without a value, and blocks that are empty then, and return the paths of the fields.
func prune(block map[string]any, path string) []string {
	var removed []string
	for _, name := range slices.Sorted(maps.Keys(block)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		switch v := block[name].(type) {
		case nil:
			removed = append(removed, at)
			delete(block, name)
		case map[string]any:
			removed = append(removed, prune(v, at)...)
			if len(v) == 0 {
				delete(block, name)
			}
		}
	}

	return removed
}

// object that an act is about.
type object interface {
	GetName() string
	GetNamespace() string
	GetAnnotations() map[string]string
	GetDeletionTimestamp() *metav1.Time
	GetGeneration() int64
}

// annotationPaused stops Crossplane at an object.
const annotationPaused = "crossplane.io/paused"

// live refuses objects on which no edit has an effect.
func live(o object, conditions xpv2.ConditionedStatus) error {
	if o.GetDeletionTimestamp() != nil {
		return errors.New("it is being deleted")
	}
	if o.GetAnnotations()[annotationPaused] == "true" {
		return fmt.Errorf("its annotation %s stops Crossplane: remove the annotation", annotationPaused)
	}
	if c := conditions.GetCondition(v1alpha1.TypeAccepted); c.Status == corev1.ConditionFalse {
		return fmt.Errorf("its spec is refused, and no edit counts until it is corrected: %s", c.Message)
	}

	return nil
}

// current reports whether Crossplane has carried out a pass with the latest spec.
func current(o object, conditions xpv2.ConditionedStatus) bool {
	c := conditions.GetCondition(xpv2.TypeSynced)

	return c.Status == corev1.ConditionTrue && c.ObservedGeneration >= o.GetGeneration()
}

// NewID of a request, from the time to the second: it can be read, and differs from those before.
func NewID(now time.Time) string { return "kubectl-" + now.UTC().Format("20060102-150405") }

// remove lists fields that another request has set, and this one does not.
func remove(set map[string]any, old map[string]bool) map[string]any {
	for name, was := range old {
		if _, ok := set[name]; was && !ok {
			set[name] = nil
		}
	}

	return set
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
