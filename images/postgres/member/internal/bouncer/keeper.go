// SPDX-License-Identifier: Apache-2.0

package bouncer

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/images/member/loop"
)

// How often the leader is checked: seldom while all is well, for a connection that breaks is noticed at once, and often while
// clients wait for another.
const (
	lookEvery    = time.Second
	lookForOther = 100 * time.Millisecond
	tidyEvery    = 5 * time.Second
)

// A Keeper lets clients of a PgBouncer wait while there is no leader, or before standbys while there is none of them.
type Keeper struct {
	Console Console
	Lookout *Lookout
	// Leader is watched before standbys: when another member is the leader, it was one of them, and has connections of clients that only read.
	Leader *Lookout
	Log    *slog.Logger

	mu    sync.Mutex
	guard Guard
	// hold of the wait that is under way: drained is closed when no transaction is under way any more, end ends the command that
	// says so.
	hold *hold

	// waited is how often clients waited, by cause.
	waited map[string]float64

	known, answers atomic.Bool
}

type hold struct {
	drained chan struct{}
	end     context.CancelFunc
}

// Run until the context ends.
func (k *Keeper) Run(ctx context.Context) error {
	if k.Leader != nil {
		var watch sync.WaitGroup
		watch.Go(func() { k.watchLeader(ctx) })
		defer watch.Wait()
	}
	defer k.Lookout.Close()
	last := ""
	tidied := time.Time{}
	for ctx.Err() == nil {
		s := k.Lookout.Look(ctx)
		if ctx.Err() != nil {
			break
		}
		text := ""
		if err := k.Lookout.Err(); err != nil {
			text = err.Error()
		}
		if (text == "") != (last == "") {
			if k.Lookout.Standby {
				k.Log.Info("looked for a standby", "serves", s.Outlook == Serves, "error", text)
			} else {
				k.Log.Info("looked for the leader", "leads", s.Outlook == Serves, "error", text)
			}
		}
		last = text
		k.mu.Lock()
		k.act(ctx, k.guard.See(time.Now(), s))
		k.known.Store(k.guard.Known())
		waits := k.guard.Cause() != ""
		k.mu.Unlock()
		if time.Since(tidied) >= tidyEvery {
			tidied = time.Now()
			k.tidy(ctx)
		}
		switch {
		case waits:
			loop.Sleep(ctx, lookForOther)
		case k.Lookout.Wait(ctx, lookEvery):
			// Those that try again would be refused until the next look.
			k.mu.Lock()
			k.act(ctx, k.guard.See(time.Now(), Sight{Outlook: Gone}))
			k.mu.Unlock()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.hold != nil {
		k.hold.end()
	}
	return nil
}

// settle is how long the name of the standbys may still resolve to a standby that was promoted.
const settle = 10 * time.Second

// watchLeader renews connections to standbys as soon as another member is the leader, and again when no new one can have gone to it.
func (k *Keeper) watchLeader(ctx context.Context) {
	defer k.Leader.Close()
	last, again := "", time.Time{}
	for ctx.Err() == nil {
		s := k.Leader.Look(ctx)
		changed := s.Outlook == Serves && last != "" && last != s.Server
		if s.Outlook == Serves {
			last = s.Server
		}
		now := time.Now()
		if due := !again.IsZero() && now.After(again); changed || due {
			again = time.Time{}
			if changed {
				k.Log.Info("another member is the leader")
				again = now.Add(settle)
			}
			k.mu.Lock()
			k.act(ctx, Renew)
			k.mu.Unlock()
		}
		k.Leader.Wait(ctx, lookEvery)
	}
}

// Ask for a wait, because the leader is about to stop. It reports whether clients wait, and whether no transaction is under way
// any more. It returns when that is so, or with the context.
func (k *Keeper) Ask(ctx context.Context) (waits, drained bool) {
	k.mu.Lock()
	// The wait is longer than this request.
	k.act(context.WithoutCancel(ctx), k.guard.Ask(time.Now()))
	h := k.hold
	k.mu.Unlock()
	if h == nil {
		return false, false
	}
	if sessions, err := k.Console.Sessions(ctx); err != nil || sessions {
		return true, false // sessions do not end by themselves
	}
	select {
	case <-h.drained:
		return true, true
	case <-ctx.Done():
		return true, false
	}
}

// act on what the guard decided. The lock must be held.
func (k *Keeper) act(ctx context.Context, a Action) {
	switch a {
	case Nothing:
	case Hold:
		cause := k.guard.Cause()
		if k.waited == nil {
			k.waited = map[string]float64{}
		}
		k.waited[cause]++
		k.Log.Info("clients wait", "cause", cause)
		ctx, end := context.WithTimeout(context.WithoutCancel(ctx), LossLimit+HandoverLimit)
		h := &hold{drained: make(chan struct{}), end: end}
		k.hold = h
		go func() {
			begun := time.Now()
			if err := k.Console.Pause(ctx); err != nil {
				if ctx.Err() == nil {
					k.Log.Error("cannot let clients wait", "error", err)
				}
				return
			}
			k.Log.Info("no transaction is under way", "took", time.Since(begun).Round(time.Millisecond).String())
			close(h.drained)
		}()
	case Release:
		k.hold.end()
		k.hold = nil
		if err := k.Console.Resume(ctx); err != nil {
			k.Log.Error("cannot let clients continue, trying again", "error", err) // see tidy
			return
		}
		k.Log.Info("clients continue")
	case Renew:
		if err := k.Console.Reconnect(ctx); err != nil {
			k.Log.Error("cannot renew connections to the server", "error", err)
		}
	}
}

// tidy up: clients that wait without a reason continue, no matter which program made them wait.
func (k *Keeper) tidy(ctx context.Context) {
	paused, err := k.Console.State(ctx)
	k.answers.Store(err == nil)
	if err != nil || !paused {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.guard.Cause() != "" {
		return
	}
	k.Log.Warn("clients waited without a reason")
	if err := k.Console.Resume(ctx); err != nil {
		k.Log.Error("cannot let clients continue", "error", err)
	}
}

// Known reports whether a leader was ever seen.
func (k *Keeper) Known() bool { return k.known.Load() }

// Answers reports whether PgBouncer answered at the last look.
func (k *Keeper) Answers() bool { return k.answers.Load() }

// Waits reports whether clients wait.
func (k *Keeper) Waits() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.guard.Cause() != ""
}

// Waited returns how often clients waited for a cause.
func (k *Keeper) Waited(cause string) float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waited[cause]
}
