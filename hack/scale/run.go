// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/capstan-dev/capstan/hack/internal/cluster"
	"github.com/capstan-dev/capstan/hack/internal/controlplane"
	"github.com/capstan-dev/capstan/hack/internal/machine"
	"github.com/capstan-dev/capstan/hack/internal/netns"
	"github.com/capstan-dev/capstan/hack/internal/network"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// still is how long nothing may have been written before all is quiet. One more pass follows half a minute after the last change.
const still = 40 * time.Second

// A run measures one phase after the other.
type run struct {
	load

	command  runCmd
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
	f, err := follow(ctx, client, algorithms)
	if err != nil {
		return nil, err
	}
	counted, err := newCounter(filepath.Join(b.Dir, controlplane.AuditLog))
	if err != nil {
		return nil, err
	}
	r := &run{
		load: load{client: client, observer: f}, command: c, dir: b.Dir, sampler: newSampler(b.Dir, b.Namespace), counter: counted, progress: p,
		report: Report{
			Time: time.Now(), Processors: runtime.NumCPU(), Load: machineLoad(), Algorithms: c.Algorithms, Noisy: c.Noisy,
			CoreFlags: c.CoreFlag, ProviderFlags: c.ProviderFlag,
		},
	}
	if c.Late > 0 {
		r.report.Late = c.Late.String()
	}
	go r.sampler.run(ctx)
	return r, nil
}

// all phases.
func (r *run) all(ctx context.Context) error {
	tenants, noisy := names("tenant", r.command.Algorithms, r.command.PerNamespace), names("noisy", r.command.Noisy, max(r.command.Noisy, 1))
	sample := tenants[:min(len(tenants), 100)]
	for _, p := range []struct {
		name string
		skip bool
		do   func(ctx context.Context, d *durations) (end time.Time, err error)
	}{
		{name: "until all are Ready", do: func(ctx context.Context, d *durations) (time.Time, error) {
			if err := r.create(ctx, append(tenants, noisy...), r.command.Rate, d); err != nil {
				return time.Time{}, err
			}
			return r.waited(ctx, d)
		}},
		{name: "until quiet", do: func(ctx context.Context, _ *durations) (time.Time, error) { return r.quiet(ctx) }},
		{name: idle, do: func(ctx context.Context, _ *durations) (time.Time, error) {
			return time.Time{}, sleep(ctx, r.command.Idle)
		}},
		{name: "edits, until applied", do: func(ctx context.Context, d *durations) (time.Time, error) {
			return r.edits(ctx, sample, d)
		}},
		{name: "the same beside 10 edits a second of the noisy tenant", skip: len(noisy) == 0, do: func(ctx context.Context, d *durations) (time.Time, error) {
			stop, cancel := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- r.edit(stop, noisy, 1_000_000, 10, &durations{}) }()
			end, err := r.edits(ctx, sample, d)
			cancel()
			if failed := <-ended; failed != nil && !errors.Is(failed, context.Canceled) {
				return end, failed
			}
			return end, err
		}},
		{name: "until quiet again", do: func(ctx context.Context, _ *durations) (time.Time, error) { return r.quiet(ctx) }},
		{name: "core, function and provider restarted, until quiet", do: func(ctx context.Context, _ *durations) (time.Time, error) {
			if err := restart(r.dir, core, function, provider); err != nil {
				return time.Time{}, err
			}
			return r.quiet(ctx)
		}},
		{name: "new function and revision of the Composition, until quiet", do: func(ctx context.Context, _ *durations) (time.Time, error) {
			if err := errors.Join(restart(r.dir, function), r.revise(ctx)); err != nil {
				return time.Time{}, err
			}
			return r.quiet(ctx)
		}},
		{name: "all deleted, until gone", do: func(ctx context.Context, _ *durations) (time.Time, error) {
			if err := r.remove(ctx, append(tenants, noisy...)); err != nil {
				return time.Time{}, err
			}
			return time.Time{}, r.until(ctx, "all are gone", func() (bool, string) {
				n, _ := r.observer.count()
				return n == 0, fmt.Sprintf("%d are left", n)
			})
		}},
	} {
		if p.skip {
			continue
		}
		if err := r.phase(ctx, p.name, p.do); err != nil {
			return fmt.Errorf("cannot measure phase %q: %w", p.name, err)
		}
		if r.report.Objects == 0 {
			if err := r.countObjects(ctx, tenants[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// idle is the phase in which no tenant does anything.
const idle = "idle"

// phase measures what do does. It lasted until the end that do returns, or until now.
func (r *run) phase(ctx context.Context, name string, do func(context.Context, *durations) (time.Time, error)) error {
	if err := r.counter.read(); err != nil {
		return err
	}
	r.counter.take()
	r.sampler.processes()
	r.sampler.take()
	begin, d := time.Now(), &durations{}
	end, failed := do(ctx, d)
	now := time.Now()
	if end.IsZero() {
		end = now
	}
	if err := r.counter.read(); err != nil {
		return errors.Join(failed, err)
	}
	r.sampler.processes()
	use, breaks := r.sampler.take()
	counted := r.counter.take()
	all, _ := counted.of(core, provider)
	p := Phase{
		Name: name, Seconds: max(end.Sub(begin), 0).Seconds(), Load: machineLoad(), Use: use, Top: counted.top(12), Breaks: breaks,
		Requests: map[string]int{}, Writes: map[string]int{},
		Waits: len(d.all), P50: d.quantile(0.5).Seconds(), P99: d.quantile(0.99).Seconds(),
	}
	for _, by := range []string{core, provider} {
		p.Requests[by], p.Writes[by] = counted.of(by)
	}
	if name == idle {
		p.PerHour = perHour(all, r.report.Algorithms+r.report.Noisy, now.Sub(begin))
	}
	r.report.Phases = append(r.report.Phases, p)
	r.progress.Sayf("%s: %.0f s, %d requests, core %.0f s and %.0f MiB", name, p.Seconds, all, use[core].CPU, use[core].Peak)
	return failed
}

// edits of some Algorithms, four a second.
func (r *run) edits(ctx context.Context, sample []name, d *durations) (time.Time, error) {
	if err := r.edit(ctx, sample, 2*len(sample), 4, d); err != nil {
		return time.Time{}, err
	}
	return r.waited(ctx, d)
}

// waited until no wait is missing. The end is now.
func (r *run) waited(ctx context.Context, d *durations) (time.Time, error) {
	return time.Time{}, r.until(ctx, "each has come so far", func() (bool, string) {
		all, ready := r.observer.count()
		return d.missing() == 0, fmt.Sprintf("%d are missing; %d of %d are Ready", d.missing(), ready, all)
	})
}

// quiet waits until Crossplane and the provider have written nothing for a while, and returns when that began.
func (r *run) quiet(ctx context.Context) (time.Time, error) {
	begin := time.Now()
	err := r.until(ctx, "nothing is written", func() (bool, string) {
		since := time.Since(r.counter.lastWrite())
		return since > still && time.Since(begin) > still, fmt.Sprintf("the last write is %s ago", since.Round(time.Second))
	})
	return r.counter.lastWrite(), err
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

// countObjects that an Algorithm is composed of.
func (r *run) countObjects(ctx context.Context, n name) error {
	a, err := r.client.Resource(algorithms).Namespace(n.namespace).Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot count objects: %w", err)
	}
	refs, _, err := unstructured.NestedSlice(a.Object, "spec", "crossplane", "resourceRefs")
	if err != nil {
		return fmt.Errorf("cannot count objects: %w", err)
	}
	r.report.Objects = len(refs)
	return nil
}
