// SPDX-License-Identifier: Apache-2.0

// Package importing fills a new Database from a running server or from dumps in a bucket. Of a server it checks the source, copies schema and
// rows, follows changes by logical replication, and cuts over on request. Dumps it checks and restores, once. It runs on the leader, and
// everything it does may be done again by another one.
package importing

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// failingFor is how long an error of a worker counts, and how long a worker may be away.
const failingFor = time.Minute

// A run of an import: one look, with what follows from it.
type run struct {
	config   members.Import
	from     source
	schema   schemaCopy
	identity string
	database string
	progress progress
	seen     *pace
	// secret is the folder of the Secret of the source.
	secret string
	// system is this server, as PostgreSQL identifies it.
	system string
	// request reads the request to cut over again.
	request func() (*members.CutOver, error)
}

func (r *run) named(logical string) string { return named(r.database, r.identity, logical) }

// NewKeeper imports while its member is the leader. Dumps have a DumpKeeper, which reports of them.
func NewKeeper(n layout.Names, leads func() bool, reporter *report.Reporter, log *slog.Logger) *importing.Keeper {
	seen := pace{}
	k := &importing.Keeper{
		Leads: leads, Reporter: reporter, Log: log, Rest: func(context.Context) { seen = pace{} },
		Config: func() (*members.Import, error) {
			config, err := layout.ReadConfig()
			return config.Import, err
		},
		Elsewhere: func() bool {
			config, err := layout.ReadConfig()
			return err == nil && config.Dumps != nil
		},
		Without: func(ctx context.Context) error {
			forgetPassword(passwords)
			return Release(ctx)
		},
	}
	k.Work = func(ctx context.Context, i members.Import, show func(members.ImportReport)) (members.ImportReport, time.Duration) {
		r := &run{config: i, identity: n.Identity, database: n.Database, seen: &seen, request: k.Request, secret: members.FolderImport}
		r.schema = schemaCopy{programs: pgmember.Programs(n.Version), memory: pgmember.FolderPrivate, disk: layout.ImportSchema, ip: n.IP}
		return r.once(ctx, show)
	}
	return k
}

// once looks, does what is next, and returns what there is to report.
func (r *run) once(ctx context.Context, tell func(members.ImportReport)) (members.ImportReport, time.Duration) {
	conn, err := local(ctx, "postgres")
	if err != nil {
		return members.ImportReport{State: members.ImportChecking, Message: "the server of this Database does not answer: " + err.Error()}, importing.Every
	}
	defer managed.Close(ctx, conn)
	requested := ""
	if r.config.CutOver != nil {
		requested = r.config.CutOver.ID
	}
	if r.progress, err = readRegister(ctx, conn, r.config.Object, requested); err != nil {
		return members.ImportReport{State: members.ImportChecking, Message: err.Error()}, importing.Every
	}
	if err := conn.QueryRow(ctx, "select system_identifier::text from pg_control_system()").Scan(&r.system); err != nil {
		return members.ImportReport{State: members.ImportChecking, Message: "the server of this Database does not report its identifier: " + err.Error()}, importing.Every
	}
	out, pause := r.next(ctx, conn, tell)
	out.Skipped = r.progress.cuts.Skipped()
	if out.State == members.ImportFailing && slices.ContainsFunc(r.progress.fences, func(f fenced) bool { return f.since != nil }) {
		out.Message += "; the source is read-only meanwhile, because of spec.cutOver.stopWrites: remove spec.cutOver to undo that"
	}
	return out, pause
}

func (r *run) next(ctx context.Context, conn *pgx.Conn, tell func(members.ImportReport)) (members.ImportReport, time.Duration) {
	if settled := r.progress.cuts.Settled(r.config, len(r.progress.phases) > 0); settled != nil {
		if settled.CutOver == "" && settled.State == members.ImportCutOver {
			if err := Release(ctx); err != nil {
				settled.Message = err.Error()
				return *settled, importing.Every
			}
		}
		if settled.State == members.ImportFailing {
			return *settled, importing.Every
		}
		return *settled, importing.Idle
	}
	var err error
	if r.from, err = openSource(r.config, r.secret, passwords); err != nil {
		return r.failed(err), importing.Every
	}
	r.schema.from = r.from
	if drained := r.progress.cuts.Drained(); drained != nil {
		out := members.ImportReport{State: members.ImportCuttingOver, CutOver: drained.ID, Copied: 100, Message: "everything is here, and the source is being left"}
		tell(out)
		if err := r.finish(ctx, conn, *drained); err != nil {
			out.Message = err.Error()
			return out, importing.Soon
		}
		return out, importing.AtOnce
	}
	if err := r.lowered(ctx, conn); err != nil {
		return r.failed(err), importing.Every
	}
	// What a leader that was lost has left.
	if err := removeRole(ctx, conn, restorer); err != nil {
		return r.failed(err), importing.Every
	}
	left, err := r.forget(ctx, conn)
	if err != nil {
		return members.ImportReport{State: members.ImportFailing, Message: err.Error()}, importing.Every
	}
	began, out, pause := r.started(ctx, conn, tell)
	if began {
		out, pause = r.follow(ctx, conn, tell)
	}
	if len(left) > 0 {
		out.Message += "; " + leftThere + importing.Some(left)
	}
	return out, pause
}

