// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/internal/conditions"
	"github.com/capstan-dev/capstan/plugin/internal/cluster"
)

// A wanted preview is what the flags ask for.
type wanted struct {
	owner, ttl, idleAfter string

	algorithm, image, host string
	replicas               int32
	env                    map[string]string

	database, data, at, storage string

	remove, print, noWait bool
	timeout               time.Duration
}

func (p *plugin) preview() *cobra.Command {
	var w wanted
	cmd := &cobra.Command{
		Use: "preview NAME", Short: "Make or update a Preview, wait until it is ready, and print its URL; --delete removes it",
		Long: "Make a Preview from flags, or update the one of this name, wait until it is ready, and print its URL.\n\n" +
			"Only the URL is written to standard output, so that a pipeline can use it. A field whose flag is left out in a later call gets its\n" +
			"default again. Exit code 1: it cannot become ready as it is, for instance because the original does not allow previews; 2: it was\n" +
			"not ready in time. --delete succeeds also when there is none.",
		Example: "  kubectl capstan preview reco-pr-123 --algorithm reco --image registry.example.org/reco:pr-123 --database orders-db --ttl 24h\n" +
			"  kubectl capstan preview reco-pr-123 --delete",
		GroupID: groupPreview, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.connect()
			if err != nil {
				return err
			}
			if w.remove {
				return w.delete(cmd, c, args[0])
			}
			return w.apply(cmd, c, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&w.algorithm, "algorithm", "", "Algorithm to copy")
	flags.StringVar(&w.image, "image", "", "Image of the copy. Default: the original's")
	flags.Int32Var(&w.replicas, "replicas", 1, "Replicas of the copy")
	flags.StringToStringVar(&w.env, "env", nil, "Variables of the copy, NAME=VALUE. Can be repeated")
	flags.StringVar(&w.host, "host", "", "Host name outside the cluster. Default: one below the platform's domain")
	flags.StringVar(&w.database, "database", "", "Database to copy")
	flags.StringVar(&w.data, "data", string(v1alpha1.PreviewLatest), "Data of the copy: Empty or LatestBackup")
	flags.StringVar(&w.at, "at", "", "Moment of the data, such as 2026-11-26T08:59:00Z, instead of --data")
	flags.StringVar(&w.storage, "storage", "", "Size of the volume of the copy. Default: the original's")
	flags.StringVar(&w.owner, "owner", "", "The person to ask about it")
	flags.StringVar(&w.ttl, "ttl", "", "How long it lives from its creation. Default: 48h, or less where the platform says so")
	flags.StringVar(&w.idleAfter, "idle-after", "", "Let the Algorithm sleep after that time without a request")
	flags.BoolVar(&w.remove, "delete", false, "Delete the Preview, and wait until its copies are gone")
	flags.BoolVar(&w.print, "print", false, "Print the manifest for Git, and change nothing")
	flags.BoolVar(&w.noWait, "no-wait", false, "Do not wait until it is ready")
	flags.DurationVar(&w.timeout, "timeout", 15*time.Minute, "How long to wait")
	cmd.MarkFlagsMutuallyExclusive("data", "at")
	cmd.MarkFlagsMutuallyExclusive("delete", "print")

	return cmd
}

// spec of a Preview as a manifest has it.
func (w *wanted) spec() (map[string]any, error) {
	if w.algorithm == "" && w.database == "" {
		return nil, errors.New("name an original: add --algorithm, --database or both")
	}
	spec := map[string]any{}
	set(spec, "owner", w.owner)
	set(spec, "ttl", w.ttl)
	set(spec, "idleAfter", w.idleAfter)
	if w.algorithm != "" {
		a := map[string]any{"of": w.algorithm, "replicas": int64(w.replicas)}
		set(a, "image", w.image)
		set(a, "host", w.host)
		var env []any
		for _, name := range slices.Sorted(maps.Keys(w.env)) {
			env = append(env, map[string]any{"name": name, "value": w.env[name]})
		}
		if env != nil {
			a["env"] = env
		}
		spec["algorithm"] = a
	} else if w.image != "" || w.host != "" || len(w.env) > 0 || w.idleAfter != "" {
		return nil, errors.New("--image, --host, --env and --idle-after are of an Algorithm: add --algorithm")
	}
	if w.database != "" {
		d := map[string]any{"of": w.database, "data": w.data}
		if w.at != "" {
			d["data"], d["at"] = string(v1alpha1.PreviewMoment), w.at
		}
		if w.storage != "" {
			if _, err := resource.ParseQuantity(w.storage); err != nil {
				return nil, fmt.Errorf("cannot use --storage %q: write a size such as 20Gi: %w", w.storage, err)
			}
			d["storage"] = w.storage
		}
		spec["database"] = d
	} else if w.at != "" || w.storage != "" {
		return nil, errors.New("--at and --storage are of a Database: add --database")
	}

	return spec, nil
}

func set(m map[string]any, key, value string) {
	if value != "" {
		m[key] = value
	}
}

// apply the Preview, wait for it, and print its URL.
func (w *wanted) apply(cmd *cobra.Command, c *cluster.Cluster, name string) error {
	spec, err := w.spec()
	if err != nil {
		return err
	}
	manifest := map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Preview",
		"metadata": map[string]any{"name": name, "namespace": c.Namespace}, "spec": spec,
	}
	if w.print {
		text, err := yaml.Marshal(manifest)
		if err != nil {
			return fmt.Errorf("cannot write the manifest: %w", err)
		}
		_, err = cmd.OutOrStdout().Write(text)

		return err //nolint:wrapcheck // Of the terminal.
	}
	generation, err := c.Apply(cmd.Context(), cluster.Previews, manifest)
	if err != nil {
		return err
	}
	sayf(cmd.ErrOrStderr(), "Preview %s/%s is applied.", c.Namespace, name)
	if w.noWait {
		return nil
	}
	var ready *v1alpha1.Preview
	err = w.await(cmd, func(ctx context.Context) (string, bool, error) {
		pv, err := c.Preview(ctx, name)
		if err != nil {
			return err.Error(), false, nil //nolint:nilerr // It is shown, and tried again until the time is up.
		}
		ready = pv

		return previewState(pv, generation)
	})
	if err != nil {
		return err
	}

	return reportPreview(cmd.OutOrStdout(), cmd.ErrOrStderr(), ready)
}

