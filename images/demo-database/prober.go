// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"
)

// askers is how many writes of a prober may be under way: as many as begin before the first one has failed, and some more.
const askers = 32

// A Taken write was acknowledged, between two times.
type Taken struct {
	Member string    `json:"member"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
}

// A prober finds out at every moment whether one member takes writes. It waits for no earlier answer, so that it does not miss
// the moment at which a member that was frozen continues.
type prober struct {
	writer

	idle chan rows
	mu   sync.Mutex
}

// newProber of servers, each with a connection of its own.
func newProber(w *writer, open func() (rows, error)) (*prober, error) {
	w.acknowledged, w.errors = map[int64]bool{}, map[string]int64{}
	p := &prober{writer: *w, idle: make(chan rows, askers)}
	for range askers {
		s, err := open()
		if err != nil {
			return nil, err
		}
		p.idle <- s
	}
	return p, nil
}

// write a row at each tick until ctx is done, and print each that was acknowledged.
func (p *prober) write(ctx context.Context, ticks <-chan time.Time) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		p.next++
		n := p.next
		select {
		case s := <-p.idle:
			all.Go(func() {
				p.one(context.WithoutCancel(ctx), s, n)
				p.idle <- s
			})
		default:
			p.mu.Lock()
			p.failed++
			p.errors["all earlier writes wait for an answer"]++
			p.mu.Unlock()
		}
	}
}

func (p *prober) one(ctx context.Context, s rows, n int64) {
	from := p.now()
	var by string
	err := p.try(ctx, func(ctx context.Context) (err error) {
		by, err = s.insert(ctx, p.options.Name, n)
		return err
	})
	to := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.acknowledged[n] = true
		err = p.tell(map[string]Taken{"taken": {by, from, to}})
	}
	if err != nil {
		p.failed++
		p.errors[err.Error()]++
	}
}
