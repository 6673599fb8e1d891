// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

type analysisSpec struct {
	ProviderConfigReference *xpv2.ProviderConfigReference      `json:"providerConfigRef,omitempty"`
	ForProvider             observev1alpha1.AnalysisParameters `json:"forProvider"`
}

// analysis looks at the pods, their metrics and their Secrets. Without it an
// Algorithm serves just as well, and can tell less when it does not: so it is
// asked for only where the provider is installed, and nothing waits for it.
func analysis(s *state) error {
	if !s.observes() {
		return nil
	}

	spec := analysisSpec{ForProvider: observev1alpha1.AnalysisParameters{
		Algorithm: s.name,
		Container: containerName,
		Secrets:   s.neededSecrets(),
		Metrics:   s.metricsParameters(),
	}}

	if s.measures() {
		spec.ProviderConfigReference = s.spec.Metrics.ProviderConfigReference
	}

	apiVersion, kind := observev1alpha1.AnalysisGroupVersionKind.ToAPIVersionAndKind()
	metadata := s.metadata(s.name)

	// As an annotation, because it is not what is to be looked at: evidence that was
	// gathered must not be lost for it.
	if text := s.rolloutTold(); text != "" {
		metadata.WithAnnotations(map[string]string{observev1alpha1.AnnotationRollout: text})
	}

	s.offer(nameAnalysis, compose.NewManifest(apiVersion, kind, metadata, spec))

	return nil
}

// observes tells whether there is an Analysis, or can be one.
func (s *state) observes() bool {
	return s.Kinds[observev1alpha1.AnalysisGroupVersionKind] == compose.Available || s.Observed[nameAnalysis] != nil
}

// rollingSecrets are those whose changes make revisions.
func (s *state) rollingSecrets() []string {
	var names []string

	for _, m := range s.spec.Secrets {
		if m.Rotate == v1alpha1.RotateRolling {
			names = append(names, m.Name)
		}
	}

	return names
}

// neededSecrets are those without which pods cannot start, though they do not say
// so: the kubelet tells of a Secret that it cannot mount in events only.
func (s *state) neededSecrets() []string {
	var names []string

	for _, m := range s.spec.Secrets {
		names = append(names, m.Name)
	}

	if m := s.spec.Model; m != nil && m.Credentials != nil && downloads(m) && !slices.Contains(names, m.Credentials.Name) {
		names = append(names, m.Credentials.Name)
	}

	return names
}

// secrets whose changes make revisions, by the fingerprints that the Analysis
// tells of them. As long as one is not there, the spec asks for no revision that
// could start.
func secrets(s *state) error {
	names := s.rollingSecrets()
	if len(names) == 0 || !s.observes() {
		return nil
	}

	s.fingerprints = map[string]string{}

	if o := s.Observed[nameAnalysis]; o != nil {
		for _, v := range compose.List(o.Map(), "status", "atProvider", "secrets") {
			m, _ := v.(map[string]any)
			s.fingerprints[compose.Text(m, "name")] = compose.Text(m, "fingerprint")
		}
	}

	known := map[string]string{}

	for _, name := range names {
		f := s.fingerprints[name]
		if f == "" {
			s.await(v1alpha1.ReasonAwaitingSecret, "Secret \""+name+"\" of spec.secrets is not there, or was not looked at yet: make it")
		}

		known[name] = f
	}

	s.fingerprints = known

	return nil
}

// finding of the Analysis that comes first among those about a slot, as reason
// and message.
func (s *state) finding(slot string) (reason, message string) {
	o := s.Observed[nameAnalysis]
	if o == nil {
		return "", ""
	}

	for _, v := range compose.List(o.Map(), "status", "atProvider", "findings") {
		f, _ := v.(map[string]any)
		if at := compose.Text(f, "slot"); at != "" && at != slot {
			continue
		}

		// The pods of before may be told of for a while after others have their slot.
		if of := compose.Text(f, "revision"); of != "" && s.slots[slot].exists && of != s.slots[slot].revision {
			continue
		}

		if r := compose.Text(f, "reason"); r != "" {
			return r, compose.Text(f, "message")
		}
	}

	return "", ""
}
