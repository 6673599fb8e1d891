// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/internal/plan"
	"github.com/capstan-dev/capstan/plugin/internal/cluster"
)

// A planned manifest, and where its surroundings are from.
type planned struct {
	files   []string
	offline bool
	now     string

	cluster   *cluster.Cluster
	documents []map[string]any
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
	all := plan.All(version)
	var manifests []map[string]any
	for _, o := range w.documents {
		if _, ours := all[plan.GroupKind(o)]; ours {
			manifests = append(manifests, o)
		}
	}
	if len(manifests) == 0 {
		return fmt.Errorf("there is no manifest of Capstan's in %s: it has to be of kind %s", strings.Join(w.files, ", "), strings.Join(plan.Kinds(version), ", "))
	}
	refused := 0
	for i, m := range manifests {
		if i > 0 {
			sayf(cmd.OutOrStdout(), "")
		}
		accepted, err := w.one(cmd, now, m)
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
func (w *planned) one(cmd *cobra.Command, now time.Time, manifest map[string]any) (bool, error) {
	around := plan.Surroundings{Version: version, Now: now, Documents: w.documents}
	if w.cluster != nil {
		around.Get = w.get
		if meta := compose.Map(manifest, "metadata"); meta != nil && compose.Text(meta, "namespace") == "" {
			meta["namespace"] = w.cluster.Namespace
		}
	}
	r, err := around.Of(cmd.Context(), manifest)
	if err != nil {
		return false, err
	}
	if r.Edit {
		r.Assumptions = append(r.Assumptions, "The API server accepts the edit: whether a field may change once it is set is not looked at.")
	}
	if !w.offline {
		r.Assumptions = append(r.Assumptions, "The function on the cluster has version "+version+", as this program.")
	}
	if err := r.Write(cmd.OutOrStdout()); err != nil {
		return false, err
	}

	return r.Accepted(), nil
}

// irregular plurals of kinds.
var irregular = map[string]string{"Analysis": "analyses"}

// get an object, or nil when there is none, or no such kind.
func (w *planned) get(ctx context.Context, of compose.Requirement) (map[string]any, error) {
	resource, _ := meta.UnsafeGuessKindToResource(of.Kind)
	if plural := irregular[of.Kind.Kind]; plural != "" {
		resource.Resource = plural
	}
	if of.Label != (compose.Label{}) {
		l, err := w.cluster.Dynamic.Resource(resource).Namespace(of.Namespace).List(ctx, metav1.ListOptions{LabelSelector: of.Label.Key + "=" + of.Label.Value})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("cannot list %ss: %w", of.Kind.Kind, err)
		}
		if l == nil || len(l.Items) == 0 {
			return nil, nil //nolint:nilnil // There is none.
		}
		return l.Items[0].Object, nil
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
