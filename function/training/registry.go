// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/observed"
	"github.com/capstan-dev/capstan/function/training/names"
	"github.com/capstan-dev/capstan/function/training/runs"
)

// placeholderRun in the source of a version stands for the number of the run.
const placeholderRun = "{run}"

// A registration is how far the registry has the result.
type registration struct {
	// asked reports whether the spec asks for one, and due whether there is a result.
	asked, due bool
	// version that the registry gave the result, or "", and moved whether the alias is on it, or the spec names none.
	version string
	moved   bool
	// failure in the words of the provider.
	failure string
}

func (r registration) done() bool { return r.version != "" && r.moved }

// registered is how far the registry has the result.
func (p *pass) registered() registration {
	spec := p.registerSpec()
	r := registration{asked: spec != nil, due: p.ledger.State == runs.Succeeded}
	if !r.asked || !r.due {
		return r
	}
	o := p.Observed[names.ModelVersion(p.ledger.Run)]
	if o == nil {
		return r
	}
	v := observed.NewModelVersion(o)
	if synced, _, _ := v.Condition(xpv2.TypeSynced); synced == corev1.ConditionFalse {
		r.failure = v.Failure()
	}
	r.version = p.versionOf(p.ledger.Run)
	if spec.Alias == "" {
		r.moved = true
		return r
	}
	if o := p.Observed[aliasResource(spec)]; o != nil {
		a := observed.NewModelVersion(o) // The conditions of all managed resources are alike.
		ready, _, current := a.Condition(xpv2.TypeReady)
		r.moved = r.version != "" && ready == corev1.ConditionTrue && current && compose.TextOf(o, "spec", "forProvider", "version") == r.version
		if synced, _, _ := a.Condition(xpv2.TypeSynced); synced == corev1.ConditionFalse && r.failure == "" {
			r.failure = a.Failure()
		}
	}
	return r
}

// versionOf the result of a run that the registry gave it, or "".
func (p *pass) versionOf(run int32) string {
	o := p.Observed[names.ModelVersion(run)]
	if o == nil {
		return ""
	}
	v := observed.NewModelVersion(o)
	if ready, _, current := v.Condition(xpv2.TypeReady); ready != corev1.ConditionTrue || !current {
		return ""
	}
	return v.Status().Version
}

func (p *pass) registerSpec() *v1alpha1.TrainingRegister {
	if p.spec.OnSuccess == nil {
		return nil
	}
	return p.spec.OnSuccess.Register
}

type managedSpec[T any] struct {
	ProviderConfigReference *xpv2.ProviderConfigReference `json:"providerConfigRef,omitempty"`
	ForProvider             T                             `json:"forProvider"`
}

// registry gets the result of a run that succeeded as a version of a model, and then the alias. Versions of earlier runs stay until the
// registry has the next one. Without the objects, the entries in the registry stay.
func registry(d *compose.Draft, p *pass) {
	spec := p.registerSpec()
	if spec == nil {
		return
	}
	current := names.ModelVersion(p.ledger.Run)
	if p.register.due && p.available(registryv1alpha1.ModelVersionGroupVersionKind, current) {
		source := strings.ReplaceAll(spec.Source, placeholderRun, strconv.Itoa(int(p.ledger.Run)))
		apiVersion, kind := registryv1alpha1.ModelVersionGroupVersionKind.ToAPIVersionAndKind()
		d.Offer(current, compose.NewManifest(apiVersion, kind, p.Metadata(p.ModelVersion(p.ledger.Run)), managedSpec[registryv1alpha1.ModelVersionParameters]{
			ProviderConfigReference: reference(spec.Config),
			ForProvider: registryv1alpha1.ModelVersionParameters{
				Model: spec.Model, Source: &source,
				Tags: map[string]string{"training": p.Namespace + "/" + p.Name, "training-run": strconv.Itoa(int(p.ledger.Run))},
			},
		}))
	}
	alias := aliasResource(spec)
	if spec.Alias != "" && p.register.version != "" && p.available(registryv1alpha1.ModelAliasGroupVersionKind, alias) {
		apiVersion, kind := registryv1alpha1.ModelAliasGroupVersionKind.ToAPIVersionAndKind()
		d.Offer(alias, compose.NewManifest(apiVersion, kind, p.Metadata(p.ModelAlias(aliasHash(spec))), managedSpec[registryv1alpha1.ModelAliasParameters]{
			ProviderConfigReference: reference(spec.Config),
			ForProvider: registryv1alpha1.ModelAliasParameters{
				Model: spec.Model, Alias: spec.Alias, Version: p.register.version,
				Evidence: map[string]string{"training": p.Namespace + "/" + p.Name, "run": strconv.Itoa(int(p.ledger.Run))},
			},
		}))
	}
	for resource := range p.Observed {
		earlier := names.RunOf(names.ModelVersionPrefix, resource)
		if earlier > 0 && !d.Has(resource) && p.register.version == "" || resource == alias && !d.Has(resource) {
			d.Keep(resource)
		}
	}
}

// aliasResource of an alias within the composition: neither its model nor its name can be changed.
func aliasResource(s *v1alpha1.TrainingRegister) string { return names.ModelAliasPrefix + aliasHash(s) }

func aliasHash(s *v1alpha1.TrainingRegister) string {
	return compose.Hash([]byte(s.Model + "\x00" + s.Alias))
}

// reference to the config of the registry, or nil for the provider's default.
func reference(config string) *xpv2.ProviderConfigReference {
	kind, name, ok := strings.Cut(config, "/")
	if !ok {
		return nil
	}
	return &xpv2.ProviderConfigReference{Kind: kind, Name: name}
}

// modelRegistered is the condition of that type.
func (p *pass) modelRegistered() *xpv2.Condition {
	r, spec := p.register, p.registerSpec()
	switch {
	case !r.asked:
		return nil
	case !r.due:
		return new(compose.False(v1alpha1.TypeModelRegistered, v1alpha1.ReasonAwaitingSuccess, "the result is registered after success"))
	case !r.done() && p.Kinds[registryv1alpha1.ModelVersionGroupVersionKind] == compose.Unavailable:
		return new(compose.False(v1alpha1.TypeModelRegistered, v1alpha1.ReasonProviderMissing,
			"provider-capstan, which registers models, is not installed: install the package capstan"))
	case !r.done() && r.failure != "":
		return new(compose.False(v1alpha1.TypeModelRegistered, v1alpha1.ReasonRegistryFailed, r.failure))
	case !r.done():
		return new(compose.False(v1alpha1.TypeModelRegistered, v1alpha1.ReasonRegistering, fmt.Sprintf("model %q of the registry gets the result", spec.Model)))
	case spec.Alias == "":
		return new(compose.True(v1alpha1.TypeModelRegistered, v1alpha1.ReasonRegistered, fmt.Sprintf("the result is version %s of model %q", r.version, spec.Model)))
	default:
		return new(compose.True(v1alpha1.TypeModelRegistered, v1alpha1.ReasonRegistered,
			fmt.Sprintf("the result is version %s of model %q, and alias %q is on it", r.version, spec.Model, spec.Alias)))
	}
}
