// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
)

type modelAliasSpec struct {
	ManagementPolicies      xpv2.ManagementPolicies               `json:"managementPolicies"`
	ProviderConfigReference *xpv2.ProviderConfigReference         `json:"providerConfigRef,omitempty"`
	ForProvider             registryv1alpha1.ModelAliasParameters `json:"forProvider"`
}

// modelAliases keep aliases of the registry on the versions that are live and under test, and leave there what is known about
// them. Neither its model nor its name can be changed, so that another of either is another ModelAlias, and the one before goes
// with its alias.
func modelAliases(d *compose.Draft, p *pass) {
	m := p.registered()
	if m == nil {
		return
	}
	p.aliasOf(d, m, m.LiveAlias, p.decision.Ledger.Revision)
	// What was rolled back keeps it, as long as the spec asks for it: the evidence belongs there.
	p.aliasOf(d, m, m.CandidateAlias, p.decision.Tested())
}

// aliasOf a revision, if there is one of the registry.
func (p *pass) aliasOf(d *compose.Draft, m *registeredModel, alias, revision string) {
	if alias == "" {
		return
	}
	r, ok := p.record(revision)
	if revision == "" || !ok || r.Model == nil {
		// The live revision is unknown, or of no registry.
		for resource := range p.Observed {
			if alias == m.LiveAlias && strings.HasPrefix(resource, names.ModelAliasPrefix) {
				d.Keep(resource)
			}
		}
		return
	}
	gvk, hash := registryv1alpha1.ModelAliasGroupVersionKind, hashOf(r.Model.Name, alias)
	if !p.available(gvk, names.ModelAliasPrefix+hash) {
		return
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	d.Offer(names.ModelAliasPrefix+hash, compose.NewManifest(apiVersion, kind, p.Metadata(p.OfModel(hash)), modelAliasSpec{
		ManagementPolicies: xpv2.ManagementPolicies{
			xpv2.ManagementActionObserve, xpv2.ManagementActionCreate, xpv2.ManagementActionUpdate, xpv2.ManagementActionDelete,
		},
		ProviderConfigReference: m.reference(),
		ForProvider: registryv1alpha1.ModelAliasParameters{
			Model: r.Model.Name, Alias: alias, Version: r.Model.Version, Evidence: p.aliasEvidence(revision, r),
		},
	}))
}

// aliasEvidence that a version serves: where, as which revision, and how well. Only verdicts, no numbers: those would change by
// themselves.
func (p *pass) aliasEvidence(revision string, r record) map[string]string {
	l := p.decision.Ledger
	e := map[string]string{"algorithm": p.Namespace + "/" + p.Name, "revision": revision}
	for _, v := range compose.List(r.Template, "spec", "containers") {
		if c, _ := v.(map[string]any); compose.Text(c, "name") == names.Container {
			e["image"] = compose.Text(c, "image")
		}
	}
	if p.decision.Rollout != nil {
		switch failed := l.Failure(revision); {
		case failed != nil && revision != l.Revision:
			e["rollout"], e["reason"] = string(v1alpha1.RolloutRolledBack), failed.Reason+": "+failed.Message
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
