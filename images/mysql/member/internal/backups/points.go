// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
)

// keptPoints are written down, so that a name that is still requested is not given twice, and reportedPoints reported.
const keptPoints, reportedPoints = 1000, 16

// MarkSource numbers the transactions that mark the restore points of a stanza.
func MarkSource(stanza string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("capstan.dev/restore-points/"+stanza)).String()
}

// A point is a restore point as it is written down, where its LSN has all transactions up to it. A report has Mark there, which is shorter.
type point struct {
	members.RestorePoint

	// Mark is its own transaction.
	Mark string `json:"mark"`
}

// points of a repository, in the object layout.RestorePoints. It is the only memory of them: like backups, it outlasts members, volumes and the
// Database. The zero value has read none.
type points struct {
	// stanza that they were read for, and all that there are.
	stanza string
	all    []point
	// made was made here and is not written down yet. Its transaction is mark.
	made *point
	mark gtid.Set
	// wait is why the requested one does not exist; "" when it does, and when none is requested.
	wait string
}

// waits reports whether a restore point waits for the archive to have its transaction.
func (p *points) waits(archived gtid.Set) bool { return p.made != nil && !archived.Contains(p.mark) }

// name the moment, if a name is requested that the repository does not have. It needs a backup that a restore begins with: facts are what
// the repository has.
func (p *points) name(ctx context.Context, k *Keeper, r Repository, h held, s mysqlmember.Backup) {
	err := p.try(ctx, k, r, h, s)
	p.wait = ""
	if err != nil {
		p.wait = lasting(err)
	}
}

func (p *points) try(ctx context.Context, k *Keeper, r Repository, h held, s mysqlmember.Backup) error {
	if !k.inventory.facts.Asked || r == nil && p.stanza != s.Stanza {
		return nil // what is wrong with the repository is reported already
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if p.stanza != s.Stanza {
		var all []point
		if _, err := r.ReadObject(ctx, layout.RestorePoints, &all); err != nil {
			return err
		}
		*p = points{stanza: s.Stanza, all: all}
	}
	if s.RestorePoint == "" {
		p.made = nil
		return nil
	}
	if i := slices.IndexFunc(p.all, func(one point) bool { return one.Name == s.RestorePoint }); i >= 0 {
		p.made = nil
		if p.all[i].Stanza != s.Stanza {
			return fmt.Errorf("the name was given at %s, to the data whose backups are in %s: choose another name", p.all[i].At, p.all[i].Stanza)
		}
		return nil
	}
	if k.inventory.facts.Label == "" {
		return errors.New("it waits for the first backup, which a restore begins with")
	}
	if p.made == nil || p.made.Name != s.RestorePoint {
		return p.make(ctx, k.Server, k.Log, h, s)
	}
	if p.waits(k.archiver.archived) {
		if h.Executed.Contains(p.mark) && !h.all().Contains(p.mark) {
			p.made = nil
			return errors.New("it was made, and the archive did not take it: it is made again when the archive works, see the condition ArchiveHealthy")
		}
		return errWaits
	}
	if r == nil {
		return errWaits
	}
	return p.write(ctx, k, r, h)
}

// write down the point that was made, once the archive has its transaction.
func (p *points) write(ctx context.Context, k *Keeper, r Repository, h held) error {
	if p.made.LSN == "" {
		before, err := k.archiver.reader.until(h, p.mark)
		if err != nil {
			return err
		}
		p.made.LSN = before.String()
	}
	// Another member may have been the leader meanwhile, and have added some. The first one of a name counts.
	var all []point
	if err := r.ChangeObject(ctx, layout.RestorePoints, &all, func() error {
		if !slices.ContainsFunc(all, func(one point) bool { return one.Name == p.made.Name }) {
			all = append(all, *p.made)
		}
		all = all[max(0, len(all)-keptPoints):]
		return nil
	}); err != nil {
		return err
	}
	p.all, p.made = all, nil
	return nil
}

var errWaits = errors.New("it waits for the archive, which does not have it yet: see the condition ArchiveHealthy")

// make a restore point: an empty transaction, which marks the moment in the binary log.
func (p *points) make(ctx context.Context, server Server, log *slog.Logger, h held, s mysqlmember.Backup) error {
	source := MarkSource(s.Stanza)
	number := h.Executed.Union(h.Received).Last(source) + 1
	var mark gtid.Builder
	if err := mark.Add(source, "", number, number); err != nil {
		return err
	}
	at := time.Now()
	if err := server.Mark(ctx, source, number); err != nil {
		return err
	}
	p.mark = mark.Set()
	// The label is another one at each try, so that one that was made and not written down is never taken for it.
	p.made = &point{members.RestorePoint{
		Name: s.RestorePoint, Label: s.RestorePoint + "@" + strconv.FormatInt(at.UnixMilli(), 36), Stanza: s.Stanza, At: at.UTC().Format(time.RFC3339),
	}, p.mark.String()}
	log.Info("made a restore point", "name", s.RestorePoint, "label", p.made.Label, "transaction", p.made.Mark)
	return errWaits
}

// restorable are the last points, and the requested one, that can be restored with the backups there are.
func (p *points) restorable(earliest, asked string) []members.RestorePoint {
	from, err := time.Parse(time.RFC3339, earliest)
	if err != nil {
		return nil
	}
	var out []members.RestorePoint
	for i, r := range p.all {
		at, err := time.Parse(time.RFC3339, r.At)
		if err != nil || r.Stanza != p.stanza || at.Before(from) || i < len(p.all)-reportedPoints && r.Name != asked {
			continue
		}
		r.LSN = r.Mark
		out = append(out, r.RestorePoint)
	}
	return out
}
