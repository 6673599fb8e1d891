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
)

// begin returns what a member without data has to wait for while no member has any: one makes the first data, and the others copy it. Any
// of them may, so the first that asks does. Empty data is made from nothing, and not from a backup.
func (g *Gate) begin(ctx context.Context, list []pods.Pod, empty bool) error {
	by, err := g.DCS.Begin(ctx, g.Names.Database, g.Names.Name, func(member string) bool { return gone(list, member, time.Since(g.Begun)) })
	if err != nil {
		return err
	}
	if by != g.Names.Name {
		return &volume.Wait{Reason: pgmember.ReasonWaitingForData, Message: fmt.Sprintf("member %s makes the first data, and this one copies it", by)}
	}
	if !empty {
		return nil
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

// readData reads what the data folder holds. First data that is not known to be complete is removed, and made again: no client ever reached
// it. The Database is empty while it has not begun, and may have begun with the data of another member since.
func readData(ctx context.Context, programs, system string) (volume.Content, error) {
	_, err := os.Stat(layout.Beginning)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return pgdata.Read(ctx, programs, pgmember.FolderData)
	case err != nil:
		return volume.Content{}, fmt.Errorf("cannot find out whether the data is complete: %w", err)
	}
	if system != "" {
		own, err := pgdata.Read(ctx, programs, pgmember.FolderData)
		if err != nil {
			return volume.Content{}, err
		}
		if own.System == system {
			return own, Serves()
		}
	}
	if err := os.RemoveAll(pgmember.FolderData); err != nil {
		return volume.Content{}, fmt.Errorf("cannot remove first data that is not complete: %w", err)
	}
	return volume.Content{Empty: true}, Serves()
}

// Serves notes that the data of this member is complete, and may have what clients wrote. It has to be called before a leader gets its
// first client.
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