// forget databases that are no longer imported: they are not followed any more, here and at the source. What a source still has of them,
// because it does not release it, is returned, and tried again at the next look. It holds nothing else up.
func (r *run) forget(ctx context.Context, conn *pgx.Conn) (left []string, err error) {
	for _, d := range r.progress.unlisted(r.config.Databases) {
		what, err := r.leave(ctx, conn, d)
		if err != nil {
			return left, fmt.Errorf("database %q is no longer imported, and cannot be left: %w", d.Name, err)
		}
		statement := "delete from import.databases where name = $1"
		if what != nil {
			left, statement = append(left, what.Error()), "update import.databases set phase = '"+phaseLeft+"' where name = $1"
		}
		if _, err := conn.Exec(ctx, statement, d.Name); err != nil {
			return left, fmt.Errorf("cannot forget database %q: %w", d.Name, err)
		}
		delete(r.progress.phases, d.Name)
	}
	return left, nil
}

// failed is a look that did not succeed: before something is copied, it is a finding.
func (r *run) failed(err error) members.ImportReport {
	if r.subscribed() {
		return members.ImportReport{State: members.ImportFailing, Message: err.Error()}
	}
	return members.ImportReport{State: members.ImportIncompatible, Message: "nothing is copied", Findings: []string{err.Error()}}
}

// subscribed reports whether every database is followed.
func (r *run) subscribed() bool {
	return !slices.ContainsFunc(r.config.Databases, func(d members.ImportDatabase) bool { return !r.progress.follows(d.Name) })
}

// started reports whether rows are copied and changes followed, and begins that. It begins no database before nothing stands in the way of any.
func (r *run) started(ctx context.Context, conn *pgx.Conn, tell func(members.ImportReport)) (bool, members.ImportReport, time.Duration) {
	if r.subscribed() {
		return true, members.ImportReport{}, 0
	}
	there, err := managed.List(ctx, conn, "select datname::text from pg_database where datallowconn")
	if err != nil {
		return false, r.failed(err), importing.Every
	}
	for _, d := range r.config.Databases {
		if !slices.Contains(there, d.Name) {
			return false, members.ImportReport{State: members.ImportChecking, Message: fmt.Sprintf("waiting for database %q to be created", d.Name)}, importing.Soon
		}
	}
	seen, err := look(ctx, r.from, r.config, r.named, r.progress)
	if err != nil {
		return false, r.failed(err), importing.Every
	}
	if fs := seen.findings(r.config.Skip); len(fs) > 0 {
		return false, members.ImportReport{State: members.ImportIncompatible, Message: "nothing is copied", Findings: fs}, importing.Every
	}
	tell(members.ImportReport{State: members.ImportCopying, Message: "the schema is being copied"})
	for _, d := range r.config.Databases {
		if r.progress.follows(d.Name) {
			continue
		}
		if err := r.begin(ctx, conn, d); err != nil {
			return false, r.failed(err), importing.Every
		}
		r.progress.phases[d.Name] = phaseSubscribed
	}
	return false, members.ImportReport{State: members.ImportCopying, Message: "rows are being copied"}, importing.Soon
}

// follow the source until the cut-over.
func (r *run) follow(ctx context.Context, conn *pgx.Conn, tell func(members.ImportReport)) (members.ImportReport, time.Duration) {
	at, err := r.position(ctx, conn)
	if err != nil {
		return r.failed(err), importing.Every
	}
	out := r.seen.next(at, time.Now())
	if out.State == members.ImportFollowing {
		if err := r.analyzed(ctx, conn); err != nil {
			return r.failed(err), importing.Every
		}
	}
	request := r.config.CutOver
	if request == nil || request.ID == r.progress.cuts.Skipped() || out.State != members.ImportFollowing {
		return out, importing.Every
	}
	out.State, out.CutOver = members.ImportCuttingOver, request.ID
	// Clients of the source need not wait for what is applied without them.
	if out.LagBytes > importing.Near && len(r.progress.fences) == 0 {
		out.Message = "waiting until less than " + importing.Size(importing.Near) + " of changes of the source wait to be applied"
		return out, importing.Soon
	}
	out.Message = "waiting until nothing writes to the source, and until its last changes are applied"
	if r.seen.waiting == "" {
		tell(out)
	}
	if err := r.cutOver(ctx, conn, *request); err != nil {
		r.seen.waiting, out.Message = err.Error(), err.Error()
		return out, importing.Soon
	}
	r.seen.waiting = ""
	return out, importing.AtOnce
}

