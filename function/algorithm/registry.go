// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// pollAlias is how often the registry is asked whether an alias has moved.
const pollAlias = "1m"

// annotationPoll tells the provider how often to look.
const annotationPoll = "crossplane.io/poll-interval"

type modelVersionSpec struct {
	ManagementPolicies      xpv2.ManagementPolicies                 `json:"managementPolicies"`
	ProviderConfigReference *xpv2.ProviderConfigReference           `json:"providerConfigRef,omitempty"`
	ForProvider             registryv1alpha1.ModelVersionParameters `json:"forProvider"`
}

type modelAliasSpec struct {
	ManagementPolicies      xpv2.ManagementPolicies               `json:"managementPolicies"`
	ProviderConfigReference *xpv2.ProviderConfigReference         `json:"providerConfigRef,omitempty"`
	ForProvider             registryv1alpha1.ModelAliasParameters `json:"forProvider"`
}

// modelVersion asks the registry which version the spec means. What it said last
// is in the status, from where revisions take it: an outage of the registry keeps
// nothing from being served, and no edit from being rolled out but one that wants
// another version.
func modelVersion(s *state) error {
	m := s.fromRegistry()
	if m == nil {
		return nil
	}

	gvk, resource, name := registryv1alpha1.ModelVersionGroupVersionKind, modelVersionOf(m), compose.Name(s.name, "model", hashOf(m.Name))
	if s.Kinds[gvk] != compose.Available && s.Observed[resource] == nil {
		s.recallModel(m)
		return nil
	}

	metadata := s.metadata(name)
	p := registryv1alpha1.ModelVersionParameters{Model: m.Name}

	if m.Alias != "" {
		p.Alias = &m.Alias
		metadata.WithAnnotations(map[string]string{annotationPoll: pollAlias})
	} else {
		p.Version = &m.Version
	}

	apiVersion, kind := gvk.ToAPIVersionAndKind()
	s.offer(resource, compose.NewManifest(apiVersion, kind, metadata, modelVersionSpec{
		ManagementPolicies:      xpv2.ManagementPolicies{xpv2.ManagementActionObserve},
		ProviderConfigReference: m.ProviderConfigReference,
		ForProvider:             p,
	}))

	s.recallModel(m)

	return nil
}

// modelVersionOf is the ModelVersion that asks for a model. Its model cannot be
// changed, so that each model has its own.
func modelVersionOf(m *v1alpha1.RegistryModel) string { return nameModelVersionPrefix + hashOf(m.Name) }

// hashOf texts, for the names of what cannot change from one to another.
func hashOf(texts ...string) string {
	raw, _ := json.Marshal(texts) //nolint:errchkjson // Text always marshals.
	return compose.Hash(raw)
}

// modelSource is where the pods of the revision fetch their model.
func modelSource(s *state) error {
	m := s.spec.Model
	if m == nil || s.awaits != nil {
		return nil
	}

	if m.From == v1alpha1.ModelFromRegistry {
		s.model = registeredSource(m, s.resolved.Source, s.resolved.Digest)
		return nil
	}

	s.model = declaredSource(m)

	return nil
}

// recallModel from the status, if it is of what the spec asks for.
func (s *state) recallModel(m *v1alpha1.RegistryModel) {
	known := modelStatus(compose.Map(s.Composite.Map(), "status", "model"))

	if known.Name == m.Name && known.Version != "" && known.Alias == m.Alias && known.ProviderConfig == configOf(m) && (m.Alias != "" || known.Version == m.Version) {
		s.resolved = known
		return
	}

	s.await(v1alpha1.ReasonAwaitingModel, "the version of the model is not resolved: see the condition ModelResolved")
}

// configOf a model says where its registry is.
func configOf(m *v1alpha1.RegistryModel) string {
	if r := m.ProviderConfigReference; r != nil {
		return r.Kind + "/" + r.Name
	}

	return ""
}

