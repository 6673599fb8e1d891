// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// cutOver ends the import if the source is quiet: everything that it committed is here. What has to hold at the end is checked at the end: that
// nothing was written, that tables are the same, and that the cut-over is still requested.
func (r *run) cutOver(ctx context.Context, request members.CutOver) error {
	began := time.Now()
	if request.StopWrites {
		if err := r.raise(ctx, request.ID); err != nil {
			return err
		}
	}
	first, err := r.quiet(ctx, request)
	if err != nil {
		return err
	}
	if !request.StopWrites {
		if err := importing.Pause(ctx, importing.QuietFor); err != nil {
			return err
		}
	}
	if err := r.unchanged(ctx, request, first, "the source still takes writes"); err != nil {
		return err
	}
	if err := r.drain(ctx, first); err != nil {
		return err
	}
	if err := r.same(ctx); err != nil {
		return err
	}
	if err := r.unchanged(ctx, request, first, "something wrote to the source again"); err != nil {
		return err
	}
	switch still, err := r.request(); {
	case err != nil:
		return err
	case still == nil || *still != request:
		return importing.Wait("the request has changed meanwhile")
	}
	r.state.cut(importing.Cut{ID: request.ID, Phase: importing.CutDrained, Gap: int64(time.Since(began)/time.Second) + 1})
	return r.note(ctx)
}

// quiet are all transactions of the source, when none that writes is under way. Every change is in one, also of a schema and of accounts.
func (r *run) quiet(ctx context.Context, request members.CutOver) (set gtid.Set, err error) {
	err = r.from.visit(ctx, answerLimit, func(ctx context.Context, c *sql.Conn) error {
		var open int
		var readOnly bool
		if err := c.QueryRowContext(ctx, "SELECT (SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_rows_modified > 0), @@GLOBAL.super_read_only").Scan(&open, &readOnly); err != nil {
			return fmt.Errorf("cannot find out whether the source takes writes: %w", said(err))
		}
		switch {
		case request.StopWrites && !readOnly:
			return importing.Wait("the source is not read-only any more, and is made so again")
		case !request.StopWrites && open > 0:
			return importing.Wait("a transaction that writes is open at the source: stop its clients, or set spec.cutOver.stopWrites")
		}
		p, err := at(ctx, c)
		set = p.Executed
		return err
	})
	return set, err
}

// unchanged reports whether nothing was written since.
func (r *run) unchanged(ctx context.Context, request members.CutOver, since gtid.Set, why string) error {
	now, err := r.quiet(ctx, request)
	switch {
	case err != nil:
		return err
	case now.String() == since.String():
		return nil
	case request.StopWrites:
		return importing.Wait("%s although it is read-only: stop replication to it", why)
	}
	return importing.Wait("%s: stop its clients, or set spec.cutOver.stopWrites", why)
}

// drain waits until everything that the source committed is applied.
func (r *run) drain(ctx context.Context, committed gtid.Set) error {
	want := committed.Minus(r.state.Copied)
	for until := time.Now().Add(importing.DrainLimit); ; {
		has, err := r.executed(ctx)
		if err != nil || has.Contains(want) {
			return err
		}
		if _, err := r.channel(ctx); err != nil {
			return err
		}
		if time.Now().After(until) {
			return importing.Wait("changes of the source are being applied for longer than %s", importing.DrainLimit)
		}
		if err := importing.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// raise a fence: the source takes no writes. What it was before is noted first.
func (r *run) raise(ctx context.Context, id string) error {
	return r.from.visit(ctx, answerLimit, func(ctx context.Context, c *sql.Conn) error {
		f := fence{Cut: id}
		if err := c.QueryRowContext(ctx, "SELECT @@GLOBAL.read_only, @@GLOBAL.super_read_only").Scan(&f.ReadOnly, &f.Super); err != nil {
			return fmt.Errorf("cannot look at the source: %w", said(err))
		}
		if r.state.Fence == nil {
			r.state.Fence = &f
			if err := r.note(ctx); err != nil {
				return err
			}
		}
		if f.Super {
			return nil
		}
		// It waits for commits that are under way. No right of a client passes it.
		if _, err := c.ExecContext(ctx, "SET GLOBAL super_read_only = ON"); err != nil {
			return importing.Wait("the source cannot be made read-only (%s): stop its clients yourself and remove spec.cutOver.stopWrites, or grant system_variables_admin and "+
				"connection_admin to the user of the import", said(err))
		}
		return nil
	})
}

// lower the fence when no request wants it any more.
func (r *run) lower(ctx context.Context) error {
	f, c := r.state.Fence, r.config.CutOver
	if f == nil || c != nil && c.StopWrites && c.ID == f.Cut {
		return nil
	}
	if !f.Super {
		err := r.from.visit(ctx, answerLimit, func(ctx context.Context, c *sql.Conn) error {
			statement := "SET GLOBAL super_read_only = OFF"
			if !f.ReadOnly {
				statement = "SET GLOBAL read_only = OFF" // which ends both
			}
			_, err := c.ExecContext(ctx, statement)
			return said(err)
		})
		if err != nil {
			return fmt.Errorf("cannot let the source take writes again: %w", err)
		}
	}
	r.state.Fence = nil
	return r.note(ctx)
}