// reportPreview prints the URL alone on standard output.
func reportPreview(out, diagnostics io.Writer, pv *v1alpha1.Preview) error {
	for _, s := range pv.Status.ConnectionSecrets {
		sayf(diagnostics, "Secret %s connects consumer %s.", s.Secret, s.Consumer)
	}
	if pv.Status.ExpiresAt != nil {
		sayf(diagnostics, "It lives until %s.", pv.Status.ExpiresAt.UTC().Format(time.RFC3339))
	}
	if pv.Status.URL == "" {
		return nil
	}
	_, err := fmt.Fprintln(out, pv.Status.URL)

	return err //nolint:wrapcheck // Of the terminal.
}

// previewState says where a Preview stands, whether it is ready, and whether it cannot become so. What is reported counts once it is about
// the latest edit.
func previewState(pv *v1alpha1.Preview, generation int64) (message string, done bool, failure error) {
	if observed := pv.Status.GetCondition(xpv2.TypeSynced).ObservedGeneration; observed != 0 && observed < generation || pv.Status.Phase == "" {
		return "Crossplane has not read it yet", false, nil
	}
	for _, t := range []xpv2.ConditionType{v1alpha1.TypeAccepted, v1alpha1.TypeBaseAllowed, v1alpha1.TypeComposed} {
		c := pv.Status.GetCondition(t)
		if c.Status == "False" && c.Reason != v1alpha1.ReasonComposing {
			return "", false, fmt.Errorf("%s is False (%s): %s", t, c.Reason, conditions.Visible(c.Message))
		}
	}
	c := pv.Status.GetCondition(v1alpha1.TypePreviewReady)
	switch pv.Status.Phase {
	case v1alpha1.PreviewExpired, v1alpha1.PreviewExpiring:
		if pv.Status.ExpiredAt != nil {
			return "", false, fmt.Errorf("its time was up at %s: call again with a longer --ttl, or delete it first", pv.Status.ExpiredAt.UTC().Format(time.RFC3339))
		}
		return "former copies are being removed", false, nil
	case v1alpha1.PreviewReady, v1alpha1.PreviewAsleep:
		if pv.Spec.Algorithm == nil || pv.Status.URL != "" {
			return "ready", true, nil
		}
		return "waits until its route is accepted", false, nil
	default:
		return c.Message, false, nil
	}
}

// delete the Preview, and wait until what it consists of is gone.
func (w *wanted) delete(cmd *cobra.Command, c *cluster.Cluster, name string) error {
	found, err := c.Delete(cmd.Context(), cluster.Previews, name)
	if err != nil {
		return err
	}
	if !found {
		sayf(cmd.ErrOrStderr(), "There is no Preview %s/%s.", c.Namespace, name)

		return nil
	}
	sayf(cmd.ErrOrStderr(), "Preview %s/%s is deleted.", c.Namespace, name)
	if w.noWait {
		return nil
	}

	return w.await(cmd, func(ctx context.Context) (string, bool, error) {
		selector := v1alpha1.LabelPreview + "=" + name
		var left []string
		algorithms, err := cluster.List[v1alpha1.Algorithm](ctx, c, cluster.Algorithms, selector)
		if err != nil {
			return err.Error(), false, nil //nolint:nilerr // It is shown, and tried again until the time is up.
		}
		databases, err := cluster.List[v1alpha1.Database](ctx, c, cluster.Databases, selector)
		if err != nil {
			return err.Error(), false, nil //nolint:nilerr // It is shown, and tried again until the time is up.
		}
		for _, a := range algorithms {
			left = append(left, "Algorithm "+a.Name)
		}
		for _, d := range databases {
			left = append(left, "Database "+d.Name)
		}
		if len(left) == 0 {
			return "its copies are gone", true, nil
		}

		return "waits for the end of " + strings.Join(left, " and "), false, nil
	})
}

// await an outcome, and report what it waits for whenever that changes.
func (w *wanted) await(cmd *cobra.Command, look func(context.Context) (message string, done bool, failure error)) error {
	began, last := time.Now(), ""
	ctx, cancel := context.WithTimeout(cmd.Context(), w.timeout)
	defer cancel()
	for {
		message, done, failure := look(ctx)
		if failure != nil {
			return failure
		}
		if ctx.Err() == nil {
			last = progress(cmd.ErrOrStderr(), began, last, message)
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			if cmd.Context().Err() != nil {
				return fmt.Errorf("it continues, and nothing waits for it now: %s", last)
			}
			return exit{code: late, err: fmt.Errorf("no outcome within %s: %s", w.timeout, last)}
		case <-time.After(every):
		}
	}
}
