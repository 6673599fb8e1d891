// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/capstan-dev/capstan/images/member/points"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
)

// MarkSource numbers the transactions that mark the restore points of a stanza.
func MarkSource(stanza string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("capstan.dev/restore-points/"+stanza)).String()
}

// marker makes restore points as empty transactions, which mark a moment in the binary log.
type marker struct {
	server   Server
	archiver *archiver
	held     held
	// mark is the transaction of the last one that was made.
	mark *gtid.Set
}

// Make a restore point.
func (m marker) Make(ctx context.Context, p *points.Point) error {
	source := MarkSource(p.Stanza)
	number := m.held.Executed.Union(m.held.Received).Last(source) + 1
	var mark gtid.Builder
	if err := mark.Add(source, "", number, number); err != nil {
		return err
	}
	at := time.Now()
	if err := m.server.Mark(ctx, source, number); err != nil {
		return err
	}
	*m.mark = mark.Set()
	p.At, p.Mark = at.UTC().Format(time.RFC3339), m.mark.String()
	return nil
}

// Archived: the archive has the transaction of the restore point that was made last, and so all before it, which LSN then has.
func (m marker) Archived(_ context.Context, p *points.Point) error {
	switch has := m.archiver.archived.Contains(*m.mark); {
	case !has && m.held.Executed.Contains(*m.mark) && !m.held.all().Contains(*m.mark):
		return points.ErrDropped
	case !has:
		return points.ErrWaits
	case p.LSN != "":
		return nil
	}
	before, err := m.archiver.reader.until(m.held, *m.mark)
	if err != nil {
		return err
	}
	p.LSN = before.String()
	return nil
}

// pointsOf a repository.
type pointsOf struct{ Repository }

// Read all points.
func (r pointsOf) Read(ctx context.Context, all *[]points.Point) error {
	_, err := r.ReadObject(ctx, layout.RestorePoints, all)
	return err
}

// Change reads all points, lets a function change them, and writes them.
func (r pointsOf) Change(ctx context.Context, all *[]points.Point, change func()) error {
	return r.ChangeObject(ctx, layout.RestorePoints, all, func() error { change(); return nil })
}