// resolution is what the registry says now, to be told in the status, and the
// condition about it.
func (s *state) resolution() (*v1alpha1.ModelStatus, xpv2.Condition) {
	m := s.fromRegistry()
	c := xpv2.Condition{Type: v1alpha1.TypeModelResolved, Status: corev1.ConditionFalse}
	meant := fmt.Sprintf("version %s of model %q", m.Version, m.Name)

	if m.Alias != "" {
		meant = fmt.Sprintf("alias %q of model %q", m.Alias, m.Name)
	}

	o := s.Observed[modelVersionOf(m)]
	if o == nil {
		c.Reason, c.Message = v1alpha1.ReasonResolving, "the model registry was not asked yet for "+meant
		if s.Kinds[registryv1alpha1.ModelVersionGroupVersionKind] == compose.Unavailable {
			c.Reason, c.Message = v1alpha1.ReasonProviderMissing, "provider-capstan asks the model registry, and is not installed: install the package capstan"
		}

		return s.resolved, c
	}

	mv := o.Map()
	seen := compose.Map(mv, "status", "atProvider")
	generation := compose.Number(mv, 0, "metadata", "generation")
	synced := compose.Condition(mv, string(xpv2.TypeSynced))
	ready := compose.Condition(mv, string(xpv2.TypeReady))
	of := func(condition map[string]any) bool {
		return compose.Number(condition, 0, "observedGeneration") >= generation
	}

	switch {
	case !of(synced) || !asks(mv, m):
		c.Reason, c.Message = v1alpha1.ReasonResolving, "the model registry is being asked for "+meant
	case compose.Text(synced, "status") != string(corev1.ConditionTrue):
		c.Reason = v1alpha1.ReasonRegistryFailed
		c.Message = fmt.Sprintf("%s: %s. What serves goes on, and only a revision with another version of the model has to wait",
			meant, compose.Text(synced, "message"))

		if told := compose.Condition(mv, string(v1alpha1.TypeConnected)); compose.Text(told, "status") == string(corev1.ConditionFalse) {
			c.Message = fmt.Sprintf("%s: %s. What serves goes on, and only a revision with another version of the model has to wait",
				meant, compose.Text(told, "message"))
		}
	case !of(ready):
		c.Reason, c.Message = v1alpha1.ReasonResolving, "the model registry is being asked for "+meant
	case compose.Text(seen, "version") == "":
		c.Reason, c.Message = v1alpha1.ReasonRegistryFailed, "the model registry has no "+meant+": make it, or correct spec.model.registry"
	case compose.Text(seen, "status") != "" && compose.Text(seen, "status") != "READY":
		c.Reason = v1alpha1.ReasonVersionNotReady
		c.Message = fmt.Sprintf("version %s of model %q is %s in the registry: wait, or register it again",
			compose.Text(seen, "version"), m.Name, compose.Text(seen, "status"))
	default:
		c.Status, c.Reason = corev1.ConditionTrue, v1alpha1.ReasonResolved
		c.Message = fmt.Sprintf("%s is version %s", meant, compose.Text(seen, "version"))

		// A digest that cannot be used, which nothing would be compared with.
		if said := compose.Text(ready, "message"); said != "" {
			c.Message += ": " + said
		}

		return resolvedModel(m, seen), c
	}

	return s.resolved, c
}

// asks tells whether a ModelVersion asks for what the spec does.
func asks(version map[string]any, m *v1alpha1.RegistryModel) bool {
	config, wants := compose.Map(version, "spec", "providerConfigRef"), compose.Map(version, "spec", "forProvider")
	same := m.ProviderConfigReference == nil || configOf(m) == compose.Text(config, "kind")+"/"+compose.Text(config, "name")

	return same && compose.Text(wants, "model") == m.Name &&
		compose.Text(wants, "alias") == m.Alias && compose.Text(wants, "version") == m.Version
}

// resolvedModel is what the registry says of the model that the spec asks for.
func resolvedModel(m *v1alpha1.RegistryModel, seen map[string]any) *v1alpha1.ModelStatus {
	return &v1alpha1.ModelStatus{
		Name:           m.Name,
		ProviderConfig: configOf(m),
		Alias:          m.Alias,
		Version:        compose.Text(seen, "version"),
		Source:         cmp.Or(compose.Text(seen, "artifactUri"), compose.Text(seen, "source")),
		Digest:         compose.Text(seen, "digest"),
	}
}

