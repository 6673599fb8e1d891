// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/internal/act"
	"github.com/capstan-dev/capstan/internal/conditions"
	"github.com/capstan-dev/capstan/plugin/internal/cluster"
)

// An edit is what all acts have in common.
type edit struct {
	yes, print, wait bool
	timeout          time.Duration
}

func (e *edit) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&e.yes, "yes", "y", false, "Do not ask")
	flags.BoolVar(&e.print, "print", false, "Print the change for Git, and change nothing")
	flags.BoolVar(&e.wait, "wait", false, "Wait for the outcome: exit code 1 when it failed, 2 when it did not come in time")
	flags.DurationVar(&e.timeout, "timeout", 15*time.Minute, "How long --wait waits")
}

// An edited object.
type edited interface {
	GetName() string
	GetNamespace() string
	GetResourceVersion() string
	GetAnnotations() map[string]string
	GetLabels() map[string]string
}

// A target is an object to edit, and how it is read.
type target[T edited] struct {
	kind     string
	resource schema.GroupVersionResource
	name     string
	read     func(ctx context.Context, name string) (T, error)
}

// attempts at an edit of an object that others edit at the same time.
const attempts = 5

// carryOut an act: decide, report what will happen, ask, patch, and wait with --wait.
func carryOut[T edited](cmd *cobra.Command, c *cluster.Cluster, e *edit, t target[T], decide func(T) (act.Plan[T], error)) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	for attempt := 1; ; attempt++ {
		object, err := t.read(ctx, t.name)
		if err != nil {
			return err
		}
		plan, err := decide(object)
		if err != nil {
			return fmt.Errorf("cannot %s %s %s: %w", cmd.Name(), strings.ToLower(t.kind), t.name, err)
		}
		if plan.Done != "" {
			sayf(out, "Nothing to do for %s %s: %s.", t.kind, t.name, plan.Done)

			return nil
		}
		if e.print {
			return printed(out, t, object, plan)
		}
		if attempt == 1 {
			if err := agree(cmd, e, t.kind, object, plan.Words, plan.Ask); err != nil {
				return err
			}
		}
		version := ""
		if plan.Replaces {
			version = object.GetResourceVersion()
		}
		patch, err := plan.Patch(version)
		if err != nil {
			return err
		}
		err = c.Patch(ctx, t.resource, t.name, patch)
		if apierrors.IsConflict(err) && attempt < attempts {
			continue
		}
		if err != nil {
			return err
		}
		sayf(out, "%s %s is edited.", t.kind, t.name)
		if !e.wait {
			return nil
		}

		return await(ctx, out, e, t, plan)
	}
}

func sayf(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format+"\n", args...)
}

// printed is the change for a manifest in Git.
func printed[T edited](out io.Writer, t target[T], object T, plan act.Plan[T]) error {
	text, err := plan.Manifest()
	if err != nil {
		return err
	}
	for _, w := range plan.Words {
		sayf(out, "# %s", w)
	}
	sayf(out, "# Merge this into the manifest of %s %s of namespace %s:", t.kind, object.GetName(), object.GetNamespace())
	_, err = io.WriteString(out, text)

	return err //nolint:wrapcheck // Of the terminal.
}

// managers are the marks of tools that revert edits that Git does not have.
var managers = map[string]string{
	"argocd.argoproj.io/tracking-id":   "Argo CD",
	"argocd.argoproj.io/instance":      "Argo CD",
	"kustomize.toolkit.fluxcd.io/name": "Flux",
	"helm.toolkit.fluxcd.io/name":      "Flux",
}

