// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/internal/conditions"
)

// A Detail is what the page of one object shows of it.
type Detail struct {
	Row

	// Facts are names and values.
	Facts []Fact

	// Troubles are conditions that are not as they should be, with their remedies. Others are in order.
	Troubles, Others []Condition

	// Picture of members or slots.
	Picture *Picture
}

// A Fact has a value.
type Fact struct{ Name, Value string }

// A Condition in words.
type Condition struct{ Type, Status, Reason, Message string }

// DetailOf an object.
func DetailOf(u *unstructured.Unstructured, now time.Time) Detail {
	d := Detail{Row: Of(u, now)}
	all := Conditions(u)
	blocks := conditions.Blocks(all)
	for _, c := range all {
		shown := Condition{string(c.Type), string(c.Status), string(c.Reason), c.Message}
		if slices.Contains(blocks, c) {
			d.Troubles = append(d.Troubles, shown)
		} else {
			d.Others = append(d.Others, shown)
		}
	}
	switch u.GetKind() {
	case "Algorithm":
		a := typed[v1alpha1.Algorithm](u)
		d.Facts, d.Picture = algorithmFacts(a), slots(a)
	case "Database":
		b := typed[v1alpha1.Database](u)
		d.Facts, d.Picture = databaseFacts(b, now), members(b)
	case "Training":
		d.Facts = trainingFacts(typed[v1alpha1.Training](u))
	default:
		d.fact("Size", d.Size)
		d.fact("Endpoint", d.Endpoint)
	}

	return d
}

func (d *Detail) fact(name, value string) { d.Facts = add(d.Facts, name, value) }

func add(facts []Fact, name, value string) []Fact {
	if value == "" {
		return facts
	}

	return append(facts, Fact{name, value})
}

func algorithmFacts(a v1alpha1.Algorithm) []Fact {
	f := add(nil, "Address", a.Status.Endpoint)
	f = add(f, "Outside the cluster", a.Status.Route)
	f = add(f, "Image", a.Spec.Image)
	f = add(f, "Replicas", fmt.Sprintf("%d of %d ready", a.Status.ReadyReplicas, a.Status.Replicas))
	if r := a.Status.Rollout; r != nil {
		words := string(r.Phase)
		if r.Reason != "" {
			words += ": " + r.Reason
		}
		f = add(f, "Rollout", words)
		f = add(f, "What happens", r.Message)
		for _, e := range r.Evidence {
			f = add(f, "Check "+e.Name, e.Verdicts)
		}
	}
	if m := a.Status.Model; m != nil {
		f = add(f, "Model", strings.TrimSpace(m.Name+" "+m.Version))
	}

	return f
}

func databaseFacts(d v1alpha1.Database, now time.Time) []Fact {
	var f []Fact
	if e := d.Status.Endpoints; e != nil {
		f = add(f, "Writes", e.ReadWrite)
		f = add(f, "Reads", e.ReadOnly)
		f = add(f, "Pooler", e.Pooler)
		f = add(f, "Outside the cluster", e.External)
	}
	f = add(f, "Server", strings.TrimSpace(string(d.Spec.Engine)+" "+d.Status.Version))
	f = add(f, "Leader", d.Status.Leader)
	for _, c := range d.Status.ConnectionSecrets {
		ready := "not ready yet"
		if c.Ready {
			ready = "ready"
		}
		f = add(f, "Secret of "+c.Consumer, c.Secret+", "+ready)
	}
	f = add(f, "Last backup", lastBackup(d, now))
	if b := d.Status.Backup; b != nil && b.EarliestRestorable != nil {
		f = add(f, "Restorable since", b.EarliestRestorable.UTC().Format(time.RFC3339))
	}
	if l := d.Status.LastFailover; l != nil {
		f = add(f, "Last change of the leader", fmt.Sprintf("%s, from %s to %s (%s)", Ago(l.At.Time, now), l.From, l.To, l.Cause))
	}
	if c := d.Status.Change; c != nil {
		f = add(f, "Change", fmt.Sprintf("%s: %s", c.State, c.Summary))
	}
	if r := d.Status.Restore; r != nil {
		f = add(f, "Restore", strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", r.ID, r.Phase, r.Message), ": "))
	}

	return f
}

func trainingFacts(t v1alpha1.Training) []Fact {
	f := add(nil, "Image", t.Spec.Image)
	if p := t.Status.Progress; p != nil {
		words := fmt.Sprintf("step %d", p.Step)
		if p.Of > 0 {
			words += fmt.Sprintf(" of %d", p.Of)
		}
		if p.Percent != nil {
			words += fmt.Sprintf(", %d %%", *p.Percent)
		}
		f = add(f, "Progress", words)
		f = add(f, "Loss", p.Loss)
	}
	if c := t.Status.Checkpoint; c != nil {
		f = add(f, "Checkpoint", fmt.Sprintf("step %d", c.Step))
	}

	return add(f, "Message", t.Status.Message)
}

// An Event of an object.
type Event struct{ Type, Reason, Message, When string }

// most events that a page shows.
const mostEvents = 20

// Events in words, the latest first.
func Events(all []corev1.Event, last func(corev1.Event) time.Time, now time.Time) []Event {
	shown := make([]Event, 0, min(len(all), mostEvents))
	for _, e := range all[:min(len(all), mostEvents)] {
		when := ""
		if t := last(e); !t.IsZero() {
			when = Ago(t, now)
		}
		shown = append(shown, Event{e.Type, e.Reason, e.Message, when})
	}

	return shown
}

// A Composed object in the tree of an object.
type Composed struct {
	APIVersion, Kind, Name string
	// State in a word, and its tone.
	State string
	Tone  Tone
}

// References to the objects that Crossplane composed.
func References(u *unstructured.Unstructured) []Composed {
	refs, _, _ := unstructured.NestedSlice(u.Object, "spec", "crossplane", "resourceRefs")
	all := make([]Composed, 0, len(refs))
	for _, r := range refs {
		ref, ok := r.(map[string]any)
		if !ok {
			continue
		}
		text := func(field string) string { s, _ := ref[field].(string); return s }
		all = append(all, Composed{APIVersion: text("apiVersion"), Kind: text("kind"), Name: text("name")})
	}
	slices.SortFunc(all, func(a, b Composed) int { return strings.Compare(a.Kind+"/"+a.Name, b.Kind+"/"+b.Name) })

	return all
}

// StateOf a composed object, as it was read.
func StateOf(u *unstructured.Unstructured) (string, Tone) {
	if u.GetDeletionTimestamp() != nil {
		return "Deleting", Busy
	}
	ready, has, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
	if want, wants, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); wants {
		tone := Busy
		if has && ready >= want || want == 0 {
			tone = Good
		}

		return fmt.Sprintf("%d of %d ready", ready, want), tone
	}
	for _, c := range Conditions(u) {
		if c.Type == "Ready" || c.Type == "Available" {
			if c.Status == corev1.ConditionTrue {
				return "Ready", Good
			}

			return strings.TrimSpace("not ready " + string(c.Reason)), Busy
		}
	}

	return "exists", Neutral
}
