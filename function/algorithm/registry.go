// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/modeluri"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/observed"
)

// pollAlias is how often the registry is queried whether an alias has moved.
const pollAlias = "1m"

// annotationPoll sets how often the provider looks.
const annotationPoll = "crossplane.io/poll-interval"

type modelVersionSpec struct {
	ManagementPolicies      xpv2.ManagementPolicies                 `json:"managementPolicies"`
	ProviderConfigReference *xpv2.ProviderConfigReference           `json:"providerConfigRef,omitempty"`
	ForProvider             registryv1alpha1.ModelVersionParameters `json:"forProvider"`
}

// A registeredModel is a model of the registry, by its version or an alias.
type registeredModel struct {
	Name, Version, Alias string
	// Config is the kind and name of what says where the registry is, with a slash between. Empty is the provider's default.
	Config string
	// LiveAlias and CandidateAlias are those that Capstan keeps.
	LiveAlias, CandidateAlias string
}

// reference to the config of the registry, or nil for the provider's default.
func (m *registeredModel) reference() *xpv2.ProviderConfigReference {
	kind, name, ok := strings.Cut(m.Config, "/")
	if !ok {
		return nil
	}
	return &xpv2.ProviderConfigReference{Kind: kind, Name: name}
}

// registered is the model of the registry that the spec asks for, or nil.
func (f *facts) registered() *registeredModel {
	m := f.spec.Model
	if m == nil {
		return nil
	}
	u := modeluri.Parse(m.URI)
	if u.Scheme != modeluri.Registry {
		return nil
	}
	return &registeredModel{
		Name: u.Name, Version: u.Version, Alias: u.Alias, Config: m.Config, LiveAlias: m.LiveAlias, CandidateAlias: m.CandidateAlias,
	}
}

// modelVersion asks the registry which version the spec means. What it answered last is in the status, from where revisions take
// it: an outage of the registry keeps nothing from being served, and no edit from being rolled out but one that asks for another
// version.
func modelVersion(d *compose.Draft, f *facts) {
	if m := f.registered(); m != nil {
		f.askRegistry(d, m, hashOf(m.Name))
	}
}

// armVersion asks the registry for the version of arm B.
func armVersion(d *compose.Draft, f *facts, a target) {
	if a.revision != "" && f.rollout.Requested() && f.rollout.Experiment.ArmB.ModelVersion != "" {
		m := f.armModel(f.rollout.Experiment.ArmB.ModelVersion)
		f.askRegistry(d, &m, hashOf(m.Name, "armB"))
	}
}

