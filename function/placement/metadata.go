// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Labels of a block, none for nil. The map is the receiver's own: what Capstan sets is added to it, and wins.
func Labels(m *v1alpha1.PodMetadata) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return texts(m.Labels)
}

// Annotations of a block, like Labels.
func Annotations(m *v1alpha1.PodMetadata) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return texts(m.Annotations)
}

func texts[T ~string](values map[string]T) map[string]string {
	out := make(map[string]string, len(values))
	for key, value := range values {
		out[key] = string(value)
	}
	return out
}

// CheckMetadata returns what is wrong with a block that its schema accepts: Kubernetes is stricter about keys and bounds the
// size of all annotations together.
func CheckMetadata(at *field.Path, m *v1alpha1.PodMetadata) field.ErrorList {
	if m == nil {
		return nil
	}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		errs = append(errs, metav1validation.ValidateLabelName(key, at.Child("labels"))...)
	}
	return append(errs, apivalidation.ValidateAnnotations(texts(m.Annotations), at.Child("annotations"))...)
}
