// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/snapshot"
)

// begin returns what a member without data has to wait for while no member has any: one makes the first data, and the others copy it. Any
// of them may, so the first that looks does.
func (g *Gate) begin(ctx context.Context, list []pods.Pod, from *pgmember.Source) error {
	by, err := g.DCS.Begin(ctx, g.Names.Database, g.Names.Name, func(member string) bool { return gone(list, member, time.Since(g.Begun)) })
	if err != nil {
		return err
	}
	if by != g.Names.Name {
		return &volume.Wait{Reason: pgmember.ReasonWaitingForData, Message: fmt.Sprintf("member %s makes the first data, and this one copies it", by)}
	}
	if from != nil && from.Follow {
		return nil // It replays without an end, and has no clients that would end the note.
	}
	if err := durable.Write(layout.Beginning, nil); err != nil {
		return fmt.Errorf("cannot note that the first data is made: %w", err)
	}
	return nil
}

// gone reports whether another member has to make the first data, after this one waited for a time: the pod does not run, or its restore
// failed.
func gone(list []pods.Pod, member string, waited time.Duration) bool {
	i := slices.IndexFunc(list, func(p pods.Pod) bool { return p.Member == member })
	if i >= 0 && list[i].Reason == members.ReasonRestoreFailed {
		return true
	}
	return waited > unstarted && (i < 0 || !list[i].Started)
}

// isComplete reports whether data that this member made has all that the Database begins with. While the Database has not begun, nothing else
// says so.
func isComplete(config pgmember.Config) (bool, error) {
	unfinished := layout.Beginning
	if config.From != nil {
		// A backup has the roles of standbys. PostgreSQL removes the signal when it has replayed what it should.
		unfinished = filepath.Join(pgmember.FolderData, "recovery.signal")
	}
	_, err := os.Stat(unfinished)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot find out whether the data is complete: %w", err)
	}
	return false, nil
}

// readData reads what the data folder holds. First data that is not known to be complete is removed, and made again: no client ever reached
// it. The system is empty while the Database has not begun, and another member may have made its data since.
func (g *Gate) readData(ctx context.Context, programs string, config pgmember.Config, system string) (volume.Content, error) {
	complete, err := isComplete(config)
	if err != nil {
		return volume.Content{}, err
	}
	if system == "" && !complete {
		g.Log.Warn("this member was ended before the first data was complete, and makes it again")
		if err := removeUnfinished(config.From); err != nil {
			return volume.Content{}, err
		}
	}
	own, err := pgdata.Read(ctx, programs, pgmember.FolderData)
	if err != nil || system == "" {
		return own, err
	}
	switch _, err := os.Stat(layout.Beginning); {
	case errors.Is(err, fs.ErrNotExist):
		return own, nil
	case err != nil:
		return volume.Content{}, fmt.Errorf("cannot find out which member made the first data: %w", err)
	case own.System == system && (complete || config.From == nil):
		return own, Serves() // The Database began with it, and only the note is left.
	}
	return volume.Content{Empty: true}, removeUnfinished(nil)
}

// removeUnfinished data. There is no other copy of what a volume was filled with, and a replay continues where it was.
func removeUnfinished(from *pgmember.Source) error {
	if from != nil && from.Snapshot != nil {
		return snapshot.Own.Again(pgmember.FolderData)
	}
	if err := os.RemoveAll(pgmember.FolderData); err != nil {
		return fmt.Errorf("cannot remove first data that is not complete: %w", err)
	}
	return Serves()
}

// Serves notes that the data of this member may have what clients wrote. It has to be called before a leader gets its first client.
func Serves() error {
	err := os.Remove(layout.Beginning)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := errors.Join(err, durable.Sync(filepath.Dir(layout.Beginning))); err != nil {
		return fmt.Errorf("cannot note that the first data is complete: %w", err)
	}
	return nil
}
