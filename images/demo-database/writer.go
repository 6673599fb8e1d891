// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// rows are kept by a server, which acknowledges each.
type rows interface {
	// prepare makes the table that rows go into.
	prepare(ctx context.Context) error

	// insert one row and report which member acknowledged it.
	insert(ctx context.Context, writer string, n int64) (member string, err error)

	// read the rows of a writer, in order.
	read(ctx context.Context, writer string, each func(n int64)) error

	// close what is open.
	close()
}

// A Gap is a time in which no write was acknowledged.
type Gap struct {
	// From the last acknowledged write, to the next.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`

	// Seconds between them.
	Seconds float64 `json:"seconds"`

	// Before and After are the members that acknowledged the two.
	Before string `json:"before"`
	After  string `json:"after"`

	// Error is the last error of the gap.
	Error string `json:"error,omitempty"`
}

// An Account of all rows of a writer.
type Account struct {
	// Acknowledged writes, and those that failed or were never answered.
	Acknowledged int64 `json:"acknowledged"`
	Failed       int64 `json:"failed"`

	// Lost are acknowledged rows that are not there.
	Lost []int64 `json:"lost"`

	// Surplus are rows that are there and were never acknowledged: a connection broke between the commit and the answer.
	Surplus int64 `json:"surplus"`

	// Longest gap in seconds.
	Longest float64 `json:"longest"`

	// Errors by their text.
	Errors map[string]int64 `json:"errors"`
}

// A writer writes numbered rows and remembers which were acknowledged. A number is never used twice: what was not acknowledged
// may still have been written.
type writer struct {
	options Options
	server  rows
	now     func() time.Time
	tell    func(any) error

	next         int64
	acknowledged map[int64]bool
	failed       int64
	errors       map[string]int64
	longest      time.Duration
}

// prepare until it works: the writer may be there before the database.
func (w *writer) prepare(ctx context.Context) error {
	w.acknowledged, w.errors = map[int64]bool{}, map[string]int64{}
	for {
		err := w.try(ctx, w.server.prepare)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !pause(ctx, time.Second) {
			return err
		}
	}
}

func (w *writer) try(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*w.options.Timeout)
	defer cancel()
	return do(ctx)
}

// write rows until ctx is done, and report gaps.
func (w *writer) write(ctx context.Context) error {
	var (
		last      time.Time
		member    string
		lastError string
	)

	// A write that began is waited for: whether it was acknowledged has to be known.
	whole := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		w.next++
		var by string
		err := w.try(whole, func(ctx context.Context) (err error) {
			by, err = w.server.insert(ctx, w.options.Name, w.next)
			return err
		})
		now := w.now()
		if err != nil {
			w.failed++
			w.errors[err.Error()]++
			lastError = err.Error()
		} else {
			w.acknowledged[w.next] = true
			if gap := now.Sub(last); !last.IsZero() {
				w.longest = max(w.longest, gap)
				if gap > w.options.Gap {
					if err := w.tell(map[string]Gap{"gap": {
						From: last, To: now, Seconds: gap.Seconds(), Before: member, After: by, Error: lastError,
					}}); err != nil {
						return fmt.Errorf("cannot report a gap: %w", err)
					}
				}
			} else if err := w.tell(map[string]string{"first": by}); err != nil {
				return fmt.Errorf("cannot report the first row: %w", err)
			}
			last, member, lastError = now, by, ""
		}
		if !pause(ctx, w.options.Interval) {
			break
		}
	}
	return nil
}

// account of all rows that were acknowledged.
func (w *writer) account(ctx context.Context) (map[string]Account, error) {
	ctx, cancel := context.WithTimeout(ctx, w.options.Settle)
	defer cancel()
	for {
		there := map[int64]bool{}
		err := w.try(ctx, func(ctx context.Context) error {
			return w.server.read(ctx, w.options.Name, func(n int64) { there[n] = true })
		})
		if err == nil {
			return map[string]Account{"account": w.compare(there)}, nil
		}
		if !pause(ctx, time.Second) {
			return nil, fmt.Errorf("cannot read the rows back: %w", errors.Join(err, ctx.Err()))
		}
	}
}

func (w *writer) compare(there map[int64]bool) Account {
	a := Account{
		Acknowledged: int64(len(w.acknowledged)), Failed: w.failed, Longest: w.longest.Seconds(), Errors: w.errors, Lost: []int64{},
	}
	for n := int64(1); n <= w.next; n++ {
		switch {
		case w.acknowledged[n] && !there[n]:
			a.Lost = append(a.Lost, n)
		case !w.acknowledged[n] && there[n]:
			a.Surplus++
		}
	}
	return a
}

// pause reports whether there was time for it.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
