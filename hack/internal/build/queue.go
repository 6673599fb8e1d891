// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capstan-dev/capstan/hack/internal/download"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// A Queue makes programs in the background, in the order of requests, so that a cluster starts with the
// first while the last are compiled.
type Queue struct {
	builder *Builder
	printer *progress.Printer
	missing []Tool
	made    map[string]chan struct{}

	group  *errgroup.Group
	ctx    context.Context //nolint:containedctx // Its cause is why the queue stopped.
	cancel context.CancelFunc
}

// Ensure returns once the cache has the named tools.
func (b *Builder) Ensure(ctx context.Context, p *progress.Printer, names ...string) error {
	q, err := b.Start(ctx, p, names...)
	if err != nil {
		return err
	}
	defer q.Stop()
	return q.Wait(ctx, names...)
}

// Start makes the named tools that the cache lacks, and returns at once. Call Stop in the end.
func (b *Builder) Start(ctx context.Context, p *progress.Printer, names ...string) (*Queue, error) {
	q := &Queue{builder: b, printer: p, made: map[string]chan struct{}{}}
	for _, name := range names {
		tool, err := b.find(name)
		if err != nil {
			return nil, err
		}
		dir, err := b.Dir(name)
		if err != nil {
			return nil, err
		}
		q.made[name] = make(chan struct{})
		if built(tool, dir) {
			close(q.made[name])
			continue
		}
		q.missing = append(q.missing, tool)
	}
	if len(q.missing) > 1 {
		p.Sayf("%s", forecast(q.missing))
	}
	ctx, q.cancel = context.WithCancel(ctx)
	q.group, q.ctx = errgroup.WithContext(ctx)

	// Each stage works on another tool: the first waits for the network, the second uses all processors, the last uses one.
	compiled := make(chan Tool, len(q.missing))
	q.group.Go(func() error {
		q.download()
		return nil
	})
	q.group.Go(func() error {
		defer close(compiled)
		return q.compile(compiled)
	})
	q.group.Go(func() error { return q.link(compiled) })
	return q, nil
}

// Wait returns once the named tools, which Start was given, are in the cache, or the queue has failed.
func (q *Queue) Wait(ctx context.Context, names ...string) error {
	for _, name := range names {
		made, ok := q.made[name]
		if !ok {
			return fmt.Errorf("cannot wait for tool %q, which was not requested", name)
		}
		select {
		case <-made:
			continue
		default:
		}
		select {
		case <-made:
		case <-q.ctx.Done():
			if err := q.group.Wait(); err != nil {
				return err
			}
			return q.ctx.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Stop ends what is still being made.
func (q *Queue) Stop() {
	q.cancel()
	_ = q.group.Wait()
}

// download fetches the modules of tools whose turn to be compiled comes later. Compiling reports what is missing, so that an
// error here does not matter.
func (q *Queue) download() {
	for _, tool := range q.missing {
		if !tool.Python && q.ctx.Err() == nil {
			_ = q.builder.load(q.ctx, tool)
		}
	}
}

func (q *Queue) compile(compiled chan<- Tool) error {
	for i, tool := range q.missing {
		step := fmt.Sprintf("%s, %d of %d", tool.Name, i+1, len(q.missing))
		dir, err := q.builder.Dir(tool.Name)
		if err != nil {
			return err
		}
		fetched, err := q.fetch(tool, step, dir)
		if err != nil {
			return err
		}
		if fetched {
			close(q.made[tool.Name])
			continue
		}
		var count atomic.Int64
		far := func() string {
			return fmt.Sprintf("%d packages so far, usually %s in all on 2 idle processors", count.Load(), tool.Usual)
		}
		if tool.Python {
			if err := q.printer.Step("install "+step, far, func() error { return q.builder.install(q.ctx, tool, dir, &count) }); err != nil {
				return err
			}
			close(q.made[tool.Name])
			continue
		}
		if err := q.printer.Step("compile "+step, far, func() error { return q.builder.compile(q.ctx, tool, &count) }); err != nil {
			return err
		}
		compiled <- tool
	}
	return nil
}

// fetch downloads what the publisher offers, where the settings allow it and its site answers.
func (q *Queue) fetch(tool Tool, step, dir string) (bool, error) {
	if q.builder.downloads == nil || tool.Python || own[tool.Name] != "" {
		return false, nil
	}
	version, err := q.builder.Version(tool.Name)
	if err != nil {
		return false, err
	}
	var received atomic.Int64
	request := download.Request{
		Tool: tool.Name, Version: version, Arch: runtime.GOARCH, Received: &received, Say: q.printer.Sayf,
	}
	begin := time.Now()
	fetched, err := q.builder.downloads.Ensure(q.ctx, request, dir)
	if fetched {
		q.printer.Sayf("download %s, %d MiB (%s)", step, received.Load()>>20, time.Since(begin).Round(time.Second/10))
	}
	return fetched, err
}

func (q *Queue) link(compiled <-chan Tool) error {
	for tool := range compiled {
		dir, err := q.builder.Dir(tool.Name)
		if err != nil {
			return err
		}
		if err := q.printer.Step("link "+tool.Name, nil, func() error { return q.builder.link(q.ctx, tool, dir) }); err != nil {
			return err
		}
		close(q.made[tool.Name])
	}
	return nil
}

// forecast says what is going to be made and how long that usually takes.
func forecast(tools []Tool) string {
	var sum time.Duration
	names := make([]string, len(tools))
	for i, tool := range tools {
		sum += tool.Usual
		names[i] = tool.Name
	}
	return fmt.Sprintf("%d programs are not in the cache yet: %s. On 2 idle processors, compiling them takes about %s, once.",
		len(tools), strings.Join(names, ", "), max(sum.Round(time.Minute), time.Minute))
}
