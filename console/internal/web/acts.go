// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/internal/act"
)

// An Act of day two, as a button.
type Act struct {
	Name, Title, Help string
	Inputs            []Input

	decide func(u *unstructured.Unstructured, value func(string) string, id string, now time.Time) (planned, error)
}

// An Input of an act.
type Input struct {
	Name, Title string
	// Options to choose from; none is any text.
	Options []string
	// Empty is what happens without a value.
	Empty    string
	Required bool
	Value    string
	// From and To are the bounds of a slider of times, in seconds since 1970.
	From, To int64
}

// planned is an act that was decided on, for a kind of any type.
type planned struct {
	Words []string
	Done  string

	patch    func(resourceVersion string) ([]byte, error)
	manifest func() (string, error)
}

func of[T any](p act.Plan[T]) planned {
	return planned{Words: p.Words, Done: p.Done, patch: p.Patch, manifest: p.Manifest}
}

// sum of the words, so that a person confirms only what was shown.
func (p planned) sum() string {
	sum := sha256.Sum256([]byte(strings.Join(p.Words, "\n")))

	return hex.EncodeToString(sum[:])
}

// typed form of an object that was read.
func typed[T any](u *unstructured.Unstructured) (*T, error) {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return nil, fmt.Errorf("cannot read %s %s: %w", u.GetKind(), u.GetName(), err)
	}

	return into, nil
}

type (
	values    = func(string) string
	algorithm = v1alpha1.Algorithm
	database  = v1alpha1.Database
)

func onAlgorithm(name, title, help string, decide func(a *algorithm, value values) (act.Plan[*algorithm], error), inputs ...Input) Act {
	return Act{Name: name, Title: title, Help: help, Inputs: inputs, decide: func(u *unstructured.Unstructured, value values, _ string, _ time.Time) (planned, error) {
		a, err := typed[algorithm](u)
		if err != nil {
			return planned{}, err
		}
		p, err := decide(a, value)

		return of(p), err //nolint:wrapcheck // It is for people already.
	}}
}

func onDatabase(name, title, help string, decide func(d *database, value values, id string, now time.Time) (act.Plan[*database], error), inputs ...Input) Act {
	return Act{Name: name, Title: title, Help: help, Inputs: inputs, decide: func(u *unstructured.Unstructured, value values, id string, now time.Time) (planned, error) {
		d, err := typed[database](u)
		if err != nil {
			return planned{}, err
		}
		p, err := decide(d, value, id, now)

		return of(p), err //nolint:wrapcheck // It is for people already.
	}}
}

func withoutValues(decide func(*algorithm) (act.Plan[*algorithm], error)) func(*algorithm, values) (act.Plan[*algorithm], error) {
	return func(a *algorithm, _ values) (act.Plan[*algorithm], error) { return decide(a) }
}

func approve(a *algorithm, value values) (act.Plan[*algorithm], error) {
	weight := int64(0)
	if text := value("weight"); text != "" {
		var err error
		if weight, err = strconv.ParseInt(text, 10, 32); err != nil {
			return act.Plan[*algorithm]{}, fmt.Errorf("the share %q is no whole number: choose one from 1 to 100", text)
		}
	}

	return act.Approve(a, int32(weight)) //nolint:gosec // It was parsed with 32 bits.
}

func restore(d *database, value values, id string, now time.Time) (act.Plan[*database], error) {
	m := act.Moment{At: value("at"), Point: value("point")}
	m.Latest = m.At == "" && m.Point == ""

	return act.Restore(d, m, 0, id, now)
}

