// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
)

// Convert the copy into data of the later version. It may be called again after the program ended; after an error the copy is of
// no use any more.
//
// The files of tables are linked and not copied: the copy is spent from the moment on that a server of the later version opened
// them, and pg_upgrade starts one in the end. What was copied from is on other volumes.
func (j *Job) Convert(ctx context.Context, v Verdict) error {
	if _, err := os.Stat(filepath.Join(layout.UpgradeCopy, "global", "pg_control")); errors.Is(err, fs.ErrNotExist) {
		return errors.New("the upgrade was interrupted after the files of the copy had been handed over to the later version")
	}
	if err := j.finish(ctx); err != nil {
		return err
	}
	if v.Unversioned {
		if err := j.strip(ctx); err != nil {
			return err
		}
	}
	// One that was interrupted leaves its notes behind.
	_, err := os.Stat(filepath.Join(layout.UpgradeData, "pg_upgrade_output.d"))
	_, missing := os.Stat(filepath.Join(layout.UpgradeData, "PG_VERSION"))
	if err == nil || missing != nil {
		if err := j.prepare(ctx); err != nil {
			return err
		}
	}
	said, err := process.Run(ctx, layout.UpgradeWork, j.after("pg_upgrade"), append(j.arguments(layout.UpgradeData, v.Options), "--jobs=2")...)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("the upgrade was stopped: %w", ctx.Err())
	case err != nil:
		return errors.New("pg_upgrade: " + findings(said, layout.UpgradeData))
	}
	return nil
}

// finish what the copy replays, and make it data of a leader that was shut down: pg_upgrade takes no other.
func (j *Job) finish(ctx context.Context) error {
	if err := os.Remove(filepath.Join(layout.UpgradeCopy, "standby.signal")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot end the following of the copy: %w", err)
	}
	if err := unlock(); err != nil {
		return err
	}
	// It reads statements from what it is given, which is nothing.
	if err := run(ctx, j.before("postgres"), "--single", "-D", layout.UpgradeCopy, "template1"); err != nil {
		return fmt.Errorf("cannot end the following of the copy: %w", err)
	}
	return nil
}

// Accept the upgraded data: it is the member's from now on.
func Accept() error {
	if err := os.Remove(pgmember.FolderData); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot make room for the upgraded data: %w", err)
	}
	if err := os.Rename(layout.UpgradeData, pgmember.FolderData); err != nil {
		return fmt.Errorf("cannot accept the upgraded data: %w", err)
	}
	return durable.Sync(pgmember.FolderVolume)
}

// Discard what an upgrade needed and nothing does any more.
func Discard() error {
	for _, dir := range []string{layout.UpgradeCopy, layout.UpgradeData, layout.UpgradeTrial, layout.UpgradeWork} {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("cannot remove what the upgrade needed: %w", err)
		}
	}
	return nil
}

// Forget the upgrade: nothing of it is left to do.
func Forget() error {
	if err := os.RemoveAll(layout.Upgrade); err != nil {
		return fmt.Errorf("cannot remove what the upgrade left: %w", err)
	}
	return nil
}