// askRegistry for a model, by a ModelVersion with a hash in its name. Its model cannot be changed, so that each model has its
// own.
func (f *facts) askRegistry(d *compose.Draft, m *registeredModel, hash string) {
	gvk, resource := registryv1alpha1.ModelVersionGroupVersionKind, names.ModelVersionPrefix+hash
	if !f.available(gvk, resource) {
		return
	}
	metadata, p := f.Metadata(f.OfModel(hash)), registryv1alpha1.ModelVersionParameters{Model: m.Name}
	if m.Alias != "" {
		p.Alias = &m.Alias
		metadata.WithAnnotations(map[string]string{annotationPoll: pollAlias})
	} else {
		p.Version = &m.Version
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	d.Offer(resource, compose.NewManifest(apiVersion, kind, metadata, modelVersionSpec{
		ManagementPolicies:      xpv2.ManagementPolicies{xpv2.ManagementActionObserve},
		ProviderConfigReference: m.reference(),
		ForProvider:             p,
	}))
}

// armModel is the model of the registry at the version of arm B.
func (f *facts) armModel(version string) registeredModel {
	m := *f.registered()
	m.Version, m.Alias = version, ""
	return m
}

// modelOfArm at a version, once it is known.
func (f *facts) modelOfArm(version string) *v1alpha1.ModelStatus {
	m := f.armModel(version)
	o := f.Observed[names.ModelVersionPrefix+hashOf(m.Name, "armB")]
	if o == nil {
		return nil
	}
	v := observed.NewModelVersion(o)
	st := v.Status()
	if !asks(v, &m) || st.Version != version || st.Status != "" && st.Status != modelReady {
		return nil
	}
	return resolvedModel(&m, st)
}

// modelReady is the status of a version whose files are complete.
const modelReady = "READY"

// recallModel from the status, if it is of what the spec asks for.
func (f *facts) recallModel(m *registeredModel) *v1alpha1.ModelStatus {
	known := modelStatus(compose.Map(f.Composite.Map(), "status", "model"))
	if known.Name == m.Name && known.Version != "" && known.Alias == m.Alias && known.ProviderConfig == m.Config &&
		(m.Alias != "" || known.Version == m.Version) {
		return known
	}
	return nil
}

// modelResolved is what the registry says now, for the status, and the condition about it.
func (f *facts) modelResolved(t target) (*v1alpha1.ModelStatus, xpv2.Condition) {
	m := f.registered()
	meant := fmt.Sprintf("version %s of model %q", m.Version, m.Name)
	if m.Alias != "" {
		meant = fmt.Sprintf("alias %q of model %q", m.Alias, m.Name)
	}
	is := func(reason xpv2.ConditionReason, message string) (*v1alpha1.ModelStatus, xpv2.Condition) {
		return t.resolved, compose.False(v1alpha1.TypeModelResolved, reason, message)
	}
	o := f.Observed[names.ModelVersionPrefix+hashOf(m.Name)]
	switch {
	case o == nil && f.Kinds[registryv1alpha1.ModelVersionGroupVersionKind] == compose.Unavailable:
		return is(v1alpha1.ReasonProviderMissing, "provider-capstan, which queries the model registry, is not installed: install the package capstan")
	case o == nil:
		return is(v1alpha1.ReasonResolving, "the model registry has not been queried yet for "+meant)
	}
	v := observed.NewModelVersion(o)
	st := v.Status()
	synced, _, syncedNow := v.Condition(xpv2.TypeSynced)
	_, said, readyNow := v.Condition(xpv2.TypeReady)
	switch {
	case !syncedNow || !asks(v, m):
		return is(v1alpha1.ReasonResolving, "the model registry is being queried for "+meant)
	case synced != corev1.ConditionTrue:
		return is(v1alpha1.ReasonRegistryFailed, fmt.Sprintf(
			"%s: %s. The live revision is not affected. Only a revision with another version of the model has to wait", meant, v.Failure()))
	case !readyNow:
		return is(v1alpha1.ReasonResolving, "the model registry is being queried for "+meant)
	case st.Version == "":
		return is(v1alpha1.ReasonRegistryFailed, "the model registry has no "+meant+": create it, or correct spec.model.uri")
	case st.Status != "" && st.Status != modelReady:
		return is(v1alpha1.ReasonVersionNotReady, fmt.Sprintf(
			"version %s of model %q is %s in the registry: wait, or register it again", st.Version, m.Name, st.Status))
	}
	message := fmt.Sprintf("%s is version %s", meant, st.Version)
	// A digest that cannot be used, which nothing would be compared with.
	if said != "" {
		message += ": " + said
	}
	return resolvedModel(m, st), compose.True(v1alpha1.TypeModelResolved, v1alpha1.ReasonResolved, message)
}

// asks reports whether a ModelVersion asks for what the spec does.
func asks(v observed.ModelVersion, m *registeredModel) bool {
	p, config := v.Asks()
	same := m.Config == "" || m.Config == config
	return same && p.Model == m.Name && deref(p.Alias) == m.Alias && deref(p.Version) == m.Version
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// resolvedModel is what the registry says of the model that the spec asks for.
func resolvedModel(m *registeredModel, st registryv1alpha1.ModelVersionObservation) *v1alpha1.ModelStatus {
	return &v1alpha1.ModelStatus{
		Name: m.Name, ProviderConfig: m.Config, Alias: m.Alias, Version: st.Version,
		Source: cmp.Or(st.ArtifactURI, st.Source), Digest: st.Digest,
	}
}

// modelStatus of decoded JSON. What cannot be read is unknown.
func modelStatus(m map[string]any) *v1alpha1.ModelStatus {
	st := &v1alpha1.ModelStatus{}
	if raw, err := json.Marshal(m); err == nil {
		_ = json.Unmarshal(raw, st)
	}
	return st
}
