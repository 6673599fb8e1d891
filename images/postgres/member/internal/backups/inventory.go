// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"errors"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/repository"
)

// How often the leader reads what backups there are: by itself, and for a while after a backup ended, because the repository has
// it a moment later.
const (
	infoEvery = 10 * time.Minute
	infoSoon  = 3 * time.Minute
)

// An inventory is what the repository has.
type inventory struct {
	// facts are what the repository has, as of asked. Until soon it is read often. `led` reports whether this member was the
	// leader then.
	facts       members.BackupReport
	asked, soon time.Time
	led         bool
}

// readOften for a while.
func (v *inventory) readOften() { v.soon = time.Now().Add(infoSoon) }

// expire what is known, so that a new configuration is checked now instead of after infoEvery.
func (v *inventory) expire() { v.asked = time.Time{} }

// forget what is known: there are no backups any more.
func (v *inventory) forget() { v.facts, v.asked = members.BackupReport{}, time.Time{} }

// ask the repository what backups there are, if this member is the leader and it is due.
func (v *inventory) ask(ctx context.Context, s pgmember.Backup, leads bool, trouble error) {
	led := v.led
	v.led = leads
	now := time.Now()
	if !v.led || led && now.Sub(v.asked) < infoEvery && now.After(v.soon) {
		return
	}
	v.asked = now
	if trouble == nil {
		trouble = v.read(ctx, s)
	}
	if trouble != nil {
		// What was known stays. A repository that comes back soon is noticed soon.
		v.facts.Unread, v.facts.Key = trouble.Error(), keyTrouble(trouble)
		v.readOften()
	}
}

// read what backups there are. A missing stanza is created, because archiving needs it. One of other data is never overwritten.
func (v *inventory) read(ctx context.Context, s pgmember.Backup) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	run := pgbackrest.Runner{Program: pgbackrest.Program, Config: layout.PgBackRest}
	all, err := run.Info(ctx, s.Stanza)
	if err != nil {
		return err
	}
	if pgbackrest.Missing(all) {
		if err := repository.CreateStanza(ctx, run, s); err != nil {
			return err
		}
	}
	facts := members.BackupReport{Asked: true}
	stanza := pgbackrest.Latest(all)
	if last, ok := stanza.Last(); ok {
		facts.Label, facts.Type, facts.Size, facts.Added = last.Label, last.Type, last.Info.Size, last.Info.Repository.Delta
		facts.Began, facts.Ended = last.Began().Format(time.RFC3339), last.Ended().Format(time.RFC3339)
		facts.Earliest = stanza.Backups[0].Ended().Format(time.RFC3339)
	}
	v.facts = facts
	return nil
}

// keyTrouble is what is wrong with the key, as one of members.Key…; "" when something else is wrong.
func keyTrouble(err error) string {
	var missing *pgbackrest.NotReadyError
	switch {
	case errors.As(err, &missing):
		return missing.Key
	case pgbackrest.Locked(err):
		return members.KeyMismatch
	}
	return ""
}
