// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"maps"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
)

// A record is what is pinned of a revision: its pod template as it was rendered first. It is rendered once, so that another
// version of this function, which may render otherwise, restarts nothing.
type record struct {
	// Template of the pods, without the label of a slot.
	Template map[string]any `json:"template"`

	// Model of the registry that the pods serve.
	Model *v1alpha1.ModelStatus `json:"model,omitempty"`
}

// find a revision: as it is pinned, or else as a slot runs it. One that the spec asks for and that never served is rendered each
// time: it is pinned by serving, so that what keeps it from that can be fixed in the platform's settings, too.
func (p *pass) find(revision string) (record, bool) {
	if o := p.Observed[names.RevisionPrefix+revision]; o != nil {
		if r, ok := recordOf(compose.Map(o.Map(), "data")); ok {
			return r, true
		}
	}
	remembered := p.rollout.Ledger
	served := revision == remembered.Revision || revision == p.decision.Ledger.Revision ||
		revision == remembered.Candidate && remembered.Weight > 0
	if !served && (revision == p.target.revision || revision == p.armB.revision && remembered.Experiment != nil) {
		return p.render(revision)
	}
	for _, slot := range names.Slots {
		if p.rollout.Slots[slot].Revision != revision {
			continue
		}
		kept := compose.Keep(p.Observed[names.Deployment(slot)])
		if t := compose.Map(kept, "spec", "template"); t != nil {
			return record{Template: labelled(t, ""), Model: modelIn(kept)}, true
		}
	}
	return p.render(revision)
}

// render a revision that the spec asks for.
func (p *pass) render(revision string) (record, bool) {
	t := p.target
	switch revision {
	case p.target.revision:
	case p.armB.revision:
		t = p.armB
	default:
		return record{}, false
	}
	template, err := compose.AsMap(p.inputs(t).Template())
	return record{Template: template, Model: t.resolved}, err == nil
}

// recordOf the data of a ControllerRevision.
func recordOf(data map[string]any) (record, bool) {
	t := compose.Map(data, "template")
	if t == nil {
		return record{}, false
	}
	r := record{Template: t}
	if m := compose.Map(data, "model"); m != nil {
		r.Model = modelStatus(m)
	}
	return r, true
}

// modelIn a Deployment, by its annotation.
func modelIn(deployment map[string]any) *v1alpha1.ModelStatus {
	m := &v1alpha1.ModelStatus{}
	if err := json.Unmarshal([]byte(compose.Text(deployment, "metadata", "annotations", names.AnnotationModel)), m); err != nil {
		return nil
	}
	return m
}

// labelled is a pod template with the label of a slot, or without one.
func labelled(template map[string]any, slot string) map[string]any {
	labels, metadata := maps.Clone(compose.Map(template, "metadata", "labels")), maps.Clone(compose.Map(template, "metadata"))
	if labels == nil {
		labels = map[string]any{}
	}
	if metadata == nil {
		metadata = map[string]any{}
	}
	if slot == "" {
		delete(labels, names.LabelSlot)
	} else {
		labels[names.LabelSlot] = slot
	}
	metadata["labels"] = labels
	out := maps.Clone(template)
	out["metadata"] = metadata
	return out
}

// uses adds the objects that a pod template names, as kind/name.
func uses(template map[string]any, into map[string]bool) {
	spec := compose.Map(template, "spec")
	for _, c := range compose.List(spec, "resourceClaims") {
		claim, _ := c.(map[string]any)
		into["ResourceClaimTemplate/"+compose.Text(claim, "resourceClaimTemplateName")] = true
	}
	into["ServiceAccount/"+compose.Text(spec, "serviceAccountName")] = true
	for _, v := range compose.List(spec, "volumes") {
		volume, _ := v.(map[string]any)
		into["ConfigMap/"+compose.Text(volume, "configMap", "name")] = true
		into["PersistentVolumeClaim/"+compose.Text(volume, "persistentVolumeClaim", "claimName")] = true
	}
}
