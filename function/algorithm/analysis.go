// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// analysisApplyConfiguration is what an Analysis is asked for by. The API type
// would bring an empty status along.
type analysisApplyConfiguration struct {
	applymetav1.TypeMetaApplyConfiguration `json:",inline"`

	Metadata *applymetav1.ObjectMetaApplyConfiguration `json:"metadata"`
	Spec     analysisSpec                              `json:"spec"`
}

type analysisSpec struct {
	ForProvider observev1alpha1.AnalysisParameters `json:"forProvider"`
}

// GetKind of the object.
func (a *analysisApplyConfiguration) GetKind() *string { return a.Kind }

// GetName of the object.
func (a *analysisApplyConfiguration) GetName() *string { return a.Metadata.Name }

// analysis looks at the pods. Without it an Algorithm serves just as well, and
// can tell less when it does not: so it is asked for only where the provider is
// installed, and nothing waits for it.
func analysis(s *state) error {
	gvk := observev1alpha1.AnalysisGroupVersionKind
	if s.Kinds[gvk] != compose.Available && s.Observed[nameAnalysis] == nil {
		return nil
	}

	apiVersion, kind := gvk.ToAPIVersionAndKind()

	s.offer(nameAnalysis, &analysisApplyConfiguration{
		TypeMetaApplyConfiguration: *applymetav1.TypeMeta().WithAPIVersion(apiVersion).WithKind(kind),
		Metadata: applymetav1.ObjectMeta().
			WithName(s.name).
			WithNamespace(s.namespace).
			WithLabels(s.labels()),
		Spec: analysisSpec{ForProvider: observev1alpha1.AnalysisParameters{
			Algorithm: s.name,
			Container: containerName,
		}},
	})

	return nil
}

// finding of the Analysis that comes first among those about the slot, as
// reason and message.
func (s *state) finding() (reason, message string) {
	o := s.Observed[nameAnalysis]
	if o == nil {
		return "", ""
	}

	for _, v := range compose.List(o.Map(), "status", "atProvider", "findings") {
		f, _ := v.(map[string]any)
		if at := compose.Text(f, "slot"); at != "" && at != slot {
			continue
		}

		if r := compose.Text(f, "reason"); r != "" {
			return r, compose.Text(f, "message")
		}
	}

	return "", ""
}
