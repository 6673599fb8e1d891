// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/report"
)

const (
	// Every is the pause between two looks.
	Every = 10 * time.Second
	// Soon is the pause while something is under way.
	Soon = time.Second
	// Idle is the pause without an import.
	Idle = 10 * time.Minute
	// AtOnce is the pause before a step that clients wait for.
	AtOnce = 50 * time.Millisecond
	// StandbyEvery is how often a standby checks whether it is the leader.
	StandbyEvery = 5 * time.Second
	// onceLimit is how long one look may take, with all that it does.
	onceLimit = 3 * time.Hour
	// QuietFor is how long nothing may have written to the source.
	QuietFor = 3 * time.Second
	// DrainLimit is how long the cut-over waits for what was written, before it looks again at whether something writes.
	DrainLimit = 2 * time.Minute
	// StalledFor is how long nothing may come although something waits.
	StalledFor = 10 * time.Minute
)

// A Work does what is next of an import, shows meanwhile what it does, and returns what there is to report and the pause before the next look.
type Work func(ctx context.Context, i members.Import, show func(members.ImportReport)) (members.ImportReport, time.Duration)

// A Keeper imports while its member is the leader.
type Keeper struct {
	Leads func() bool
	// Config is the import that is requested; nil without one.
	Config func() (*members.Import, error)
	// Elsewhere reports that another keeper reports of an import. Nil: never.
	Elsewhere func() bool
	// Work does what is next. Rest ends what a leader does, when the member does not lead. Without removes what an import has left, when none is
	// requested.
	Work     Work
	Rest     func(context.Context)
	Without  func(context.Context) error
	Reporter *report.Reporter
	Log      *slog.Logger

	last string
}

// Once does what is next, and returns the pause before the next time.
func (k *Keeper) Once(ctx context.Context) time.Duration {
	if k.Elsewhere != nil && k.Elsewhere() {
		return Idle
	}
	i, err := k.Config()
	switch {
	case err != nil || !k.Leads():
		k.show(nil)
		k.Rest(ctx)
		return StandbyEvery
	case i == nil:
		k.show(nil)
		if err := k.Without(ctx); err != nil {
			k.Log.Info("cannot look for what an import has left", "error", err)
			return Every
		}
		return Idle
	}
	ctx, cancel := context.WithTimeout(ctx, onceLimit)
	defer cancel()
	// A look that does not end although it should is reported beside it.
	late := time.AfterFunc(onceLimit+time.Minute, func() {
		k.Reporter.Change(func(r *members.Report) {
			r.Import = &members.ImportReport{State: members.ImportFailing, Message: "a look at the source does not end: see the log of the leader's pod, and restart it"}
		})
	})
	defer late.Stop()
	now, pause := k.Work(ctx, *i, func(now members.ImportReport) { k.show(&now) })
	if !k.Leads() {
		return StandbyEvery
	}
	now = Bounded(now)
	k.show(&now)
	return pause
}

// Request to cut over, as it is at this moment.
func (k *Keeper) Request() (*members.CutOver, error) {
	i, err := k.Config()
	if err != nil || i == nil || !k.Leads() {
		return nil, err
	}
	return i.CutOver, nil
}

// show what was seen. Only a change of the state is logged.
func (k *Keeper) show(now *members.ImportReport) {
	if now != nil && now.State+now.Message != k.last {
		k.last = now.State + now.Message
		k.Log.Info("looked at the import", "state", now.State, "message", now.Message, "findings", now.Findings)
	}
	k.Reporter.Change(func(r *members.Report) { r.Import = now })
}

// Bounded report.
func Bounded(r members.ImportReport) members.ImportReport {
	r.Message, r.Findings = Shortened(r.Message, MaxMessage), r.Findings[:min(len(r.Findings), MaxFindings)]
	for i := range r.Findings {
		r.Findings[i] = Shortened(r.Findings[i], MaxFinding)
	}
	return r
}

// Waits is why a cut-over does not continue yet.
type Waits struct{ message string } //nolint:errname // It waits.

func (w *Waits) Error() string { return w.message }

// Wait with a cut-over.
func Wait(format string, args ...any) error { return &Waits{fmt.Sprintf(format, args...)} }

// IsWait reports whether an error is of a cut-over that waits.
func IsWait(err error) bool {
	var w *Waits
	return errors.As(err, &w)
}

// Pause for a time.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
