// SPDX-License-Identifier: Apache-2.0

// Package importing fills a new Database from a running server or from dumps in a bucket. Of a server it checks the source, copies schema and
// rows, follows changes by logical replication, and cuts over on request. Dumps it checks and restores, once. It runs on the leader, and
// everything it does may be done again by another one.
package importing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

const (
	// every is the pause between two looks, soon that while something is under way, and idle that without an import.
	every, soon, idle = 10 * time.Second, time.Second, 10 * time.Minute
	// standbyEvery is how often a standby checks whether it is the leader.
	standbyEvery = 5 * time.Second
	// atOnce is the pause before a step that clients wait for.
	atOnce = 50 * time.Millisecond
	// failingFor is how long an error of a worker counts, and how long a worker may be away.
	failingFor = time.Minute
	// stalledFor is how long nothing may come although something waits.
	stalledFor = 10 * time.Minute
	// onceLimit is how long one look may take, with all that it does.
	onceLimit = 3 * time.Hour
	// maxFindings that are reported.
	maxFindings = 16
)

// A Keeper imports while its member is the leader.
type Keeper struct {
	Names    layout.Names
	Leads    func() bool
	Reporter *report.Reporter
	Log      *slog.Logger

	seen pace
	last string
}

// A run of an import: one look, with what follows from it.
type run struct {
	config   pgmember.Import
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
	request func() (*pgmember.CutOver, error)
}

func (r *run) named(logical string) string { return named(r.database, r.identity, logical) }

// Once does what is next, and returns the pause before the next time.
func (k *Keeper) Once(ctx context.Context) time.Duration {
	config, err := layout.ReadConfig()
	if err == nil && config.Dumps != nil {
		return idle // A DumpKeeper reports of them.
	}
	if err != nil || !k.Leads() {
		k.show(nil)
		k.seen = pace{}
		return standbyEvery
	}
	if config.Import == nil {
		k.show(nil)
		forgetPassword(passwords)
		if err := Release(ctx); err != nil {
			k.Log.Info("cannot look for subscriptions of an import", "error", err)
			return every
		}
		return idle
	}
	ctx, cancel := context.WithTimeout(ctx, onceLimit)
	defer cancel()
	r := &run{config: *config.Import, identity: k.Names.Identity, database: k.Names.Database, seen: &k.seen, request: k.request, secret: pgmember.FolderImport}
	r.schema = schemaCopy{programs: pgmember.Programs(k.Names.Version), memory: pgmember.FolderPrivate, disk: layout.ImportSchema, ip: k.Names.IP}
	// A look that does not end although it should is reported beside it.
	late := time.AfterFunc(onceLimit+time.Minute, func() {
		k.Reporter.Change(func(r *members.Report) {
			r.Import = &members.ImportReport{State: members.ImportFailing, Message: "a look at the source does not end: see the log of the leader's pod, and restart it"}
		})
	})
	defer late.Stop()
	now, pause := r.once(ctx, func(told members.ImportReport) { k.show(&told) })
	if !k.Leads() {
		return standbyEvery
	}
	k.show(&now)
	return pause
}

// request to cut over, as it is at this moment.
func (k *Keeper) request() (*pgmember.CutOver, error) {
	config, err := layout.ReadConfig()
	if err != nil {
		return nil, err
	}
	if config.Import == nil || !k.Leads() {
		return nil, nil //nolint:nilnil // There is none.
	}
	return config.Import.CutOver, nil
}

// show what was seen. Only a change of the state is logged.
func (k *Keeper) show(now *members.ImportReport) {
	if now != nil && now.State+now.Message != k.last {
		k.last = now.State + now.Message
		k.Log.Info("looked at the import", "state", now.State, "message", now.Message, "findings", now.Findings)
	}
	k.Reporter.Change(func(r *members.Report) { r.Import = now })
}