// acts of a kind of object.
var acts = map[string][]Act{
	"Algorithm": {
		onAlgorithm("approve", "Approve", "Approve the next share of traffic of the revision under test.", approve,
			Input{Name: "weight", Title: "Up to this share of traffic, in %", Empty: "the next one"}),
		onAlgorithm("promote", "Promote", "Send all traffic to the revision under test, without evidence.", withoutValues(act.Promote)),
		onAlgorithm("abort", "Abort", "Roll the revision under test back at once.", withoutValues(act.Abort)),
		onAlgorithm("pause", "Pause", "Hold the rollout at its share of traffic.", withoutValues(act.Pause)),
		onAlgorithm("resume", "Resume", "Let a paused rollout continue.", withoutValues(act.Resume)),
		onAlgorithm("retry", "Try again", "Try a revision again that was rolled back.", withoutValues(act.Retry)),
	},
	"Database": {
		onDatabase("switchover", "Switch over", "Make another member the leader.",
			func(d *database, value values, id string, now time.Time) (act.Plan[*database], error) {
				return act.Switchover(d, value("to"), id, now)
			}, Input{Name: "to", Title: "The next leader", Empty: "a member that has every commit"}),
		onDatabase("backup", "Back up", "Take a backup at once.",
			func(d *database, _ values, id string, _ time.Time) (act.Plan[*database], error) {
				return act.Backup(d, id)
			}),
		onDatabase("restore", "Restore", "Bring the data of an earlier moment back, in place.", restore,
			Input{Name: "at", Title: "The moment", Empty: "the latest moment in the archive"},
			Input{Name: "point", Title: "Or a restore point", Empty: "none"}),
		onDatabase("undo", "Undo the restore", "Go back to the data from before the latest restore.",
			func(d *database, _ values, _ string, now time.Time) (act.Plan[*database], error) {
				return act.Undo(d, now)
			}),
		onDatabase("rotate", "Rotate logins", "Replace the logins of consumers.",
			func(d *database, _ values, id string, _ time.Time) (act.Plan[*database], error) {
				return act.Rotate(d, id)
			}),
		onDatabase("reinitialize", "Copy a standby again", "Copy the data of a standby again.",
			func(d *database, value values, id string, _ time.Time) (act.Plan[*database], error) {
				return act.Reinitialize(d, value("member"), id)
			}, Input{Name: "member", Title: "The standby", Required: true}),
		onDatabase("hibernate", "Hibernate", "Stop all members and keep the data.",
			func(d *database, _ values, _ string, now time.Time) (act.Plan[*database], error) {
				return act.Hibernate(d, now)
			}),
		onDatabase("wake", "Wake", "Start a hibernated Database.",
			func(d *database, _ values, _ string, _ time.Time) (act.Plan[*database], error) { return act.Wake(d) }),
	},
}

// actOf a name, with the choices that the object offers.
func actOf(u *unstructured.Unstructured, name string, value values, now time.Time) (Act, error) {
	i := slices.IndexFunc(acts[u.GetKind()], func(a Act) bool { return a.Name == name })
	if i < 0 {
		return Act{}, errors.New("there is no such act")
	}
	a := acts[u.GetKind()][i]
	a.Inputs = slices.Clone(a.Inputs)
	for i := range a.Inputs {
		in := &a.Inputs[i]
		in.Value = value(in.Name)
		if u.GetKind() != "Database" {
			continue
		}
		d, err := typed[database](u)
		if err != nil {
			return Act{}, err
		}
		in.offer(d, now)
	}

	return a, nil
}

// offer what can be chosen of a Database.
func (in *Input) offer(d *database, now time.Time) {
	switch in.Name {
	case "to", "member":
		for _, m := range d.Status.Members {
			if m.Name != d.Status.Leader {
				in.Options = append(in.Options, m.Name)
			}
		}
		if in.Required && len(in.Options) > 0 {
			in.Value = cmp.Or(in.Value, in.Options[0])
		}
	case "at":
		if b := d.Status.Backup; b != nil && b.EarliestRestorable != nil {
			end := now
			if b.LatestRestorable != nil {
				end = b.LatestRestorable.Time
			}
			// Whole seconds within the bounds: the first of them may begin in the middle of one.
			in.From, in.To = b.EarliestRestorable.Add(time.Second-1).Unix(), end.Unix()
		}
	case "point":
		if b := d.Status.Backup; b != nil {
			for _, p := range b.RestorePoints {
				in.Options = append(in.Options, p.Name)
			}
		}
	}
}

// possible acts on an object, as it is now.
func possible(u *unstructured.Unstructured, now time.Time) []Act {
	var all []Act
	for _, a := range acts[u.GetKind()] {
		offered, err := actOf(u, a.Name, func(string) string { return "" }, now)
		if err != nil {
			continue
		}
		value := func(name string) string {
			for _, in := range offered.Inputs {
				if in.Name == name {
					return in.Value
				}
			}

			return ""
		}
		if p, err := a.decide(u, value, requestID(now), now); err == nil && p.Done == "" {
			all = append(all, a)
		}
	}

	return all
}

// requestID of an act, from the time to the second: it can be read, and differs from those before.
func requestID(now time.Time) string { return "console-" + now.UTC().Format("20060102-150405") }

// managers are the marks of tools that revert edits that Git does not have.
func manager(u *unstructured.Unstructured) string {
	for _, m := range []struct{ mark, tool string }{
		{"argocd.argoproj.io/tracking-id", "Argo CD"},
		{"argocd.argoproj.io/instance", "Argo CD"},
		{"kustomize.toolkit.fluxcd.io/name", "Flux"},
		{"helm.toolkit.fluxcd.io/name", "Flux"},
	} {
		_, annotated := u.GetAnnotations()[m.mark]
		_, labelled := u.GetLabels()[m.mark]
		if annotated || labelled {
			return m.tool
		}
	}

	return ""
}