// analyzed databases have statistics.
func (r *run) analyzed(ctx context.Context, conn *pgx.Conn) error {
	for _, d := range r.config.Databases {
		if r.progress.phases[d.Name] == phaseAnalyzed {
			continue
		}
		if err := analyze(ctx, d.Name); err != nil {
			return err
		}
		if err := note(ctx, conn, d, phaseAnalyzed, nil); err != nil {
			return err
		}
	}
	return nil
}

// A pace is what was seen at the looks before.
type pace struct {
	at     time.Time
	moved  int64
	errors int64
	erred  time.Time
	// rate is how many bytes a second were applied while there was something to apply.
	rate float64
	// arrived is how much had been copied, stood since when neither that nor moved has grown, and away since when a slot has no reader.
	arrived, copied int64
	stood, away     time.Time
	// waiting is what a cut-over waits for.
	waiting string
}

// next report, by where both sides are.
func (p *pace) next(at position, now time.Time) members.ImportReport {
	if !p.at.IsZero() {
		if took := now.Sub(p.at).Seconds(); took > 0 && at.Moved > p.moved {
			p.rate = float64(at.Moved-p.moved) / took
		}
		if at.Errors > p.errors {
			p.erred = now
		}
	}
	if p.stood.IsZero() || at.Moved > p.moved || at.Arrived != p.arrived || at.Copied != p.copied {
		p.stood = now
	}
	switch {
	case at.Idle == "":
		p.away = time.Time{}
	case p.away.IsZero():
		p.away = now
	}
	p.at, p.moved, p.errors, p.arrived, p.copied = now, at.Moved, at.Errors, at.Arrived, at.Copied
	out := members.ImportReport{State: members.ImportFollowing, Copied: 100, LagBytes: importing.Stepped(at.Behind), GapSeconds: importing.Gap(at.Behind, p.rate)}
	if at.Tables > 0 {
		out.Copied = int32(at.Copied*10/at.Tables) * 10 //nolint:gosec // It is at most 100.
	}
	switch message := p.failure(at, now); {
	case message != "":
		out.State, out.Message = members.ImportFailing, message
	case at.Copied < at.Tables:
		out.State, out.Message = members.ImportCopying, "rows are being copied"
		out.LagBytes, out.GapSeconds = 0, 0
	default:
		out.Message = "every table is copied, and changes of the source are applied: " + behind(out.LagBytes)
	}
	return out
}

// failure is why rows or changes of the source do not come, or "".
func (p *pace) failure(at position, now time.Time) string {
	switch {
	case at.Lost != "":
		return fmt.Sprintf("the source has invalidated replication slot %q, and lacks changes that are not here: make another Database, and raise max_slot_wal_keep_size there", at.Lost)
	case len(at.Changed) > 0:
		return fmt.Sprintf("the source has changed what is followed, and rows may be missing here since, also if it was undone: %s: make another Database", importing.Some(at.Changed))
	case len(at.Added) > 0:
		return fmt.Sprintf("the source has tables that were made since its schema was copied, and are not followed: %s: drop them there, or make another Database", importing.Some(at.Added))
	case !p.erred.IsZero() && now.Sub(p.erred) < failingFor:
		return "a worker that copies rows or applies changes has failed within the last minute: see the log of the leader's pod for the cause"
	case !p.away.IsZero() && now.Sub(p.away) >= failingFor:
		return fmt.Sprintf("PostgreSQL has not read replication slot %q of the source for a minute: see the log of the leader's pod for why it cannot connect there", at.Idle)
	case (at.Copied < at.Tables || importing.Stepped(at.Behind) > 0) && now.Sub(p.stood) >= importing.StalledFor:
		return fmt.Sprintf("nothing has come from the source for %d minutes although rows or changes wait: it is silent, or holds locks, or one very large transaction is applied: "+
			"look at the sessions there, and at the log of the leader's pod", int(importing.StalledFor.Minutes()))
	default:
		return ""
	}
}

// behind in words.
func behind(bytes int64) string {
	if bytes == 0 {
		return "nothing waits"
	}
	return fmt.Sprintf("about %s of its write-ahead log wait", importing.Size(bytes))
}
