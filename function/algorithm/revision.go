// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// A record is what is pinned of a revision: its pod template as it was rendered
// first. It is rendered once, so that another version of this function, which may
// render otherwise, restarts nothing.
type record struct {
	// Template of the pods, without the label of a slot.
	Template map[string]any `json:"template"`

	// Model of the registry that the pods serve.
	Model *v1alpha1.ModelStatus `json:"model,omitempty"`
}

// revision that the spec asks for. It is named by what reaches the pods, as far
// as the spec says it: neither the platform's settings nor the version of this
// function make a revision.
func revision(s *state) error {
	if s.awaits != nil {
		return nil
	}

	raw, err := json.Marshal(s.essence())
	if err != nil {
		return fmt.Errorf("cannot name the revision: %w", err)
	}

	s.target = compose.Hash(raw)

	return nil
}

// record of a revision: as it is pinned, or else as a slot runs it. One that the
// spec asks for and that never served is rendered anew each time: it is pinned by
// serving, so that what keeps it from that can be mended in the platform's
// settings, too.
func (s *state) record(revision string) (record, bool) {
	if revision == "" {
		return record{}, false
	}

	if r, ok := s.records[revision]; ok {
		return r, true
	}

	r, ok := s.find(revision)
	if ok {
		s.records[revision] = r
	}

	return r, ok
}

func (s *state) find(revision string) (record, bool) {
	if o := s.Observed[nameRevisionPrefix+revision]; o != nil {
		if r, ok := recordOf(compose.Map(o.Map(), "data")); ok {
			return r, true
		}
	}

	served := revision == s.ledger.Revision || revision == s.decision.ledger.Revision || revision == s.ledger.Candidate && s.ledger.Weight > 0
	if revision == s.target && !served {
		t, err := compose.AsMap(podTemplate(s))
		return record{Template: t, Model: s.resolved}, err == nil
	}

	if b := s.armB; b != nil && revision == b.target && !served && s.ledger.Experiment != nil {
		t, err := compose.AsMap(podTemplate(b))
		return record{Template: t, Model: b.resolved}, err == nil
	}

	for _, slot := range []string{slotA, slotB} {
		if s.slots[slot].revision != revision {
			continue
		}

		kept := compose.Keep(s.Observed[deploymentOf(slot)])
		if t := compose.Map(kept, "spec", "template"); t != nil {
			return record{Template: withoutSlot(t), Model: modelIn(kept)}, true
		}
	}

	if b := s.armB; b != nil && revision == b.target {
		t, err := compose.AsMap(podTemplate(b))
		return record{Template: t, Model: b.resolved}, err == nil
	}

	if revision != s.target {
		return record{}, false
	}

	t, err := compose.AsMap(podTemplate(s))

	return record{Template: t, Model: s.resolved}, err == nil
}

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

// modelIn a Deployment, as its annotation tells.
func modelIn(deployment map[string]any) *v1alpha1.ModelStatus {
	m := &v1alpha1.ModelStatus{}
	if err := json.Unmarshal([]byte(compose.Text(deployment, "metadata", "annotations", annotationModel)), m); err != nil {
		return nil
	}

	return m
}

// revisions that are kept: the one that callers reach, those that run or are asked
// for and have served before, and a few more of those, so that going back finds
// what served then.
func revisions(s *state) error {
	live := s.decision.ledger.Revision
	needed := map[string]bool{live: true, s.decision.beside.revision: true, s.target: true}

	var next int64 = 1

	numbers := map[string]int64{}

	for resource, o := range s.Observed {
		if hash, ok := strings.CutPrefix(resource, nameRevisionPrefix); ok {
			numbers[hash] = compose.Number(o.Map(), 0, "revision")
			next = max(next, numbers[hash]+1)
		}
	}

	for hash := range needed {
		if _, pinned := numbers[hash]; pinned {
			s.keep(nameRevisionPrefix + hash)
		}
	}

	if err := s.pin(live, numbers, next); err != nil {
		return err
	}

	before := slices.SortedFunc(maps.Keys(numbers), func(a, b string) int {
		if numbers[a] != numbers[b] {
			return int(numbers[b] - numbers[a])
		}

		return strings.Compare(a, b)
	})

	kept := 0

	for _, hash := range before {
		if !needed[hash] {
			if kept++; kept > int(*s.spec.RevisionHistoryLimit) {
				continue
			}

			s.keep(nameRevisionPrefix + hash)
		}

		s.history = append(s.history, hash)
	}

	return nil
}

// pin the revision that callers reach. One that they reach again is the latest
// again: its number may change, what it holds may not.
func (s *state) pin(hash string, numbers map[string]int64, next int64) error {
	resource := nameRevisionPrefix + hash

	if number, pinned := numbers[hash]; pinned {
		if hash != s.ledger.Revision && number != next-1 {
			again := compose.Keep(s.Observed[resource])
			again["revision"] = next
			s.plan.Objects[resource] = compose.Desired{Object: again, Ready: true}
			numbers[hash] = next
		}

		return nil
	}

	r, ok := s.record(hash)
	if !ok {
		return nil
	}

	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("cannot pin revision %s: %w", hash, err)
	}

	s.offer(resource, applyappsv1.ControllerRevision(compose.Name(s.name, hash), s.namespace).
		WithLabels(s.labels()).
		WithData(runtime.RawExtension{Raw: raw}).
		WithRevision(next))

	return nil
}

// withoutSlot is a pod template without the label of its slot.
func withoutSlot(template map[string]any) map[string]any { return labelled(template, "") }

// labelled is a pod template with the label of a slot, or without one.
func labelled(template map[string]any, slot string) map[string]any {
	labels := maps.Clone(compose.Map(template, "metadata", "labels"))
	if labels == nil {
		labels = map[string]any{}
	}

	if slot == "" {
		delete(labels, labelSlot)
	} else {
		labels[labelSlot] = slot
	}

	metadata := maps.Clone(compose.Map(template, "metadata"))
	if metadata == nil {
		metadata = map[string]any{}
	}

	metadata["labels"] = labels

	out := maps.Clone(template)
	out["metadata"] = metadata

	return out
}
