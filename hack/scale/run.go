// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/capstan-dev/capstan/hack/internal/cluster"
	"github.com/capstan-dev/capstan/hack/internal/controlplane"
	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/netns"
	"github.com/capstan-dev/capstan/hack/internal/network"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// still is how long nothing may have been written because of a change before all is quiet. One more pass follows half a minute after the last change.
const still = 40 * time.Second

// A run measures one phase after the other.
type run struct {
	load

	command runCmd
	// fleets in the order of their creation: what others need comes first, and Algorithms last.
	fleets   []fleet
	dir      string
	sampler  *sampler
	counter  *counter
	progress *progress.Printer
	report   Report
}

func newRun(ctx context.Context, c runCmd, b cluster.Bare, p *progress.Printer) (*run, error) {
	config, err := clientcmd.BuildConfigFromFlags("", b.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read how the API server is reached: %w", err)
	}
	config.Dial = netns.Dialer(b.Namespace, network.ControlPlane+":6443")
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the API server: %w", err)
	}
	fleets, err := c.fleets(ctx, client)
	if err != nil {
		return nil, err
	}
	if c.Databases > 0 {
		if err := newStandIn(client, b.Identities.Cluster, p).start(ctx); err != nil {
			return nil, err
		}
	}
	var composites []string
	for _, f := range fleets {
		if f.composition != "" {
			composites = append(composites, f.at.Resource)
		}
	}
	counted, err := newCounter(filepath.Join(b.Dir, controlplane.AuditLog), composites...)
	if err != nil {
		return nil, err
	}
	r := &run{
		load: load{client: client}, command: c, fleets: fleets, dir: b.Dir, sampler: newSampler(b.Dir, b.Namespace), counter: counted, progress: p,
		report: Report{
			Time: time.Now(), Processors: runtime.NumCPU(), Load: machineLoad(), Noisy: c.Noisy, CoreMemory: c.CoreMemory,
			CoreFlags: c.CoreFlag, ProviderFlags: c.ProviderFlag,
		},
	}
	if c.Late > 0 {
		r.report.Late = c.Late.String()
	}
	go r.sampler.run(ctx)
	return r, nil
}

// fleets of objects that the command asks for. Without an observer nothing is known of them yet.
func (c runCmd) fleets(ctx context.Context, client dynamic.Interface) ([]fleet, error) {
	var all []fleet
	for _, f := range []struct {
		kind kind
		n    int
	}{{kindCredential(), c.Credentials}, {kindBucket(), c.Buckets}, {kindDatabase(), c.Databases}, {kindAlgorithm(), c.Algorithms}} {
		if f.n == 0 {
			continue
		}
		o, err := follow(ctx, client, f.kind.at)
		if err != nil {
			return nil, err
		}
		all = append(all, fleet{kind: f.kind, observer: o, all: names("tenant", f.kind.prefix, f.n, c.PerNamespace)})
	}
	return all, nil
}

// A step of a run is measured as one phase.
type step struct {
	name string
	// ends are the components that the step itself ends, so that they start again.
	ends []string
	// do returns when what was measured had ended; zero means now.
	do func(ctx context.Context, d *durations) (end time.Time, err error)
}

// Names of steps that the report compares or counts apart.
const (
	idle   = "idle"
	calm   = "edits, until applied"
	beside = "the same beside 10 edits a second of the noisy tenant"
)

// all phases.
func (r *run) all(ctx context.Context) error {
	for _, s := range r.steps() {
		if err := r.phase(ctx, s); err != nil {
			return fmt.Errorf("cannot measure phase %q: %w", s.name, err)
		}
	}
	return nil
}

func (r *run) steps() []step {
	algorithms := r.fleets[len(r.fleets)-1]
	noisy := names("noisy", algorithms.prefix, r.command.Noisy, max(r.command.Noisy, 1))
	sample := algorithms.all[:min(len(algorithms.all), 100)]
	all := make([]step, 0, len(r.fleets)+8)
	for i, f := range r.fleets {
		made := f.all
		if i == len(r.fleets)-1 {
			made = append(slices.Clone(made), noisy...)
		}
		all = append(all, step{name: f.title + " created, until all are Ready", do: func(ctx context.Context, d *durations) (time.Time, error) {
			if err := r.create(ctx, f, made, r.command.Rate, d); err != nil {
				return time.Time{}, err
			}
			return r.waited(ctx, f, d)
		}})
	}
	all = append(all,
		step{name: "until quiet", do: func(ctx context.Context, _ *durations) (time.Time, error) {
			if err := r.countObjects(ctx); err != nil {
				return time.Time{}, err
			}
			return r.quiet(ctx)
		}},
		step{name: idle, do: func(ctx context.Context, _ *durations) (time.Time, error) {
			return time.Time{}, sleep(ctx, r.command.Idle)
		}},
		step{name: calm, do: func(ctx context.Context, d *durations) (time.Time, error) { return r.edits(ctx, algorithms, sample, d) }},
	)
	if len(noisy) > 0 {
		all = append(all, step{name: beside, do: func(ctx context.Context, d *durations) (time.Time, error) {
			stop, cancel := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- r.edit(stop, algorithms, noisy, 1_000_000, 10, &durations{}) }()
			end, err := r.edits(ctx, algorithms, sample, d)
			cancel()
			if failed := <-ended; failed != nil && !errors.Is(failed, context.Canceled) {
				return end, failed
			}
			return end, err
		}})
	}
	return append(all,
		step{name: "until quiet again", do: func(ctx context.Context, _ *durations) (time.Time, error) { return r.quiet(ctx) }},
		step{
			name: "core, function and provider restarted, until quiet", ends: []string{core, function, provider},
			do: func(ctx context.Context, _ *durations) (time.Time, error) {
				r.counter.forget()
				if err := restart(r.dir, core, function, provider); err != nil {
					return time.Time{}, err
				}
				return r.quiet(ctx)
			},
		},
		step{
			name: "new function and revisions of Compositions, until quiet", ends: []string{function},
			do: func(ctx context.Context, _ *durations) (time.Time, error) {
				failed := restart(r.dir, function)
				for _, f := range r.fleets {
					if f.composition != "" {
						failed = errors.Join(failed, r.revise(ctx, f))
					}
				}
				if failed != nil {
					return time.Time{}, failed
				}
				return r.quiet(ctx)
			},
		},
		step{name: "all deleted, until gone", do: func(ctx context.Context, _ *durations) (time.Time, error) {
			return time.Time{}, r.removeAll(ctx, noisy)
		}},
	)
}

