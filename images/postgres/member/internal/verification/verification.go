// SPDX-License-Identifier: Apache-2.0

// Package verification proves that a backup can be restored: it restores it, starts PostgreSQL on it where no client reaches it, and
// checks what is there.
package verification

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	frame "github.com/capstan-dev/capstan/images/member/verification"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/offline"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// A Trial is what is restored, where, and what has to hold.
type Trial struct {
	pgmember.Verify

	// Run is pgBackRest, which reads Stanza.
	Run    pgbackrest.Runner
	Stanza string
	// Processes that check at a time, at least two.
	Processes int64
	// Data is the folder to restore to, and Folder one for what is needed while it runs.
	Data, Folder string
	// Programs is the folder of PostgreSQL's programs of a major version.
	Programs func(major string) string
	Log      *slog.Logger
}

// Try the latest backup with all that was archived since. The error is a *frame.Failure when the backup is at fault, or one of its
// assertions.
func (t Trial) Try(ctx context.Context) (frame.Passed, error) {
	all, err := t.Run.Info(ctx, t.Stanza)
	if err != nil {
		return frame.Passed{}, &frame.Failure{Kind: members.VerifyRestore, Message: fmt.Sprintf("the bucket does not say what backups there are: %v", err)}
	}
	stanza := pgbackrest.Latest(all)
	last, ok := stanza.Last()
	if !ok {
		return frame.Passed{}, &frame.Failure{Kind: members.VerifyRestore, Message: "there is no backup: see the condition BackupFresh"}
	}
	p := frame.Passed{Backup: last.Label, ReplayedTo: last.Ended()}
	begun := time.Now()
	server, err := t.restore(ctx, last.Label)
	if err != nil {
		return p, err
	}
	defer server.Kill()
	p.Took = time.Since(begun)
	t.Log.Info("restored", "backup", p.Backup, "took", p.Took.String())
	to, at, err := server.Replayed(ctx)
	if err != nil {
		return p, err
	}
	if !at.IsZero() {
		p.ReplayedTo = at
	}
	if from := stanza.Archived(); to <= from {
		return p, &frame.Failure{Kind: members.VerifyArchive, Message: fmt.Sprintf("the archive continues at %s, and what could be replayed ends at %s: "+
			"something in between is missing; take a backup: set spec.backup.now to a new id", from, to)}
	}
	if err := t.check(ctx, server); err != nil {
		return p, err
	}
	p.Assertions = len(t.Assertions)
	return p, nil
}

// restore a backup, and start a server that has replayed all that was archived.
func (t Trial) restore(ctx context.Context, label string) (*offline.Server, error) {
	ctx, cancel := frame.Within(ctx, t.MaxRestoreSeconds)
	defer cancel()
	if err := os.MkdirAll(t.Data, 0o700); err != nil {
		return nil, fmt.Errorf("cannot prepare the folder to restore to: %w", err)
	}
	_, err := t.Run.Run(ctx, "restore", "--stanza="+t.Stanza, "--set="+label, "--archive-mode=off")
	if err != nil {
		return nil, frame.Because(ctx, &frame.Failure{Kind: members.VerifyRestore, Message: fmt.Sprintf("the backup cannot be restored: %v", err)})
	}
	major, err := os.ReadFile(filepath.Join(t.Data, "PG_VERSION"))
	if err != nil {
		return nil, &frame.Failure{Kind: members.VerifyRestore, Message: fmt.Sprintf("the backup has no data: %v", err)}
	}
	s, err := offline.Start(ctx, t.Programs(strings.TrimSpace(string(major))), t.Data, t.Folder, t.Preload)
	var unusable *offline.Unusable
	if errors.As(err, &unusable) {
		err = &frame.Failure{Kind: members.VerifyRestore, Message: unusable.Message}
	}
	if err != nil {
		return nil, frame.Because(ctx, err)
	}
	return s, nil
}
