// SPDX-License-Identifier: Apache-2.0

// Package plan finds out what a manifest would become on a cluster: it plans with the settings of the platform, the object that the manifest
// edits, and what is composed of that object. It reads these with the rights of a user, and changes nothing.
package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-dev/capstan/apis/optional"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/planners"
	"github.com/capstan-dev/capstan/function/release"
	"github.com/capstan-dev/capstan/function/settings"
	"github.com/capstan-dev/capstan/internal/steady"
)

// environments is the kind of objects with the platform's settings.
var environments = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1beta1", Kind: "EnvironmentConfig"}

// mostRounds is how often objects that cannot be read are found out from others.
const mostRounds = 10

// A Requirement names an object that a plan looks at.
type Requirement = compose.Requirement

// A Get reads an object of a cluster with the rights of a user. It returns nil when there is none, or no such kind.
type Get func(ctx context.Context, of Requirement) (map[string]any, error)

// Surroundings of a manifest.
type Surroundings struct {
	// Version of the release that plans.
	Version string

	// Now is the time.
	Now time.Time

	// Documents count instead of the cluster's objects.
	Documents []map[string]any

	// Get an object of the cluster, or nil to look at none: then the manifest is of a new object.
	Get Get

	// StandIn for composed objects that the user may not read: each is taken to be as the planner makes it, and the plan says so. Otherwise
	// there is no plan.
	StandIn bool

	// Most composed objects that are read. There is no plan for an object with more. Zero: all are.
	Most int
}

// A Plan is where a manifest ends.
type Plan struct {
	steady.Result

	// Edit is true of an object that exists.
	Edit bool
}

// Accepted reports whether the planner accepts the spec.
func (p Plan) Accepted() bool {
	c := compose.Condition(p.End.XR, string(v1alpha1.TypeAccepted))

	return compose.Text(c, "status") != string(metav1.ConditionFalse)
}

// All planners of a release by the kinds that they compose for.
func All(version string) map[schema.GroupKind]planners.Planner {
	return planners.Of(release.Release{Version: version})
}

// GroupKind of an object.
func GroupKind(o map[string]any) schema.GroupKind { return gvkOf(o).GroupKind() }

func gvkOf(o map[string]any) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(compose.Text(o, "apiVersion"), compose.Text(o, "kind"))
}

// A look at the surroundings for one plan.
type look struct {
	Surroundings

	// notes for people of what could not be read.
	notes []string
}

// Of a manifest of one of Capstan's kinds. With a cluster it needs its namespace.
func (s Surroundings) Of(ctx context.Context, manifest map[string]any) (Plan, error) {
	planner, ours := All(s.Version)[GroupKind(manifest)]
	if !ours {
		return Plan{}, fmt.Errorf("%s is no kind of Capstan's", GroupKind(manifest))
	}
	if compose.Text(manifest, "metadata", "name") == "" {
		return Plan{}, errors.New("it has no metadata.name")
	}
	k := &look{Surroundings: s}
	l, err := k.library(ctx, planner)
	if err != nil {
		return Plan{}, err
	}
	live, objects, unread, err := k.observed(ctx, manifest)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Edit: live != nil}
	world, before := steady.New(manifest, s.Now), map[string]map[string]any(nil)
	if live != nil {
		was, will := steady.Edit(live, manifest, objects, s.Now)
		if before, err = k.before(ctx, &was, unread, l.Pass); err != nil {
			return Plan{}, err
		}
		world = will
		world.Objects = was.Objects
	}
	if p.Result, err = steady.Run(ctx, world, before, l.Pass); err != nil {
		return Plan{}, err
	}
	p.Assumptions = slices.Concat(k.notes, p.Assumptions)

	return p, nil
}

// before the edit: what should exist then. What exists and could not be read stands in the world as it should be.
func (k *look) before(ctx context.Context, was *steady.World, unread []string, pass steady.Pass) (map[string]map[string]any, error) {
	a, err := pass(ctx, *was)
	in := steady.StandIns{Unread: unread}
	for range mostRounds {
		if err != nil || len(unread) == 0 || !in.Put(was, a.Objects) {
			break
		}
		a, err = pass(ctx, *was)
	}
	if err != nil {
		return nil, err
	}
	if len(in.Taken) > 0 {
		slices.Sort(in.Taken)
		k.note("You may not read " + strings.Join(in.Taken, ", ") + ": each is taken to be as the planner makes it.")
	}
	for _, o := range in.Unread {
		k.note(notThere(o))
	}

	return a.Objects, nil
}