// removeAll objects of all fleets, and of the noisy tenant.
func (r *run) removeAll(ctx context.Context, noisy []name) error {
	for _, f := range r.fleets {
		if err := r.remove(ctx, f, append(slices.Clone(f.all), noisy...)); err != nil {
			return err
		}
	}
	return r.until(ctx, "all are gone", func() (bool, string) {
		var left []string
		for _, f := range r.fleets {
			if n, _ := f.count(); n > 0 {
				left = append(left, fmt.Sprintf("%d %s", n, f.title))
			}
		}
		return len(left) == 0, strings.Join(left, ", ") + " are left"
	})
}

// countObjects that an object of each fleet is composed of.
func (r *run) countObjects(ctx context.Context) error {
	for _, f := range r.fleets {
		m, err := f.made(ctx, r.client)
		if err != nil {
			return err
		}
		r.report.Made = append(r.report.Made, m)
	}
	return nil
}

// phase measures a step.
func (r *run) phase(ctx context.Context, s step) error {
	if err := r.counter.read(); err != nil {
		return err
	}
	r.counter.take()
	r.sampler.processes()
	r.sampler.take()
	begin, d := time.Now(), &durations{}
	end, failed := s.do(ctx, d)
	now := time.Now()
	if end.IsZero() {
		end = now
	}
	if err := r.counter.read(); err != nil {
		return errors.Join(failed, err)
	}
	r.sampler.processes()
	r.sampler.metrics(ctx)
	use, breaks := r.sampler.take()
	counted := r.counter.take()
	all, _ := counted.of(core, provider)
	p := Phase{
		Name: s.name, Ended: s.ends, Seconds: max(end.Sub(begin), 0).Seconds(), Load: machineLoad(), Use: use, Top: slices.Concat(counted.top(core, 15), counted.top(provider, 15)), Breaks: breaks,
		Requests: map[string]int{}, Writes: map[string]int{},
		Waits: len(d.all), P50: d.quantile(0.5).Seconds(), P99: d.quantile(0.99).Seconds(),
	}
	for _, by := range []string{core, provider} {
		p.Requests[by], p.Writes[by] = counted.of(by)
	}
	if s.name == idle {
		p.PerHour = perHour(all, r.report.composites(), now.Sub(begin))
	}
	r.report.Phases = append(r.report.Phases, p)
	r.progress.Sayf("%s: %.0f s, %d requests, core %.0f s and %.0f MiB", s.name, p.Seconds, all, use[core].CPU, use[core].Peak)
	return failed
}

// edits of some Algorithms, four a second.
func (r *run) edits(ctx context.Context, f fleet, sample []name, d *durations) (time.Time, error) {
	if err := r.edit(ctx, f, sample, 2*len(sample), 4, d); err != nil {
		return time.Time{}, err
	}
	return r.waited(ctx, f, d)
}

// waited until no wait is missing. The end is now.
func (r *run) waited(ctx context.Context, f fleet, d *durations) (time.Time, error) {
	return time.Time{}, r.until(ctx, "each has come so far", func() (bool, string) {
		all, ready := f.count()
		return d.missing() == 0, fmt.Sprintf("%d are missing; %d of %d are Ready", d.missing(), ready, all)
	})
}

// quiet waits until Crossplane and the provider have had no news for a while, and returns when that began.
func (r *run) quiet(ctx context.Context) (time.Time, error) {
	begin := time.Now()
	err := r.until(ctx, "all is quiet", func() (bool, string) {
		since := time.Since(r.counter.lastNews())
		return since > still && time.Since(begin) > still, fmt.Sprintf("the last news is %s ago", since.Round(time.Second))
	})
	return r.counter.lastNews(), err
}

// restart components as a new version does: they get a signal to end, and start again.
func restart(dir string, components ...string) error {
	for _, name := range components {
		p, err := machine.Running(dir, name)
		if err != nil {
			return err
		}
		if err := p.Signal(syscall.SIGTERM); err != nil {
			return err
		}
	}
	return nil
}

// until is so, as long as that may take.
func (r *run) until(ctx context.Context, what string, so func() (bool, string)) error {
	said := time.Now()
	for end := time.Now().Add(r.command.Timeout); ; {
		if err := r.counter.read(); err != nil {
			return err
		}
		done, state := so()
		if done {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("cannot see within %s that %s: %s", r.command.Timeout, what, state)
		}
		if time.Since(said) > 30*time.Second {
			said = time.Now()
			r.progress.Sayf("waiting until %s: %s", what, state)
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
