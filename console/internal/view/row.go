// SPDX-License-Identifier: Apache-2.0

// Package view decides what a page shows of an object. It reads nothing but its arguments, and leaves the HTML to templates.
package view

import (
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/internal/conditions"
)

// A Tone is how urgent something is. It is shown as a word too, because not everybody sees colours.
type Tone string

// Tones.
const (
	Good    Tone = "good"
	Busy    Tone = "busy"
	Bad     Tone = "bad"
	Neutral Tone = "neutral"
)

// A Row of a table of objects.
type Row struct {
	Name, Phase string
	Tone        Tone
	Endpoint    string
	Size        string
	Backup      string
	// Note is what blocks the object first.
	Note string
}

// Of an object, its row in a table.
func Of(u *unstructured.Unstructured, now time.Time) Row {
	r := Row{Name: u.GetName()}
	all := Conditions(u)
	if blocks := conditions.Blocks(all); len(blocks) > 0 {
		r.Note = fmt.Sprintf("%s: %s", blocks[0].Reason, short(blocks[0].Message, 140))
	}
	switch u.GetKind() {
	case "Algorithm":
		a := typed[v1alpha1.Algorithm](u)
		r.Phase, r.Endpoint = string(a.Status.Phase), a.Status.Endpoint
		r.Size = fmt.Sprintf("%d of %d ready", a.Status.ReadyReplicas, a.Status.Replicas)
		if ro := a.Status.Rollout; ro != nil && ro.Weight > 0 {
			r.Size += fmt.Sprintf(", %s %d %%", ro.Phase, ro.Weight)
		}
	case "Database":
		d := typed[v1alpha1.Database](u)
		r.Phase = string(d.Status.Phase)
		if e := d.Status.Endpoints; e != nil {
			r.Endpoint = e.ReadWrite
		}
		r.Size = fmt.Sprintf("%d of %d members, %s each", d.Status.ReadyReplicas, d.Spec.Replicas, d.Spec.Storage.String())
		r.Backup = lastBackup(d, now)
	case "Training":
		t := typed[v1alpha1.Training](u)
		r.Phase = string(t.Status.Phase)
		workers := int32(1)
		if t.Spec.Workers != nil {
			workers = *t.Spec.Workers
		}
		r.Size = fmt.Sprintf("%d workers", workers)
		if p := t.Status.Progress; p != nil {
			r.Size += fmt.Sprintf(", step %d", p.Step)
		}
	default:
		r.Phase = readyWord(all)
		r.Endpoint, _, _ = unstructured.NestedString(u.Object, "status", "atProvider", "endpoint")
		for _, field := range []string{"bucketName", "version"} {
			if v, ok, _ := unstructured.NestedString(u.Object, "status", "atProvider", field); ok {
				r.Size = v
			}
		}
	}
	if u.GetDeletionTimestamp() != nil {
		r.Phase = "Deleting"
	}
	if r.Phase == "" {
		r.Phase = "Pending"
	}
	r.Tone = toneOf(r.Phase)

	return r
}

func lastBackup(d v1alpha1.Database, now time.Time) string {
	b := d.Status.Backup
	switch {
	case b == nil:
		return "off"
	case b.Last == nil || b.Last.At == nil:
		return "none yet"
	default:
		return Ago(b.Last.At.Time, now)
	}
}

// ready is a phase, and a condition.
const ready = "Ready"

func readyWord(all []xpv2.Condition) string {
	for _, c := range all {
		if c.Type == xpv2.TypeReady {
			if c.Status == corev1.ConditionTrue {
				return ready
			}

			return "NotReady"
		}
	}

	return ""
}

func toneOf(phase string) Tone {
	switch phase {
	case ready, "Running", "Succeeded", "Stable":
		return Good
	case "Degraded", "Down", "Failed", "NotReady", "RolledBack":
		return Bad
	case "Stopped", "Hibernated", "Asleep", "Suspended":
		return Neutral
	default:
		return Busy
	}
}

// Conditions of an object.
func Conditions(u *unstructured.Unstructured) []xpv2.Condition {
	return typed[struct {
		Status xpv2.ConditionedStatus `json:"status"`
	}](u).Status.Conditions
}

// typed form of an object. What cannot be read is left out: a page with less is better than none. A spec of an earlier version must not
// hide the status, because what runs would be shown as if nothing did.
func typed[T any](u *unstructured.Unstructured) T {
	for _, part := range []string{"", "spec", "status"} {
		object := maps.Clone(u.Object)
		delete(object, part)
		var into T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &into); err == nil {
			return into
		}
	}
	var none T

	return none
}

// Ago says how long ago a time was.
func Ago(t, now time.Time) string {
	switch d := now.Sub(t).Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days ago", int(d.Hours()/24))
	}
}

// short form of a text, at the end of a word.
func short(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	cut := string(runes[:most])
	if i := strings.LastIndexByte(cut, ' '); i > most/2 {
		cut = cut[:i]
	}

	return cut + " …"
}