// agree to what will happen. Without a terminal, --yes stands for the answer.
func agree(cmd *cobra.Command, e *edit, kind string, object edited, words []string, ask bool) error {
	out := cmd.OutOrStdout()
	for _, w := range words {
		sayf(out, "%s", w)
	}
	for mark, tool := range managers {
		_, annotated := object.GetAnnotations()[mark]
		_, labelled := object.GetLabels()[mark]
		if annotated || labelled {
			sayf(out, "%s manages this object and may revert the edit: --print shows the change for Git.", tool)

			break
		}
	}
	if !ask || e.yes {
		return nil
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if ok && !term.IsTerminal(int(in.Fd())) {
		return fmt.Errorf("cannot ask whether to %s %s %s: there is no terminal: add --yes", cmd.Name(), strings.ToLower(kind), object.GetName())
	}
	_, _ = fmt.Fprintf(out, "Continue with %s of %s %s/%s? Type yes: ", cmd.Name(), kind, object.GetNamespace(), object.GetName())
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && answer == "" {
		return errors.New("nothing was changed: no answer was given")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	default:
		return errors.New("nothing was changed")
	}
}

// await the outcome, and print what it waits for whenever that changes.
func await[T edited](ctx context.Context, out io.Writer, e *edit, t target[T], plan act.Plan[T]) error {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, e.timeout, exit{code: late, err: fmt.Errorf("no outcome within %s", e.timeout)})
	defer cancel()
	last := ""
	for {
		object, err := t.read(ctx, t.name)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			// The API server may be away for a moment, which is no outcome.
			last = progress(out, began, last, err.Error())
		default:
			p := plan.Outcome(object)
			last = progress(out, began, last, p.Message)
			if p.Failed {
				return fmt.Errorf("it failed: %s", p.Message)
			}
			if p.Done {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			if e := (exit{}); errors.As(context.Cause(ctx), &e) {
				return exit{code: e.code, err: fmt.Errorf("%w: %s", e.err, last)}
			}

			return fmt.Errorf("it continues, and nothing waits for it now: %s", last)
		case <-time.After(every):
		}
	}
}

func progress(out io.Writer, began time.Time, last, message string) string {
	message = conditions.Visible(message)
	if message != last {
		sayf(out, "%6.1f s  %s", time.Since(began).Seconds(), message)
	}

	return message
}

// algorithmActs are the commands for the rollout of an Algorithm.
func (p *plugin) algorithmActs() []*cobra.Command {
	var weight int32
	approve := p.algorithmAct("approve", "Approve the next share of traffic of the revision under test", func(a *v1alpha1.Algorithm) (act.Plan[*v1alpha1.Algorithm], error) { return act.Approve(a, weight) })
	approve.Flags().Int32Var(&weight, "weight", 0, "Approve shares up to this percentage; 100 is promotion. Default: the next one")

	return []*cobra.Command{
		p.algorithmAct("pause", "Hold the rollout at its share of traffic", act.Pause),
		p.algorithmAct("resume", "Let a paused rollout continue", act.Resume),
		approve,
		p.algorithmAct("promote", "Send all traffic to the revision under test, without evidence", act.Promote),
		p.algorithmAct("abort", "Roll the revision under test back at once", act.Abort),
		p.algorithmAct("retry", "Try a revision again that was rolled back", act.Retry),
	}
}

func (p *plugin) algorithmAct(name, short string, decide func(*v1alpha1.Algorithm) (act.Plan[*v1alpha1.Algorithm], error)) *cobra.Command {
	of := func(c *cluster.Cluster, name string) target[*v1alpha1.Algorithm] {
		return target[*v1alpha1.Algorithm]{kind: "Algorithm", resource: cluster.Algorithms, name: name, read: c.Algorithm}
	}

	return actCommand(p, algorithm, of, decide, cobra.Command{Use: name + " ALGORITHM", Short: short, GroupID: groupAlgorithm})
}

// actCommand is the command of an act on an object of a kind.
func actCommand[T edited](p *plugin, k kind, of func(*cluster.Cluster, string) target[T], decide func(T) (act.Plan[T], error), base cobra.Command) *cobra.Command {
	var e edit
	cmd := &base
	cmd.Args, cmd.ValidArgsFunction = cobra.RangeArgs(1, 2), p.names(k)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := one(args, k)
		if err != nil {
			return err
		}
		c, err := p.connect()
		if err != nil {
			return err
		}

		return carryOut(cmd, c, &e, of(c, name), decide)
	}
	e.bind(cmd)

	return cmd
}

