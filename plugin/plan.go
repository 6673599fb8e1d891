// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/apis/optional"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/planners"
	"github.com/capstan-dev/capstan/function/release"
	"github.com/capstan-dev/capstan/function/settings"
	"github.com/capstan-dev/capstan/internal/steady"
	"github.com/capstan-dev/capstan/plugin/internal/cluster"
)

// environments is the kind of objects with the platform's settings.
var environments = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1beta1", Kind: "EnvironmentConfig"}

// A planned manifest, and where its surroundings are from.
type planned struct {
	files   []string
	offline bool
	now     string

	cluster   *cluster.Cluster
	documents []map[string]any
	// notes for people of what could not be read.
	notes []string
}

func (p *plugin) plan() *cobra.Command {
	w := &planned{}
	cmd := &cobra.Command{
		Use: "plan -f FILE", Short: "Show what a manifest will become, to its end: what comes, changes, restarts and goes, in stages",
		Long: "Show what a manifest of an Algorithm, a Database or another kind of Capstan will become, and change nothing.\n\n" +
			"The planner is part of this program. It continues, taking what was composed as made and ready, until nothing changes. The end of the\n" +
			"output has what that assumes. Of an object that exists on the cluster it shows the edit; --offline looks at no cluster. Other\n" +
			"objects in the file, such as an EnvironmentConfig or what a Preview copies, count instead of the cluster's. Exit code 1: the spec is not accepted.",
		Example: "  kubectl capstan plan -f database.yaml\n  kubectl kustomize overlays/prod | kubectl capstan plan -f - --offline",
		GroupID: groupSee, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !w.offline {
				c, err := p.connect()
				if err != nil {
					return fmt.Errorf("%w; --offline plans without a cluster", err)
				}
				w.cluster = c
			}
			return w.run(cmd, p)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&w.files, "filename", "f", nil, "File with the manifest, or - for standard input. Can be repeated")
	flags.BoolVar(&w.offline, "offline", false, "Look at no cluster: plan a new object with the settings of the file, or the built-in ones")
	flags.StringVar(&w.now, "now", "", "The time of the plan, so that tests get the same output")
	_ = flags.MarkHidden("now")
	_ = cmd.MarkFlagRequired("filename")

	return cmd
}

func (w *planned) run(cmd *cobra.Command, p *plugin) error {
	now := p.now()
	if w.now != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, w.now); err != nil {
			return fmt.Errorf("cannot read --now: %w", err)
		}
	}
	for _, file := range w.files {
		some, err := readDocuments(file, cmd.InOrStdin())
		if err != nil {
			return err
		}
		w.documents = append(w.documents, some...)
	}
	all := planners.Of(release.Release{Version: version})
	var manifests []map[string]any
	for _, o := range w.documents {
		gk := schema.FromAPIVersionAndKind(compose.Text(o, "apiVersion"), compose.Text(o, "kind")).GroupKind()
		if _, ours := all[gk]; ours {
			manifests = append(manifests, o)
		}
	}
	if len(manifests) == 0 {
		return fmt.Errorf("there is no manifest of Capstan's in %s: it has to be of kind %s", strings.Join(w.files, ", "), strings.Join(kindsOf(all), ", "))
	}
	refused := 0
	for i, m := range manifests {
		if i > 0 {
			sayf(cmd.OutOrStdout(), "")
		}
		accepted, err := w.one(cmd, now, m, all[schema.FromAPIVersionAndKind(compose.Text(m, "apiVersion"), compose.Text(m, "kind")).GroupKind()])
		if err != nil {
			return fmt.Errorf("cannot plan %s %s: %w", compose.Text(m, "kind"), compose.Text(m, "metadata", "name"), err)
		}
		if !accepted {
			refused++
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d specs are not accepted", refused, len(manifests))
	}

	return nil
}

// one manifest. It reports whether its spec is accepted.
func (w *planned) one(cmd *cobra.Command, now time.Time, manifest map[string]any, planner planners.Planner) (bool, error) {
	ctx := cmd.Context()
	w.notes = nil
	if compose.Text(manifest, "metadata", "name") == "" {
		return false, errors.New("it has no metadata.name")
	}
	l, err := w.library(ctx, planner)
	if err != nil {
		return false, err
	}
	live, objects, err := w.observed(ctx, manifest)
	if err != nil {
		return false, err
	}
	world, before := steady.New(manifest, now), map[string]map[string]any(nil)
	if live != nil {
		was, will := steady.Edit(live, manifest, objects, now)
		a, err := l.Pass(ctx, was)
		if err != nil {
			return false, err
		}
		world, before = will, a.Objects
	}
	r, err := steady.Run(ctx, world, before, l.Pass)
	if err != nil {
		return false, err
	}
	r.Assumptions = slices.Concat(w.notes, r.Assumptions)
	if live != nil {
		r.Assumptions = append(r.Assumptions, "The API server accepts the edit: whether a field may change once it is set is not looked at.")
	}
	if !w.offline {
		r.Assumptions = append(r.Assumptions, "The function on the cluster has version "+version+", as this program.")
	}
	if err := r.Write(cmd.OutOrStdout()); err != nil {
		return false, err
	}
	c := compose.Condition(r.End.XR, string(v1alpha1.TypeAccepted))

	return compose.Text(c, "status") != string(metav1.ConditionFalse), nil
}

