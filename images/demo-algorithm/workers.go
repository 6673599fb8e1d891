// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"sync"
)

// workers compute predictions, in the order of requests. Their number can change at any time.
type workers struct {
	mu sync.Mutex
	// number of workers, or 0 when there are as many as are needed.
	number int
	busy   int
	// queue of requests that wait for a worker. A channel is closed when its turn comes.
	queue []chan struct{}
}

// limit their number. Those who wait get the workers that are added; those who have one keep it.
func (w *workers) limit(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.number = n
	w.next()
}

// take a worker, and report whether there was one before the context was done.
func (w *workers) take(ctx context.Context) bool {
	turn := make(chan struct{})
	w.mu.Lock()
	w.queue = append(w.queue, turn)
	w.next()
	w.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.queue, turn); i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
		return false
	}
	// The turn came at the same moment.
	w.busy--
	w.next()
	return false
}

func (w *workers) giveBack() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	w.next()
}

// next in the queue are those for whom there is a worker.
func (w *workers) next() {
	for len(w.queue) > 0 && (w.number == 0 || w.busy < w.number) {
		close(w.queue[0])
		w.queue = w.queue[1:]
		w.busy++
	}
}
