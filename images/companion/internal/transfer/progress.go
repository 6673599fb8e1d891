// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Progress of a download.
type Progress struct {
	log   *slog.Logger
	begun time.Time
	bytes atomic.Int64
	total atomic.Int64
}

// NewProgress logs how far the download is, every so often until ctx is done.
func NewProgress(ctx context.Context, log *slog.Logger, every time.Duration) *Progress {
	p := &Progress{log: log, begun: time.Now()}
	p.total.Store(-1)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		last, then := int64(0), p.begun
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				have := p.bytes.Load()
				p.tell("downloading", have, float64(have-last)/now.Sub(then).Seconds())
				last, then = have, now
			}
		}
	}()
	return p
}

// Count bytes that have come.
func (p *Progress) Count(n int) { p.bytes.Add(int64(n)) }

// Expect this many bytes; negative if unknown.
func (p *Progress) Expect(total int64) { p.total.Store(total) }

// Done logs how long it took.
func (p *Progress) Done() {
	have := p.bytes.Load()
	p.tell("downloaded", have, float64(have)/max(time.Since(p.begun).Seconds(), 1e-3))
}

func (p *Progress) tell(what string, have int64, rate float64) {
	args := []any{"bytes", have, "bytesPerSecond", int64(rate)}
	if total := p.total.Load(); total >= 0 {
		args = append(args, "total", total)
	}
	p.log.Info(what, args...)
}
