// SPDX-License-Identifier: Apache-2.0

// Package importing fills a new Database from a running server: it checks the source, copies schema and rows, follows changes by a replication
// channel, and cuts over on request. It runs on the leader, and everything it does may be done again by another one.
package importing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// A pace is what was seen at the looks before.
type pace struct {
	// channel is what the channel was made with by this leader; "" before.
	channel string
	// place in the log of the source up to which changes are applied, and since when it is that.
	place string
	stood time.Time
	// waits is what a cut-over waits for.
	waits string
}

// stalls reports whether nothing was applied for long although something waits.
func (p *pace) stalls(place string, waits int64, now time.Time) bool {
	if p.stood.IsZero() || p.place != place || importing.Stepped(waits) == 0 {
		p.place, p.stood = place, now
	}
	return now.Sub(p.stood) >= importing.StalledFor
}

// A run of an import: one look, with what follows from it.
type run struct {
	config  members.Import
	here    *mysql.Server
	from    source
	state   state
	seen    *pace
	request func() (*members.CutOver, error)
	log     *slog.Logger
}

// NewKeeper imports while its member is the leader.
func NewKeeper(here *mysql.Server, leads func() bool, reporter *report.Reporter, log *slog.Logger) *importing.Keeper {
	seen := pace{}
	config := func() (*members.Import, error) {
		c, err := layout.ReadConfig()
		return c.Import, err
	}
	k := &importing.Keeper{Leads: leads, Config: config, Reporter: reporter, Log: log}
	rested := false
	k.Rest = func(ctx context.Context) {
		seen = pace{}
		i, err := config()
		if err != nil || i == nil || i.Ended && rested {
			return
		}
		// One that was the leader follows the group again, and nothing else. It enters no group while a channel runs.
		if err := here.EndImport(ctx); err != nil {
			log.Debug("cannot end the channel of the import", "error", err)
			return
		}
		rested = true
	}
	k.Without = func(ctx context.Context) error { return release(ctx, here) }
	k.Work = func(ctx context.Context, i members.Import, show func(members.ImportReport)) (members.ImportReport, time.Duration) {
		r := &run{config: i, here: here, seen: &seen, request: k.Request, log: log}
		out, pause := r.once(ctx, show)
		out.Skipped = r.state.Cuts.Skipped()
		if out.State == members.ImportFailing && r.state.Fence != nil {
			out.Message += "; the source is read-only meanwhile, because of spec.cutOver.stopWrites: remove spec.cutOver to undo that"
		}
		return out, pause
	}
	return k
}

// release what connects this server to a source.
func release(ctx context.Context, here *mysql.Server) error {
	if err := here.EndImport(ctx); err != nil {
		return err
	}
	return here.Session(ctx, "remove the account of the import", func(c *sql.Conn) error {
		there, err := list(ctx, c, "SELECT 1 FROM mysql.user WHERE user = "+mysql.Text(mysqlmember.AccountImport))
		if err == nil && len(there) > 0 {
			_, err = c.ExecContext(ctx, "DROP USER IF EXISTS "+mysqlmember.AccountImport+"@localhost")
		}
		return err
	})
}