// once looks, does what is next, and returns what there is to report.
func (r *run) once(ctx context.Context, tell func(members.ImportReport)) (members.ImportReport, time.Duration) {
	conn, err := local(ctx, "postgres")
	if err != nil {
		return members.ImportReport{State: members.ImportChecking, Message: "the server of this Database does not answer: " + err.Error()}, every
	}
	defer managed.Close(ctx, conn)
	requested := ""
	if r.config.CutOver != nil {
		requested = r.config.CutOver.ID
	}
	if r.progress, err = readRegister(ctx, conn, r.config.Object, requested); err != nil {
		return members.ImportReport{State: members.ImportChecking, Message: err.Error()}, every
	}
	if err := conn.QueryRow(ctx, "select system_identifier::text from pg_control_system()").Scan(&r.system); err != nil {
		return members.ImportReport{State: members.ImportChecking, Message: "the server of this Database does not report its identifier: " + err.Error()}, every
	}
	out, pause := r.next(ctx, conn, tell)
	out.Skipped = r.progress.skipped()
	if out.State == members.ImportFailing && slices.ContainsFunc(r.progress.fences, func(f fenced) bool { return f.since != nil }) {
		out.Message += "; the source is read-only meanwhile, because of spec.cutOver.stopWrites: remove spec.cutOver to undo that"
	}
	out.Message, out.Findings = shortened(out.Message, maxMessage), out.Findings[:min(len(out.Findings), maxFindings)]
	for i := range out.Findings {
		out.Findings[i] = shortened(out.Findings[i], maxFinding)
	}
	return out, pause
}