// notThere is the note about an object that the user may not read.
func notThere(title string) string {
	return "You may not read " + title + ": it is taken as not there."
}

func (k *look) note(text string) {
	if !slices.Contains(k.notes, text) {
		k.notes = append(k.notes, text)
	}
}

// library with what the cluster says of the platform.
func (k *look) library(ctx context.Context, planner planners.Planner) (steady.Library, error) {
	l := steady.Library{Planner: planner, Find: k.find}
	environment, err := k.find(ctx, compose.Requirement{Kind: environments, Name: settings.Name})
	if err != nil {
		return l, err
	}
	var from []compose.Object
	if environment != nil {
		from, l.SettingsFrom = append(from, steady.Object(environment)), settings.Name
	} else {
		k.note("No EnvironmentConfig " + settings.Name + " was found: the settings are the built-in ones.")
	}
	l.Settings, l.SettingsErr = settings.Of(release.Release{Version: k.Version}, nil, from...)
	kinds, err := k.find(ctx, compose.Requirement{Kind: environments, Name: optional.Config})
	if err != nil {
		return l, err
	}
	served := compose.Map(kinds, "data", "kinds")
	for _, gvk := range planner.Optional {
		if is, reported := served[optional.Key(gvk)]; reported && is != true {
			l.Unserved = append(l.Unserved, gvk)
		}
	}

	return l, nil
}

// observed is the object that a manifest edits, nil when there is none, and what is composed of it. The titles of what exists and cannot be read
// are unread.
func (k *look) observed(ctx context.Context, manifest map[string]any) (live map[string]any, objects map[string]map[string]any, unread []string, err error) {
	if k.Get == nil {
		return nil, nil, nil, nil
	}
	namespace := compose.Text(manifest, "metadata", "namespace")
	live, err = k.Get(ctx, compose.Requirement{Kind: gvkOf(manifest), Namespace: namespace, Name: compose.Text(manifest, "metadata", "name")})
	if live == nil || err != nil {
		return nil, nil, nil, err
	}
	refs := compose.List(live, "spec", "crossplane", "resourceRefs")
	if k.Most > 0 && len(refs) > k.Most {
		return nil, nil, nil, fmt.Errorf("it consists of %d objects, and at most %d are read for a plan", len(refs), k.Most)
	}
	objects = map[string]map[string]any{}
	for _, v := range refs {
		ref, _ := v.(map[string]any)
		of := compose.Requirement{Kind: gvkOf(ref), Namespace: namespace, Name: compose.Text(ref, "name")}
		o, err := k.Get(ctx, of)
		switch {
		case k.StandIn && apierrors.IsForbidden(err):
			unread = append(unread, of.Kind.Kind+" "+of.Name)
		case err != nil:
			return nil, nil, nil, err
		}
		if name := compose.Text(o, "metadata", "annotations", steady.AnnotationResource); name != "" {
			objects[name] = o
		}
	}

	return live, objects, unread, nil
}

// find an object that a planner looks at: among the documents, or on the cluster. One that the user may not read is taken as not there, and
// that is noted.
func (k *look) find(ctx context.Context, of compose.Requirement) (map[string]any, error) {
	for _, o := range k.Documents {
		namespace := compose.Text(o, "metadata", "namespace")
		if GroupKind(o) == of.Kind.GroupKind() && compose.Text(o, "metadata", "name") == of.Name && (namespace == "" || of.Namespace == "" || namespace == of.Namespace) {
			return o, nil
		}
	}
	if k.Get == nil {
		return nil, nil //nolint:nilnil // There is no cluster to look at.
	}
	o, err := k.Get(ctx, of)
	if apierrors.IsForbidden(err) {
		k.note(notThere(of.Kind.Kind + " " + of.Name))

		return nil, nil //nolint:nilnil // It is taken as not there.
	}

	return o, err
}

// Kinds that can be planned, sorted.
func Kinds(version string) []string {
	all := All(version)
	names := make([]string, 0, len(all))
	for gk := range all {
		names = append(names, gk.Kind)
	}
	slices.Sort(names)

	return names
}