// names of the databases, which are the same on both sides, and databases are the names as a list of SQL.
func (r *run) names() (names []string) {
	for _, d := range r.config.Databases {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

func (r *run) databases() string {
	names := r.names()
	for i := range names {
		names[i] = mysql.Text(names[i])
	}
	return strings.Join(names, ", ")
}

func checking(format string, args ...any) members.ImportReport {
	return members.ImportReport{State: members.ImportChecking, Message: fmt.Sprintf(format, args...)}
}

// failed is a look that did not succeed: before something is copied, it is a finding.
func (r *run) failed(err error) members.ImportReport {
	if r.state.begun() {
		return members.ImportReport{State: members.ImportFailing, Message: err.Error()}
	}
	return members.ImportReport{State: members.ImportIncompatible, Message: "nothing is copied", Findings: []string{err.Error()}}
}

// once looks, does what is next, and returns what there is to report.
func (r *run) once(ctx context.Context, show func(members.ImportReport)) (members.ImportReport, time.Duration) {
	var err error
	if r.state, err = readState(ctx, r.here); err == nil {
		err = r.meet(ctx)
	}
	if err != nil {
		return checking("%s", err), importing.Every
	}
	if settled := r.state.Cuts.Settled(r.config, r.state.begun()); settled != nil {
		if settled.State == members.ImportFailing {
			return *settled, importing.Every
		}
		if err := release(ctx, r.here); err != nil {
			settled.Message = err.Error()
			return *settled, importing.Every
		}
		return *settled, importing.Idle
	}
	if drained := r.state.Cuts.Drained(); drained != nil {
		out := members.ImportReport{State: members.ImportCuttingOver, CutOver: drained.ID, Copied: 100, Message: "everything is here, and the source is being left"}
		if err := release(ctx, r.here); err != nil {
			out.Message = err.Error()
			return out, importing.Soon
		}
		drained.Phase = importing.CutDone
		if err := r.note(ctx); err != nil {
			out.Message = err.Error()
			return out, importing.Soon
		}
		return out, importing.AtOnce
	}
	if r.from, err = openSource(r.config, members.FolderImport); err != nil {
		return r.failed(err), importing.Every
	}
	if err := r.lower(ctx); err != nil {
		return r.failed(err), importing.Every
	}
	if r.state.begun() && !slices.Equal(r.state.Databases, r.names()) {
		return members.ImportReport{State: members.ImportFailing, Message: fmt.Sprintf("the databases that are imported have changed, and were %s: set spec.databases as before, or make another Database",
			importing.Some(r.state.Databases))}, importing.Every
	}
	if other := r.state.Other; other != "" {
		return r.failed(fmt.Errorf("another server than the one that was copied has answered at the host of the source (it was %s, and was then %s), so rows may be missing here or be of that one: "+
			"make another Database", r.state.Server, other)), importing.Every
	}
	if !r.state.Following {
		return r.start(ctx, show)
	}
	return r.follow(ctx, show)
}

// start copies what the source has, once nothing stands in the way.
func (r *run) start(ctx context.Context, show func(members.ImportReport)) (members.ImportReport, time.Duration) {
	var there [][]string
	if err := r.here.Session(ctx, "list databases", func(c *sql.Conn) (err error) {
		there, err = list(ctx, c, "SELECT schema_name FROM information_schema.schemata WHERE schema_name IN ("+r.databases()+")")
		return err
	}); err != nil {
		return r.failed(err), importing.Every
	}
	for _, d := range r.names() {
		if !slices.ContainsFunc(there, func(row []string) bool { return row[0] == d }) {
			return checking("waiting for database %q to be created", d), importing.Soon
		}
	}
	seen, err := r.look(ctx)
	if err != nil {
		return r.failed(err), importing.Every
	}
	if fs := seen.findings(r.from.User, r.config.Skip); len(fs) > 0 {
		return members.ImportReport{State: members.ImportIncompatible, Message: "nothing is copied", Findings: fs}, importing.Every
	}
	show(members.ImportReport{State: members.ImportCopying, Message: "the schema is being copied"})
	if err := r.copy(ctx, show); err != nil {
		return members.ImportReport{State: members.ImportFailing, Message: err.Error() + ": everything is copied again"}, importing.Every
	}
	return members.ImportReport{State: members.ImportCopying, Copied: 100, Message: "rows are copied"}, importing.AtOnce
}

// follow the source until the cut-over.
func (r *run) follow(ctx context.Context, show func(members.ImportReport)) (members.ImportReport, time.Duration) {
	var is string
	var logs [][]string
	err := r.from.visit(ctx, answerLimit, func(ctx context.Context, c *sql.Conn) error {
		p, err := at(ctx, c)
		if err != nil {
			return err
		}
		if is = p.Server; is == r.state.Server {
			logs, err = logsOf(ctx, c)
		}
		return err
	})
	if err == nil && is != r.state.Server {
		err = errors.Join(fmt.Errorf("the host of the source is another server than the one that was copied (it was %s, and is %s): look at spec.from.server.host and at its name service",
			r.state.Server, importing.Shortened(is, importing.MaxQuoted)), r.here.StopImport(ctx))
	}
	if err != nil {
		return r.failed(err), importing.Every
	}
	applied, err := r.channel(ctx)
	if err != nil {
		return r.failed(err), importing.Every
	}
	bytes := behind(logs, r.state.File, r.state.Position)
	if r.seen.stalls(applied, bytes, time.Now()) {
		return r.failed(fmt.Errorf("nothing has come from the source for %d minutes although changes wait: look at the sessions there, and at the log of the leader's pod",
			int(importing.StalledFor.Minutes()))), importing.Every
	}
	out := members.ImportReport{State: members.ImportFollowing, Copied: 100, LagBytes: importing.Stepped(bytes), GapSeconds: importing.Gap(bytes, 0)}
	out.Message = "every table is copied, and changes of the source are applied: nothing waits"
	if out.LagBytes > 0 {
		out.Message = fmt.Sprintf("every table is copied, and changes of the source are applied: about %s of its binary log wait", importing.Size(out.LagBytes))
	}
	request := r.config.CutOver
	if request == nil || request.ID == r.state.Cuts.Skipped() {
		return out, importing.Every
	}
	out.State, out.CutOver = members.ImportCuttingOver, request.ID
	if out.LagBytes > importing.Near && r.state.Fence == nil {
		out.Message = "waiting until less than " + importing.Size(importing.Near) + " of changes of the source wait to be applied"
		return out, importing.Soon
	}
	out.Message = "waiting until nothing writes to the source, and until its last changes are applied"
	if r.seen.waits == "" {
		show(out)
	}
	if err := r.cutOver(ctx, *request); err != nil {
		r.seen.waits, out.Message = err.Error(), err.Error()
		return out, importing.Soon
	}
	r.seen.waits = ""
	return out, importing.AtOnce
}

// executed are the transactions that this server has.
func (r *run) executed(ctx context.Context) (set gtid.Set, err error) {
	err = r.here.Session(ctx, "find out what is applied", func(c *sql.Conn) error {
		var text string
		if err := c.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&text); err != nil {
			return err
		}
		set, err = gtid.Parse(text)
		return err
	})
	return set, err
}
