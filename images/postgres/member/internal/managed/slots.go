// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// register of the slots that Capstan made. It is in the database postgres, where only the superuser makes anything. A slot that is in
// it and not in the server was lost: made again, it would hide that its consumer lacks changes.
const register = "replication.slots"

// The register of slots, as statements.
var makeRegister = []string{"create schema if not exists replication", "create table if not exists " + register + " (name text primary key)"}

// firstWithFailoverSlots is the first version in which standbys keep copies of the leader's slots.
const firstWithFailoverSlots = 170000

// A slot as it is.
type slot struct {
	exists, active, failover  bool
	database, plugin, lostWAL string
}

// slots of the spec: those that are missing are made, and those that are in the register only are dropped once no consumer reads
// them. It returns the databases that are not there yet.
func slots(ctx context.Context, conn *pgx.Conn, socket string, wanted []pgmember.Slot) (missing []string, err error) {
	var registered bool
	if _, err := row(ctx, conn, "look for the register of slots", "select to_regclass('"+register+"') is not null", nil, &registered); err != nil {
		return nil, err
	}
	if len(wanted) == 0 && !registered {
		return nil, nil
	}
	if !registered {
		if err := do(ctx, conn, "make the register of slots", makeRegister...); err != nil {
			return nil, err
		}
	}
	made, err := List(ctx, conn, "select name from "+register+" order by 1")
	if err != nil {
		return nil, fmt.Errorf("cannot read the register of slots: %w", err)
	}
	var problems []error
	for _, n := range made {
		if !slices.ContainsFunc(wanted, func(w pgmember.Slot) bool { return w.Name == n }) {
			problems = append(problems, unlisted(ctx, conn, n))
		}
	}
	for _, w := range wanted {
		there, err := listed(ctx, conn, socket, w, slices.Contains(made, w.Name))
		if !there {
			missing = append(missing, w.Database)
		}
		problems = append(problems, err)
	}
	return missing, errors.Join(problems...)
}

func lookAtSlot(ctx context.Context, conn *pgx.Conn, which string) (slot, error) {
	var s slot
	var err error
	s.exists, err = row(ctx, conn, fmt.Sprintf("look at replication slot %q", which), `select active, failover, coalesce(database::text, ''), coalesce(plugin::text, ''),
		case when wal_status = 'lost' then coalesce(invalidation_reason, 'lost') else '' end from pg_replication_slots where slot_name = $1`,
		[]any{which}, &s.active, &s.failover, &s.database, &s.plugin, &s.lostWAL)
	return s, err
}

// unlisted drops a slot that the spec lists no more, unless its consumer still reads it.
func unlisted(ctx context.Context, conn *pgx.Conn, which string) error {
	is, err := lookAtSlot(ctx, conn, which)
	switch {
	case err != nil:
		return err
	case is.active:
		return fmt.Errorf("replication slot %q is not in spec.replication.slots and a consumer reads it: stop the consumer", which)
	case is.exists:
		if _, err := conn.Exec(ctx, "select pg_drop_replication_slot($1)", which); err != nil {
			return fmt.Errorf("cannot drop replication slot %q: %w", which, err)
		}
	}
	if _, err := conn.Exec(ctx, "delete from "+register+" where name = $1", which); err != nil {
		return fmt.Errorf("cannot forget replication slot %q: %w", which, err)
	}
	return nil
}

// listed makes a slot of the spec unless it is there. It reports whether the slot's database is there.
func listed(ctx context.Context, conn *pgx.Conn, socket string, w pgmember.Slot, made bool) (there bool, err error) {
	is, err := lookAtSlot(ctx, conn, w.Name)
	if err != nil {
		return true, err
	}
	if problem := differs(is, w, made); problem != nil || is.exists {
		return true, problem
	}
	if there, err = row(ctx, conn, "look for a database", "select from pg_database where datallowconn and datname = $1", []any{w.Database}); err != nil || !there {
		return there, err
	}
	if _, err := conn.Exec(ctx, "insert into "+register+" values ($1)", w.Name); err != nil {
		return true, fmt.Errorf("cannot note replication slot %q: %w", w.Name, err)
	}
	if err := makeSlot(ctx, socket, w); err != nil {
		_, forget := conn.Exec(ctx, "delete from "+register+" where name = $1", w.Name)
		return true, errors.Join(err, forget)
	}
	return true, nil
}

// differs says what keeps a slot from being what the spec says.
func differs(is slot, w pgmember.Slot, made bool) error {
	switch {
	case !is.exists && made:
		return fmt.Errorf("replication slot %q is gone, and its consumer lacks changes: remove it from spec.replication.slots, add it again, "+
			"and let the consumer copy all data again", w.Name)
	case is.exists && !made:
		return fmt.Errorf("replication slot %q exists and Capstan did not make it: drop it, or choose another name", w.Name)
	case is.exists && (is.database != w.Database || is.plugin != w.Plugin || !is.failover):
		return fmt.Errorf("replication slot %q is for database %q with plugin %q: remove it from spec.replication.slots and add it again, "+
			"or choose another name", w.Name, is.database, is.plugin)
	case is.lostWAL != "":
		return fmt.Errorf("replication slot %q has lost changes (%s), because its consumer was down for too long: remove it from spec.replication.slots, "+
			"add it again, and let the consumer copy all data again", w.Name, is.lostWAL)
	}
	return nil
}

// makeSlot with which standbys keep up, so that it survives a failover.
func makeSlot(ctx context.Context, socket string, w pgmember.Slot) error {
	conn, err := connect(ctx, socket, w.Database)
	if err != nil {
		return err
	}
	defer Close(ctx, conn)
	if _, err := conn.Exec(ctx, "select pg_create_logical_replication_slot($1, $2, failover => true)", w.Name, w.Plugin); err != nil {
		return fmt.Errorf("cannot make replication slot %q in database %q: %w", w.Name, w.Database, err)
	}
	return nil
}

// DropFormer drops slots that a standby has from the time when it was the leader. They stand in the way of copies of the leader's
// slots of the same name, and keep write-ahead log for no consumer.
func DropFormer(ctx context.Context, socket string) error {
	conn, err := connect(ctx, socket, "postgres")
	if err != nil {
		return err
	}
	defer Close(ctx, conn)
	var version int
	if _, err := row(ctx, conn, "ask for the version", "select current_setting('server_version_num')::int", nil, &version); err != nil || version < firstWithFailoverSlots {
		return err
	}
	former, err := List(ctx, conn, `select slot_name::text from pg_replication_slots
		where pg_is_in_recovery() and slot_type = 'logical' and failover and not synced and not temporary and not active`)
	if err != nil {
		return fmt.Errorf("cannot look for slots of a former leader: %w", err)
	}
	for _, n := range former {
		if _, err := conn.Exec(ctx, "select pg_drop_replication_slot($1) where pg_is_in_recovery()", n); err != nil {
			return fmt.Errorf("cannot drop replication slot %q of the former leader: %w", n, err)
		}
	}
	return nil
}
