// SPDX-License-Identifier: Apache-2.0

// Package verification is the frame of a verification of a backup, for every engine: what is wrong with a backup, how long it may take,
// and how the result is recorded where the leader reads it.
package verification

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/process"
)

const (
	// removeTries is how often it is checked whether anything still writes before what was restored is removed, and removePause the time
	// between two checks.
	removeTries = 50
	removePause = 100 * time.Millisecond
	// recordLimit is how long it may take to write the result.
	recordLimit = 2 * time.Minute
)

// A Failure is what is wrong with a backup.
type Failure struct { //nolint:errname // verification.Failure says it.
	// Kind is one of members.Verify….
	Kind string
	// Message says more, and what to do.
	Message string
}

func (f *Failure) Error() string { return f.Message }

// Passed is the result of a trial that was passed.
type Passed struct {
	Backup string
	// Took is how long the restore took, until all was replayed.
	Took       time.Duration
	ReplayedTo time.Time
	Assertions int
}

// Because of a context that ended for a reason of its own, or else of what happened.
func Because(ctx context.Context, err error) error {
	var failure *Failure
	if ctx.Err() != nil && errors.As(context.Cause(ctx), &failure) {
		return failure
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Within the time that a restore may take, if it is limited.
func Within(ctx context.Context, seconds int64) (context.Context, context.CancelFunc) {
	if seconds <= 0 {
		return context.WithCancel(ctx)
	}
	most := time.Duration(seconds) * time.Second
	return context.WithTimeoutCause(ctx, most, &Failure{members.VerifySlow, fmt.Sprintf("the restore was ended after spec.backup.verify.maxRestoreTime, %s: "+
		"raise it, or make the restore faster: more frequent backups have less to replay", most)})
}

// Objects are small objects beside the backups.
type Objects interface {
	// Read the JSON of an object into a value, and report whether there is such an object.
	Read(ctx context.Context, key string, into any) (bool, error)
	// Write a value as JSON to an object.
	Write(ctx context.Context, key string, value any) error
}

// A Run is one verification, whose result is recorded.
type Run struct {
	// ID of the verification, if it was requested by name.
	ID string
	// Limit is how long it may take.
	Limit time.Duration
	// Objects that the result is in, and Key of it.
	Objects Objects
	Key     string
	// Folder is removed before and after.
	Folder string
	Log    *slog.Logger
}

// Run a trial, and record the result. One that a signal stops records nothing: another one begins again.
func (r Run) Run(ctx context.Context, try func(context.Context) (Passed, error)) error {
	began := time.Now().UTC().Format(time.RFC3339)
	if err := r.record(ctx, func(r *members.VerificationReport) { r.Began = began }); err != nil {
		return err
	}
	passed, err := r.try(ctx, try)
	if rerr := remove(context.WithoutCancel(ctx), r.Folder); rerr != nil {
		r.Log.Warn("what was restored stays until the pod goes", "error", rerr)
	}
	if ctx.Err() != nil {
		return errors.New("the verification was stopped by a signal")
	}
	if rerr := r.record(ctx, func(report *members.VerificationReport) { set(report, r.ID, passed, err, time.Now()) }); rerr != nil {
		return errors.Join(err, rerr)
	}
	return err
}

func (r Run) try(ctx context.Context, try func(context.Context) (Passed, error)) (Passed, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Limit, &Failure{members.VerifyOther, fmt.Sprintf("the verification did not end within %s", r.Limit)})
	defer cancel()
	if err := remove(ctx, r.Folder); err != nil {
		return Passed{}, err
	}
	return try(ctx)
}

// record a change of the results.
func (r Run) record(ctx context.Context, change func(*members.VerificationReport)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	var report members.VerificationReport
	if _, err := r.Objects.Read(ctx, r.Key, &report); err != nil {
		return err
	}
	change(&report)
	return r.Objects.Write(ctx, r.Key, report)
}

// set the result of a verification in the report.
func set(r *members.VerificationReport, id string, p Passed, err error, now time.Time) {
	at := now.UTC().Format(time.RFC3339)
	r.Began, r.Ended, r.Backup, r.Failure, r.Message = "", at, p.Backup, "", ""
	if id != "" {
		r.ID = id
	}
	if err == nil {
		r.Passed = members.VerificationPassed{
			Backup: p.Backup, At: at, Seconds: int64(p.Took.Round(time.Second).Seconds()), ReplayedTo: p.ReplayedTo.UTC().Format(time.RFC3339),
			Assertions: int32(p.Assertions), //nolint:gosec // At most 16.
		}
		return
	}
	r.Failure, r.Message = members.VerifyOther, err.Error()
	var failure *Failure
	if errors.As(err, &failure) {
		r.Failure = failure.Kind
	}
}

// remove what was restored. A restore that was ended leaves processes behind for a moment, which continue to write.
func remove(ctx context.Context, folder string) error {
	for range removeTries {
		running := slices.DeleteFunc(process.Descendants(os.Getpid()), func(p process.Process) bool { return p.Dead })
		if len(running) == 0 {
			break
		}
		for _, p := range running {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		loop.Sleep(ctx, removePause)
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("cannot remove what was restored: %w", err)
	}
	return nil
}
