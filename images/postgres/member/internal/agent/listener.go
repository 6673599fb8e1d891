// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"strings"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/notes"
)

// A Listener receives notes and wakes the loops that they are for.
type Listener struct {
	reporter                         *report.Reporter
	label, backupEnded, archiveNoted loop.Wakeup
	log                              *slog.Logger
}

// Run until the context ends.
func (l *Listener) Run(ctx context.Context) error {
	return notes.Receive(ctx, func(text string) {
		l.log.Info("received", "note", text)
		switch subject, said, _ := strings.Cut(text, ": "); subject {
		case notes.Backup:
			l.backupEnded.Call()
		case notes.Archive:
			l.archiveNoted.Call()
		case notes.Restore:
			l.reporter.Block(members.ReasonRestoreFailed, said)
		default:
			l.label.Call()
		}
	})
}