// databaseActs are the commands that operate a Database.
func (p *plugin) databaseActs() []*cobra.Command {
	type planned = act.Plan[*v1alpha1.Database]
	var to, member string
	var m act.Moment
	var keep time.Duration
	ids := map[string]*string{}
	// Each request has an id, which differs from those before. It is the same for all attempts at one edit.
	id := func(name string) string {
		if *ids[name] == "" {
			*ids[name] = act.NewID(p.now())
		}

		return *ids[name]
	}
	with := func(cmd *cobra.Command) *cobra.Command {
		ids[cmd.Name()] = cmd.Flags().String("id", "", "Id of the request; each is carried out once. Default: one with the present time")

		return cmd
	}

	switchover := with(p.databaseAct("switchover", "Make another member the leader", func(d *v1alpha1.Database) (planned, error) {
		return act.Switchover(d, to, id("switchover"), p.now())
	}))
	switchover.Flags().StringVar(&to, "to", "", "The next leader. Default: a member that has every commit")
	restore := with(p.databaseAct("restore", "Bring the data of an earlier moment back, in place", func(d *v1alpha1.Database) (planned, error) {
		return act.Restore(d, m, keep, id("restore"), p.now())
	}))
	restore.Flags().StringVar(&m.At, "at", "", "The moment, for instance 2026-11-21T08:59:00Z")
	restore.Flags().StringVar(&m.Point, "point", "", "The moment by the name of its restore point")
	restore.Flags().BoolVar(&m.Latest, "latest", false, "The latest moment in the archive")
	restore.Flags().DurationVar(&keep, "keep-old-for", 0, "How long the present data is kept for undo. Default: 24h")
	reinitialize := with(p.databaseAct("reinitialize", "Copy the data of a standby again", func(d *v1alpha1.Database) (planned, error) {
		return act.Reinitialize(d, member, id("reinitialize"))
	}))
	reinitialize.Flags().StringVar(&member, "member", "", "The standby")
	_ = reinitialize.MarkFlagRequired("member")
	fence := with(p.databaseAct("fence", "Keep a standby stopped, for a look at its data", func(d *v1alpha1.Database) (planned, error) {
		return act.Fence(d, member, id("fence"))
	}))
	fence.Flags().StringVar(&member, "member", "", "The standby")
	_ = fence.MarkFlagRequired("member")
	for cmd, flag := range map[*cobra.Command]string{switchover: "to", reinitialize: "member", fence: "member"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, p.members)
	}

	return []*cobra.Command{
		switchover,
		with(p.databaseAct("backup", "Take a backup at once", func(d *v1alpha1.Database) (planned, error) { return act.Backup(d, id("backup")) })),
		restore,
		p.databaseAct("undo", "Go back to the data from before the latest restore", func(d *v1alpha1.Database) (planned, error) { return act.Undo(d, p.now()) }),
		p.databaseAct("hibernate", "Stop all members and keep the data", func(d *v1alpha1.Database) (planned, error) { return act.Hibernate(d, p.now()) }),
		p.databaseAct("wake", "Start a hibernated Database", act.Wake),
		with(p.databaseAct("rotate", "Replace the logins of consumers", func(d *v1alpha1.Database) (planned, error) { return act.Rotate(d, id("rotate")) })),
		reinitialize,
		fence,
		p.databaseAct("unfence", "Start a member again that is kept stopped", act.Unfence),
	}
}

func (p *plugin) databaseAct(name, short string, decide func(*v1alpha1.Database) (act.Plan[*v1alpha1.Database], error)) *cobra.Command {
	of := func(c *cluster.Cluster, name string) target[*v1alpha1.Database] {
		return target[*v1alpha1.Database]{kind: "Database", resource: cluster.Databases, name: name, read: c.Database}
	}

	return actCommand(p, database, of, decide, cobra.Command{Use: name + " DATABASE", Short: short, GroupID: groupDatabase})
}