// modelAlias keeps aliases of the registry on the versions that callers reach and
// that are tried, and leaves there what is known about them. Neither its model nor
// its name can be changed, so that another of either is another ModelAlias, and the
// one before goes with its alias.
func modelAlias(s *state) error {
	m := s.fromRegistry()
	if m == nil {
		return nil
	}

	l := s.decision.ledger

	s.aliasOf(m, m.LiveAlias, l.Revision)
	// What was rolled back keeps it, as long as the spec asks for it: the evidence
	// belongs there.
	s.aliasOf(m, m.CandidateAlias, s.tried())

	return nil
}

// tried revision: the candidate until all callers reach it.
func (s *state) tried() string {
	// An arm of an experiment is no candidate to be live.
	if l := s.decision.ledger; s.decision.rollout != nil && l.Previous == "" && l.Experiment == nil {
		return l.Candidate
	}

	return ""
}

// aliasOf a revision, if there is one of the registry.
func (s *state) aliasOf(m *v1alpha1.RegistryModel, alias, revision string) {
	if alias == "" {
		return
	}

	r, ok := s.record(revision)
	if revision == "" || !ok || r.Model == nil {
		// What callers reach is not known, or of no registry.
		if alias == m.LiveAlias {
			s.keepAliases()
		}

		return
	}

	gvk, hash := registryv1alpha1.ModelAliasGroupVersionKind, hashOf(r.Model.Name, alias)
	if s.Kinds[gvk] != compose.Available && s.Observed[nameModelAliasPrefix+hash] == nil {
		return
	}

	apiVersion, kind := gvk.ToAPIVersionAndKind()
	s.offer(nameModelAliasPrefix+hash, compose.NewManifest(apiVersion, kind, s.metadata(compose.Name(s.name, "model", hash)), modelAliasSpec{
		ManagementPolicies: xpv2.ManagementPolicies{
			xpv2.ManagementActionObserve, xpv2.ManagementActionCreate, xpv2.ManagementActionUpdate, xpv2.ManagementActionDelete,
		},
		ProviderConfigReference: m.ProviderConfigReference,
		ForProvider: registryv1alpha1.ModelAliasParameters{
			Model:    r.Model.Name,
			Alias:    alias,
			Version:  r.Model.Version,
			Evidence: aliasEvidence(s, revision, r),
		},
	}))
}

func (s *state) keepAliases() {
	for resource := range s.Observed {
		if strings.HasPrefix(resource, nameModelAliasPrefix) {
			s.keep(resource)
		}
	}
}

// aliasEvidence that a version serves: where, as which revision, and how well. Only
// verdicts, no numbers: those would change by themselves.
func aliasEvidence(s *state, revision string, r record) map[string]string {
	l := s.decision.ledger
	e := map[string]string{
		"algorithm": s.namespace + "/" + s.name,
		"revision":  revision,
	}

	for _, v := range compose.List(r.Template, "spec", "containers") {
		if c, _ := v.(map[string]any); compose.Text(c, "name") == containerName {
			e["image"] = compose.Text(c, "image")
		}
	}

	if ro := s.decision.rollout; ro != nil {
		f := ro.failure(revision)

		switch {
		case f != nil && revision != l.Revision:
			e["rollout"], e["reason"] = string(v1alpha1.RolloutRolledBack), f.Reason+": "+f.Message
		case revision != l.Revision:
			e["rollout"] = "Candidate"
		case l.Previous != "":
			e["rollout"] = string(v1alpha1.RolloutBaking)
		default:
			e["rollout"] = string(v1alpha1.RolloutStable)
		}
	}

	if revision == l.Revision && !l.Since.IsZero() {
		e["since"] = l.Since.UTC().Format(time.RFC3339)
	}

	return e
}

// fromRegistry is what the spec asks of the registry, or nil.
func (s *state) fromRegistry() *v1alpha1.RegistryModel {
	if m := s.spec.Model; m != nil && m.From == v1alpha1.ModelFromRegistry {
		return m.Registry
	}

	return nil
}

// modelStatus of decoded JSON.
func modelStatus(m map[string]any) *v1alpha1.ModelStatus {
	st := &v1alpha1.ModelStatus{}

	raw, err := json.Marshal(m)
	if err == nil {
		_ = json.Unmarshal(raw, st) // what cannot be read is not known
	}

	return st
}
