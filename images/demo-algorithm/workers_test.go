// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWorkers has ten callers share two workers, and looks when each was served.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w workers
		w.limit(2)
		began := time.Now()
		var at [10]time.Duration
		var most, now atomic.Int64
		var callers sync.WaitGroup
		for i := range at {
			callers.Go(func() {
				if !w.take(t.Context()) {
					t.Error("nobody gave up waiting")
				}
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(20 * time.Millisecond)
				now.Add(-1)
				w.giveBack()
				at[i] = time.Since(began)
			})
			synctest.Wait() // they come one after another
		}
		callers.Wait()
		for i, got := range at {
			if want := time.Duration(i/2+1) * 20 * time.Millisecond; got != want {
				t.Errorf("caller %d of ten was served after %s, want %s: two at a time, in order", i+1, got, want)
			}
		}
		if most.Load() != 2 {
			t.Errorf("%d were served at a time, want 2", most.Load())
		}
	})
}

// TestWorkersChange adds and removes workers while callers wait, and has callers hang up.
func TestWorkersChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w workers
		w.limit(1)
		if !w.take(t.Context()) {
			t.Fatal("the only worker was free")
		}
		var served, gone atomic.Int64
		ctx, hangUp := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() {
				if w.take(ctx) {
					t.Error("who has hung up got a worker")
				}
				gone.Add(1)
			})
		}
		for range 5 {
			callers.Go(func() {
				if w.take(t.Context()) {
					served.Add(1)
				}
			})
		}
		look := func(what string, wantServed, wantGone int64) {
			t.Helper()
			synctest.Wait()
			if served.Load() != wantServed || gone.Load() != wantGone {
				t.Errorf("%s: %d are being served and %d are gone, want %d and %d", what, served.Load(), gone.Load(), wantServed, wantGone)
			}
		}
		look("one worker", 0, 0)
		hangUp()
		look("two callers hung up", 0, 2)
		w.limit(3)
		look("two workers more", 2, 2)
		w.limit(1)
		w.giveBack()
		look("one of three has ended, and one is wanted", 2, 2)
		w.giveBack()
		w.giveBack()
		look("none is busy, and one is wanted", 3, 2)
		w.limit(0)
		look("no limit", 5, 2)
		for range 3 {
			w.giveBack()
		}
		callers.Wait()
		if w.busy != 0 || len(w.queue) != 0 {
			t.Errorf("at the end %d workers are busy and %d callers wait", w.busy, len(w.queue))
		}
	})
}

// TestQueueShows expects that whoever waits is in flight and takes longer, and that a change reaches those who wait.
func TestQueueShows(t *testing.T) {
	h, err := newHandler("v1", Behaviour{LatencyMs: maxLatencyMs, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer hangUp()
	for range 3 {
		callers.Go(func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/predict", nil))
		})
	}
	told := func() string {
		rsp := httptest.NewRecorder()
		h.ServeHTTP(rsp, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return rsp.Body.String()
	}
	await(t, func() bool { return strings.Contains(told(), "algorithm_inflight 3\n") })
	busy := func() string {
		h.workers.mu.Lock()
		defer h.workers.mu.Unlock()
		return fmt.Sprintf("%d busy, %d waiting", h.workers.busy, len(h.workers.queue))
	}
	await(t, func() bool { return busy() == "1 busy, 2 waiting" })
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/admin/behaviour?workers=2", nil))
	if got := busy(); got != "2 busy, 1 waiting" {
		t.Errorf("after workers=2: %s", got)
	}
}
