// SPDX-License-Identifier: Apache-2.0

// Package health answers the kubelet's probes.
package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/images/member/web"
)

// Sick is how long what runs the server may be frozen, with the volume fast enough, before the container has to be restarted:
// Patroni's loop, or a server that has no such loop. Patroni itself is restarted much earlier (see Watch), which leaves PostgreSQL
// alone.
const Sick = 3 * time.Minute

// State of the member, for probes.
type State struct {
	mu      sync.Mutex
	held    string
	since   time.Time
	storage bool
}

// Hold the member: it does nothing until a person or another member did something, for this reason. No reason ends it.
func (s *State) Hold(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = reason
}

// Beat reports whether what runs the server is alive and whether the volume answers, as of now.
func (s *State) Beat(now time.Time, alive, storage bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storage = storage
	switch {
	case alive:
		s.since = time.Time{}
	case s.since.IsZero():
		s.since = now
	}
}

// Live returns why the container has to be restarted, or nil when it has not. A volume that does not answer would not do so for
// another process either, and a new start would cost the cache and the sessions.
func (s *State) Live(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != "" || s.since.IsZero() || !s.storage || now.Sub(s.since) < Sick {
		return nil
	}
	return fmt.Errorf("what runs the server has been frozen for %s", now.Sub(s.since).Round(time.Second))
}

// Held returns the reason of a hold.
func (s *State) Held() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// Ready asks whether clients may come.
type Ready func(ctx context.Context) (bool, error)

// Serve probes until the context ends.
func Serve(ctx context.Context, address string, s *State, ready Ready) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.Live(time.Now())) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if reason := s.Held(); reason != "" {
			answer(w, errors.New(reason))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		ok, err := ready(ctx)
		if err == nil && !ok {
			err = errors.New("it is not the leader and does not follow it closely")
		}
		answer(w, err)
	})
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen for probes: %w", err)
	}
	return web.Serve(ctx, l, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second})
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}
