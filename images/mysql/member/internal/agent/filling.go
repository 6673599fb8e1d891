// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/origin"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/record"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/server"
)

// restoreAgain is the pause after a restore that failed.
const restoreAgain = time.Minute

// A Filling is the restore of the backup that a generation begins with, into the volume of the member that begins it. The Keeper requests
// it, and the Supervisor stops the server for it.
type Filling struct {
	// name of the member, and data is the folder that is filled.
	name, data string
	config     func() (mysqlmember.Config, error)
	fill       func(context.Context, mysqlmember.Source) error
	store      *record.Client
	reporter   *report.Reporter
	log        *slog.Logger
	// wake is called when it is requested.
	wake loop.Wakeup
	// requested is the UUID of the server whose data, which has no transactions, it replaces.
	requested atomic.Pointer[string]
}

// Request it in the place of what a server has, which is named by its UUID: a request that comes late must replace no other data.
func (f *Filling) Request(server string) {
	f.requested.Store(&server)
	f.wake.Call()
}

// Due reports whether it was requested for the data that is there. A request for other data is forgotten.
func (f *Filling) Due() bool {
	server := f.requested.Load()
	if server == nil {
		return false
	}
	raw, err := os.ReadFile(filepath.Join(f.data, "auto.cnf"))
	if err == nil && *server != "" && idOf(string(raw)) == *server {
		return true
	}
	f.log.Warn("did not restore: the data that it was requested for is there no more", "server", *server, "error", err)
	f.requested.CompareAndSwap(server, nil)
	return false
}

// Run it if it was requested, until it succeeds, the context ends, or this member is no longer the one that restores a backup.
func (f *Filling) Run(ctx context.Context) {
	if !f.Due() {
		return
	}
	for ctx.Err() == nil {
		done, err := f.try(ctx)
		if done {
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
	f.requested.Store(nil)
}

// try it once. It reports whether nothing is left to do.
func (f *Filling) try(ctx context.Context) (done bool, err error) {
	config, err := f.config()
	if err != nil {
		return false, err
	}
	if config.From == nil {
		return true, nil
	}
	claimed, err := f.claimed(ctx, config)
	if err != nil {
		return false, err
	}
	if !claimed {
		f.log.Warn("did not restore: this member is no longer the one to do it, or there is data")
		return true, nil
	}
	if err := f.fill(ctx, *config.From); err != nil {
		return false, err
	}
	f.log.Info("restored the data")
	return true, nil
}

// claimed reports whether the record still has this member as the one that restores, and nothing says that there is data.
func (f *Filling) claimed(ctx context.Context, config mysqlmember.Config) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*kube.Timeout)
	defer cancel()
	rec, err := f.store.Read(ctx)
	if err != nil {
		return false, err
	}
	common, err := f.store.Common(ctx)
	return slices.Equal(rec.Seats(), []decision.Seat{{Name: f.name}}) && common.Initialized == "" && !config.Begun, err
}

// idOf a server, in its file auto.cnf.
func idOf(file string) string { return server.Parameters(file)["server_uuid"] }

// first data of a Database: this member is the one to begin, no member has any data, and there never was any. It reports whether the member may
// begin empty. If not, it restores a backup, or waits.
func (k *Keeper) first(ctx context.Context, config mysqlmember.Config, rec record.Record, server string) (empty bool, err error) {
	if config.From == nil {
		if b := config.Backup; b == nil || !b.Enabled || b.StartEmpty {
			return true, nil
		}
		err := k.existing.Check(ctx, origin.Backups(*config.Backup))
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
	k.filling.Request(server)
	return false, nil
}

// clearRestore removes what a restore left that ended with the container. A member that should restore begins again.
func clearRestore() error {
	return errors.Join(os.RemoveAll(layout.Fresh), os.RemoveAll(layout.Scratch))
}