func (r *run) next(ctx context.Context, conn *pgx.Conn, tell func(members.ImportReport)) (members.ImportReport, time.Duration) {
	if done := r.progress.ended(); done != nil {
		return members.ImportReport{State: members.ImportCutOver, CutOver: done.id, GapSeconds: done.gap, Message: done.message, Copied: 100}, idle
	}
	if r.config.Ended && r.progress.unfinished() {
		return members.ImportReport{State: members.ImportFailing, Message: "consumers have logins although no cut-over has ended the import, so rows may be missing here, " +
			"and the source is not left: make another Database, or compare both sides yourself"}, every
	}
	if r.config.Ended && r.progress.drained() == nil {
		if err := Release(ctx); err != nil {
			return members.ImportReport{State: members.ImportCutOver, Copied: 100, Message: err.Error()}, every
		}
		return members.ImportReport{State: members.ImportCutOver, Copied: 100, Message: "the import had ended before this data was made, which is not imported again"}, idle
	}
	var err error
	if r.from, err = openSource(r.config, r.secret, passwords); err != nil {
		return r.failed(err), every
	}
	r.schema.from = r.from
	if drained := r.progress.drained(); drained != nil {
		out := members.ImportReport{State: members.ImportCuttingOver, CutOver: drained.id, Copied: 100, Message: "everything is here, and the source is being left"}
		tell(out)
		if err := r.finish(ctx, conn, *drained); err != nil {
			out.Message = err.Error()
			return out, soon
		}
		return out, atOnce
	}
	if err := r.lowered(ctx, conn); err != nil {
		return r.failed(err), every
	}
	// What a leader that was lost has left.
	if err := removeRole(ctx, conn, restorer); err != nil {
		return r.failed(err), every
	}
	left, err := r.forget(ctx, conn)
	if err != nil {
		return members.ImportReport{State: members.ImportFailing, Message: err.Error()}, every
	}
	began, out, pause := r.started(ctx, conn, tell)
	if began {
		out, pause = r.follow(ctx, conn, tell)
	}
	if len(left) > 0 {
		out.Message += "; " + leftThere + some(left)
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
	return !slices.ContainsFunc(r.config.Databases, func(d pgmember.ImportDatabase) bool { return !r.progress.follows(d.Name) })
}

// started reports whether rows are copied and changes followed, and begins that. It begins no database before nothing stands in the way of any.
func (r *run) started(ctx context.Context, conn *pgx.Conn, tell func(members.ImportReport)) (bool, members.ImportReport, time.Duration) {
	if r.subscribed() {
		return true, members.ImportReport{}, 0
	}
	there, err := managed.List(ctx, conn, "select datname::text from pg_database where datallowconn")
	if err != nil {
		return false, r.failed(err), every
	}
	for _, d := range r.config.Databases {
		if !slices.Contains(there, d.Name) {
			return false, members.ImportReport{State: members.ImportChecking, Message: fmt.Sprintf("waiting for database %q to be created", d.Name)}, soon
		}
	}
	seen, err := look(ctx, r.from, r.config, r.named, r.progress)
	if err != nil {
		return false, r.failed(err), every
	}
	if fs := seen.findings(r.config.Skip); len(fs) > 0 {
		return false, members.ImportReport{State: members.ImportIncompatible, Message: "nothing is copied", Findings: fs}, every
	}
	tell(members.ImportReport{State: members.ImportCopying, Message: "the schema is being copied"})
	for _, d := range r.config.Databases {
		if r.progress.follows(d.Name) {
			continue
		}
		if err := r.begin(ctx, conn, d); err != nil {
			return false, r.failed(err), every
		}
		r.progress.phases[d.Name] = phaseSubscribed
	}
	return false, members.ImportReport{State: members.ImportCopying, Message: "rows are being copied"}, soon
}

// follow the source until the cut-over.
func (r *run) follow(ctx context.Context, conn *pgx.Conn, tell func(members.ImportReport)) (members.ImportReport, time.Duration) {
	at, err := r.position(ctx, conn)
	if err != nil {
		return r.failed(err), every
	}
	out := r.seen.next(at, time.Now())
	if out.State == members.ImportFollowing {
		if err := r.analyzed(ctx, conn); err != nil {
			return r.failed(err), every
		}
	}
	request := r.config.CutOver
	if request == nil || request.ID == r.progress.skipped() || out.State != members.ImportFollowing {
		return out, every
	}
	out.State, out.CutOver = members.ImportCuttingOver, request.ID
	// Clients of the source need not wait for what is applied without them.
	if out.LagBytes > near && len(r.progress.fences) == 0 {
		out.Message = "waiting until less than " + size(near) + " of changes of the source wait to be applied"
		return out, soon
	}
	out.Message = "waiting until nothing writes to the source, and until its last changes are applied"
	if r.seen.waiting == "" {
		tell(out)
	}
	var waits *waits
	switch err := r.cutOver(ctx, conn, *request); {
	case errors.As(err, &waits):
		r.seen.waiting, out.Message = waits.message, waits.message
	case err != nil:
		r.seen.waiting, out.Message = err.Error(), err.Error()
	default:
		r.seen.waiting = ""
		return out, atOnce
	}
	return out, soon
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
	out := members.ImportReport{State: members.ImportFollowing, Copied: 100, LagBytes: stepped(at.Behind), GapSeconds: gap(at.Behind, p.rate)}
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
		return fmt.Sprintf("the source has changed what is followed, and rows may be missing here since, also if it was undone: %s: make another Database", some(at.Changed))
	case len(at.Added) > 0:
		return fmt.Sprintf("the source has tables that were made since its schema was copied, and are not followed: %s: drop them there, or make another Database", some(at.Added))
	case !p.erred.IsZero() && now.Sub(p.erred) < failingFor:
		return "a worker that copies rows or applies changes has failed within the last minute: see the log of the leader's pod for the cause"
	case !p.away.IsZero() && now.Sub(p.away) >= failingFor:
		return fmt.Sprintf("PostgreSQL has not read replication slot %q of the source for a minute: see the log of the leader's pod for why it cannot connect there", at.Idle)
	case (at.Copied < at.Tables || stepped(at.Behind) > 0) && now.Sub(p.stood) >= stalledFor:
		return fmt.Sprintf("nothing has come from the source for %d minutes although rows or changes wait: it is silent, or holds locks, or one very large transaction is applied: "+
			"look at the sessions there, and at the log of the leader's pod", int(stalledFor.Minutes()))
	default:
		return ""
	}
}

// behind in words.
func behind(bytes int64) string {
	if bytes == 0 {
		return "nothing waits"
	}
	return fmt.Sprintf("about %s of its write-ahead log wait", size(bytes))
}

// stepped bytes: 0 below 1 MiB, else the next power of 2, so that they change seldom.
func stepped(bytes int64) int64 {
	if bytes < 1<<20 {
		return 0
	}
	step := int64(1 << 20)
	for step < bytes && step < 1<<60 {
		step *= 2
	}
	return step
}

const (
	// slowest rate of changes that is expected before one was seen, in bytes a second.
	slowest = 4 << 20
	// near is how many bytes may wait when a cut-over begins.
	near = 64 << 20
	// around is what a cut-over takes beside the last changes, in seconds: until nothing writes for sure, sequences, and logins.
	around = 12
)

// gap is for how many seconds writes are expected to wait, in steps.
func gap(behind int64, rate float64) int64 {
	if rate < slowest {
		rate = slowest
	}
	seconds := around + float64(stepped(behind))/rate
	for _, step := range []int64{15, 30, 60, 120, 300, 600, 1800, 3600} {
		if seconds <= float64(step) {
			return step
		}
	}
	return 3600
}
