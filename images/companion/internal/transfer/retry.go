// SPDX-License-Identifier: Apache-2.0

// Package transfer brings bytes from servers that may be slow, busy or cut off into files, with little memory.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
)

const (
	firstPause = 500 * time.Millisecond
	lastPause  = 20 * time.Second
)

// A TemporaryError is worth another try.
type TemporaryError struct {
	Err error
	// After is how long the server wants to be left alone; 0 if it does not say.
	After time.Duration
}

// Error says what went wrong.
func (t *TemporaryError) Error() string { return Plain(t.Err) }

// Unwrap returns what went wrong.
func (t *TemporaryError) Unwrap() error { return t.Err }

// Temporary wraps an error that is worth another try.
func Temporary(err error) error { return &TemporaryError{Err: err} }

// A Retry has how long a server may fail without any progress in between.
type Retry struct {
	Limit time.Duration
	Log   *slog.Logger
}

// Do something until it succeeds, fails for good, or the limit is over.
func (p Retry) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	t := p.trial()
	for {
		err := fn(ctx)
		if err == nil {
			return nil
		}
		if err := t.pause(ctx, err); err != nil {
			return err
		}
	}
}

func (p Retry) trial() *trial { return &trial{Retry: p} }

// A trial has the failures without progress.
type trial struct {
	Retry

	since time.Time
	wait  time.Duration
}

// calm it: there was progress.
func (t *trial) calm() { t.since, t.wait = time.Time{}, 0 }

// pause before another try, or return why there must be none.
func (t *trial) pause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var temporary *TemporaryError
	if !errors.As(err, &temporary) {
		return err
	}
	if t.since.IsZero() {
		t.since, t.wait = time.Now(), firstPause
	}
	// Pods that fail together should not come back together.
	wait := max(t.wait/2+rand.N(t.wait/2), min(temporary.After, t.Limit)) //nolint:gosec // Jitter is no secret.
	t.wait = min(2*t.wait, lastPause)
	if time.Since(t.since)+wait > t.Limit {
		return &failure.Failure{
			Reason: failure.Unreachable, Cause: temporary.Error(), Err: err,
			Remedy: "see whether the server is well, and whether a NetworkPolicy or proxy is in the way",
		}
	}
	t.Log.Warn("trying again", "in", wait.Round(time.Millisecond).String(), "error", temporary.Error())
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wait):
		return nil
	}
}

// Plain text of an error of the network: without ports that change each time, and without query strings, which may hold a
// signature.
func Plain(err error) string {
	host := ""
	var at *url.Error
	if errors.As(err, &at) {
		if u, perr := url.Parse(at.URL); perr == nil {
			host = u.Host
		}
		err = at.Err
	}
	say := func(what string) string {
		if host == "" {
			return what
		}
		return fmt.Sprintf("cannot reach %s: %s", strconv.Quote(host), what)
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return say("the name " + strconv.Quote(dns.Name) + " cannot be resolved")
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return say(errno.Error())
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		return say("no answer in time")
	}
	return say(err.Error())
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
