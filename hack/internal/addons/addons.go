// SPDX-License-Identifier: Apache-2.0

// Package addons installs what a bare Kubernetes lacks. An add-on is a small named stage in a file of its own; Core, Rest and
// Optional are the table of contents.
package addons

import (
	"context"
	"fmt"
	"slices"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// A Stage installs one add-on. Apply and WaitReady may be called again on a cluster that has the add-on already.
type Stage interface {
	// Name is one word for people.
	Name() string
	// Tools names what has to be in the cache of programs before Apply.
	Tools() []string
	// Apply asks for the add-on and returns without waiting for it. Stages before it have been applied.
	Apply(ctx context.Context, env *Env) error
	// WaitReady returns when the add-on does its work.
	WaitReady(ctx context.Context, env *Env) error
}

// Core returns what a first Algorithm needs, in the order in which it is applied.
func Core() []Stage {
	return []Stage{
		registry{}, // images for all others
		coreDNS{},
		crossplane{},
	}
}

// Rest returns the other add-ons in the order in which they are applied: what rollouts need, then what databases need.
func Rest() []Stage {
	return []Stage{
		networkPolicy{},
		storage{},
		growingStorage{},
		metricsServer{},      // takes longest to become ready: the rest starts meanwhile
		prometheusOperator{}, // its pods come one after the other
		prometheus{},
		prometheusAdapter{},
		traefik{},
		outside{},
		s3{},
		mlflow{},
		certManager{},
	}
}

// Optional returns the add-ons that a cluster has only when they are named: each is for the one test that needs it.
func Optional() []Stage { return []Stage{kueue{}, snapshots{}} }

// Named returns the stages of these names, in their order.
func Named(names ...string) ([]Stage, error) {
	all := slices.Concat(Core(), Rest(), Optional())
	var found []Stage
	for _, name := range names {
		i := slices.IndexFunc(all, func(s Stage) bool { return s.Name() == name })
		if i < 0 {
			return nil, fmt.Errorf("cannot find an add-on %q", name)
		}
		found = append(found, all[i])
	}
	return found, nil
}

// Tools names the programs that stages need, in their order.
func Tools(stages []Stage) []string {
	names := make([]string, 0, len(stages))
	for _, s := range stages {
		names = append(names, s.Tools()...)
	}
	return names
}

// Install applies stages, each as soon as its programs are there, then waits for each: their pods start side by side.
func Install(ctx context.Context, env *Env, stages []Stage, programs *build.Queue, p *progress.Printer) error {
	for _, s := range stages {
		if err := programs.Wait(ctx, s.Tools()...); err != nil {
			return err
		}
		if err := p.Step("apply "+s.Name(), nil, func() error { return s.Apply(ctx, env) }); err != nil {
			return fmt.Errorf("cannot apply add-on %q: %w", s.Name(), err)
		}
	}
	for _, s := range stages {
		if err := p.Step("ready "+s.Name(), nil, func() error { return s.WaitReady(ctx, env) }); err != nil {
			return fmt.Errorf("cannot see add-on %q become ready: %w", s.Name(), err)
		}
	}
	return nil
}
