// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/origin"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/record"
)

// restoreAgain is the pause after a restore that failed.
const restoreAgain = time.Minute

// A Filling is the restore of the backup that a generation begins with, into the volume of the member that begins it. The Keeper requests
// it, and the Supervisor stops the server for it.
type Filling struct {
	filler   origin.Filler
	reporter *report.Reporter
	log      *slog.Logger
	// wake is called when it is requested.
	wake      loop.Wakeup
	requested atomic.Bool
}

// Request it.
func (f *Filling) Request() {
	f.requested.Store(true)
	f.wake.Call()
}

// Run it if it was requested, until it succeeds, the context ends, or the Database names no backup any more.
func (f *Filling) Run(ctx context.Context) {
	if !f.requested.Load() {
		return
	}
	for ctx.Err() == nil {
		config, err := layout.ReadConfig()
		if err == nil && config.From == nil {
			break
		}
		if err == nil {
			err = f.filler.Fill(ctx, *config.From)
		}
		if err == nil {
			f.log.Info("restored the data")
			break
		}
		if ctx.Err() != nil {
			return
		}
		f.log.Warn("cannot restore, trying again", "error", err, "pause", restoreAgain.String())
		f.reporter.Block(members.ReasonRestoreFailed, err.Error())
		loop.Sleep(ctx, restoreAgain)
	}
	f.reporter.Clear(members.ReasonRestoreFailed)
	f.requested.Store(false)
}

// first data of a Database: this member is the one to begin, no member has any data, and there never was any. It reports whether the member may
// begin empty. If not, it restores a backup, or waits.
func (k *Keeper) first(ctx context.Context, config mysqlmember.Config, rec record.Record) (empty bool, err error) {
	if config.From == nil {
		err := k.existing.Check(ctx, config.Backup)
		var wait *volume.Wait
		if errors.As(err, &wait) {
			k.say(decision.Entry{Reason: wait.Reason, Message: wait.Message})
			return false, nil
		}
		return err == nil, err
	}
	// The others wait for this member from now on, because it is the only one in the view. It has no id yet: the data to come has another one.
	if seats := rec.Seats(); len(seats) != 1 || seats[0] != (decision.Seat{Name: k.names.Name}) {
		if err := k.store.Begin(ctx, rec, record.Seat{Name: k.names.Name}, "", k.names.GroupName(config.Generation)); err != nil {
			return false, err
		}
	}
	k.log.Info("restoring the backup that the Database begins with")
	k.filling.Request()
	return false, nil
}

// restoredBy is another member that restores the backup that the Database begins with; "" when none does.
func (k *Keeper) restoredBy(rec record.Record) string {
	seats := rec.Seats()
	if len(seats) != 1 || seats[0].Server != "" || seats[0].Name == k.names.Name {
		return ""
	}
	return seats[0].Name
}

// clearRestore removes what a restore left that ended with the container. A member that should restore begins again.
func clearRestore() error {
	return errors.Join(os.RemoveAll(layout.Fresh), os.RemoveAll(layout.Scratch))
}
