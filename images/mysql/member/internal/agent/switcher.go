// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/handover"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/record"
)

// requestEvery is how often a leader looks for a request for another one. A change wakes it.
const requestEvery = 10 * time.Second

// A Switcher makes another member the leader on request.
type Switcher struct {
	pod    string
	scope  string
	store  *record.Client
	server *mysql.Server
	seen   func() Seen
	log    *slog.Logger
}

// once looks for a request and carries it out, and returns the pause before the next time.
func (s *Switcher) once(ctx context.Context) time.Duration {
	if s.seen().Role != members.RoleLeader {
		return time.Hour // what the Keeper sees wakes it
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	w, err := s.store.Requested(ctx)
	if err != nil || w == (record.Request{}) {
		return requestEvery
	}
	begun := time.Now()
	// The other one may have come online a moment ago, which what was seen last does not show yet.
	l, err := s.server.Look(ctx)
	if err == nil {
		err = s.carryOut(ctx, l, w)
	}
	s.log.Info("another leader is requested", "from", w.From, "to", w.To, "result", fmt.Sprint(err), "took", time.Since(begun).Round(time.Millisecond).String())
	// Also when it failed: the leader shows what became of it.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), kube.Timeout)
	defer cancel()
	if err := s.store.EndRequest(end); err != nil {
		s.log.Warn("cannot end the request for another leader", "error", err)
		return retryEvery
	}
	return requestEvery
}

// carryOut a request. Pods that stop are fit if they are named.
func (s *Switcher) carryOut(ctx context.Context, l decision.Look, w record.Request) error {
	if w.From != "" && w.From != s.pod {
		return fmt.Errorf("%s is the leader, and not %s", s.pod, w.From)
	}
	next, err := handover.Next(l, handover.Ask(ctx, l, s.scope), w.To)
	if err != nil {
		return err
	}
	return handover.Elect(ctx, s.server, next)
}

// A Watcher wakes loops when what members follow changes.
type Watcher struct {
	store *record.Client
	wake  []loop.Wakeup
}

// once watches until the stream ends, and returns the pause before the next one.
func (w *Watcher) once(ctx context.Context) time.Duration {
	// Streams end every few minutes, and other loops complain when the API server is down.
	_ = w.store.Watch(ctx, func(string) {
		for _, one := range w.wake {
			one.Call()
		}
	})
	return retryEvery
}