// library with what the cluster says of the platform.
func (w *planned) library(ctx context.Context, planner planners.Planner) (steady.Library, error) {
	l := steady.Library{Planner: planner, Find: w.find}
	environment, err := w.find(ctx, compose.Requirement{Kind: environments, Name: settings.Name})
	if err != nil {
		return l, err
	}
	var from []compose.Object
	if environment != nil {
		from, l.SettingsFrom = append(from, steady.Object(environment)), settings.Name
	} else {
		w.notes = append(w.notes, "No EnvironmentConfig "+settings.Name+" was found: the settings are the built-in ones.")
	}
	l.Settings, l.SettingsErr = settings.Of(release.Release{Version: version}, nil, from...)
	kinds, err := w.find(ctx, compose.Requirement{Kind: environments, Name: optional.Config})
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

// observed is the object that a manifest edits, and what is composed of it; nil when there is none.
func (w *planned) observed(ctx context.Context, manifest map[string]any) (live map[string]any, objects map[string]map[string]any, err error) {
	if w.cluster == nil {
		return nil, nil, nil
	}
	namespace := compose.Text(manifest, "metadata", "namespace")
	if namespace == "" {
		namespace = w.cluster.Namespace
		compose.Map(manifest, "metadata")["namespace"] = namespace
	}
	gvk := schema.FromAPIVersionAndKind(compose.Text(manifest, "apiVersion"), compose.Text(manifest, "kind"))
	live, err = w.get(ctx, compose.Requirement{Kind: gvk, Namespace: namespace, Name: compose.Text(manifest, "metadata", "name")})
	if live == nil || err != nil {
		return nil, nil, err
	}
	objects = map[string]map[string]any{}
	for _, v := range compose.List(live, "spec", "crossplane", "resourceRefs") {
		ref, _ := v.(map[string]any)
		of := compose.Requirement{
			Kind: schema.FromAPIVersionAndKind(compose.Text(ref, "apiVersion"), compose.Text(ref, "kind")), Namespace: namespace, Name: compose.Text(ref, "name"),
		}
		o, err := w.get(ctx, of)
		if err != nil {
			return nil, nil, err
		}
		if name := compose.Text(o, "metadata", "annotations", steady.AnnotationResource); name != "" {
			objects[name] = o
		}
	}

	return live, objects, nil
}

// find an object that a planner looks at: in the file, or on the cluster. One that the user may not read is taken as not there, and that is
// noted.
func (w *planned) find(ctx context.Context, of compose.Requirement) (map[string]any, error) {
	for _, o := range w.documents {
		gk := schema.FromAPIVersionAndKind(compose.Text(o, "apiVersion"), compose.Text(o, "kind")).GroupKind()
		namespace := compose.Text(o, "metadata", "namespace")
		if gk == of.Kind.GroupKind() && compose.Text(o, "metadata", "name") == of.Name && (namespace == "" || of.Namespace == "" || namespace == of.Namespace) {
			return o, nil
		}
	}
	if w.cluster == nil {
		return nil, nil //nolint:nilnil // There is no cluster to look at.
	}
	o, err := w.get(ctx, of)
	if apierrors.IsForbidden(err) {
		note := fmt.Sprintf("You may not read %s %s: it is taken as not there.", of.Kind.Kind, of.Name)
		if !slices.Contains(w.notes, note) {
			w.notes = append(w.notes, note)
		}

		return nil, nil //nolint:nilnil // It is taken as not there.
	}

	return o, err
}

// irregular plurals of kinds.
var irregular = map[string]string{"Analysis": "analyses"}

// get an object, or nil when there is none, or no such kind.
func (w *planned) get(ctx context.Context, of compose.Requirement) (map[string]any, error) {
	resource, _ := meta.UnsafeGuessKindToResource(of.Kind)
	if plural := irregular[of.Kind.Kind]; plural != "" {
		resource.Resource = plural
	}
	u, err := w.cluster.Dynamic.Resource(resource).Namespace(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // There is none.
	case err != nil:
		return nil, fmt.Errorf("cannot read %s %s: %w", of.Kind.Kind, of.Name, err)
	default:
		return u.Object, nil
	}
}

// kindsOf the table of planners, sorted.
func kindsOf(all map[schema.GroupKind]planners.Planner) []string {
	names := make([]string, 0, len(all))
	for gk := range all {
		names = append(names, gk.Kind)
	}
	slices.Sort(names)

	return names
}

// readDocuments of a file with YAML, or of standard input.
func readDocuments(file string, stdin io.Reader) ([]map[string]any, error) {
	var raw []byte
	var err error
	if file == "-" {
		raw, err = io.ReadAll(stdin)
	} else {
		raw, err = os.ReadFile(file) //nolint:gosec // The user names it.
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifest: %w", err)
	}
	var all []map[string]any
	for document := range bytes.SplitSeq(append([]byte("\n"), raw...), []byte("\n---")) {
		var o map[string]any
		if err := yaml.Unmarshal(document, &o); err != nil {
			return nil, fmt.Errorf("cannot read the manifest %s: %w", file, err)
		}
		if o != nil {
			all = append(all, o)
		}
	}
	return all, nil
}
