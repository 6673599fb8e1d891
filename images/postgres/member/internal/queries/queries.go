// SPDX-License-Identifier: Apache-2.0

// Package queries runs queries of the spec, and exports their results as metrics. It runs beside the server, in the container of the exporter:
// any harm that a query does reaches neither the member nor another query.
package queries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/process"
)

// Bounds of a query. Beyond them it fails.
const (
	// MaxRows of a result.
	MaxRows = 200
	// statementLimit is what the server allows, and limit what all of it may take.
	statementLimit = 5 * time.Second
	limit          = 8 * time.Second
	// maxMessage is the size of a message of the server, such as a row.
	maxMessage = 64 << 10
	// maxLabel is the size of the value of a label in bytes. What is beyond is cut.
	maxLabel = 128
	// failuresInRow are reported. One alone may be a standby that cancels queries to replay, so the second try is soon.
	failuresInRow = 2
	again         = 30 * time.Second
	// maxFailure is the size of what is said of a failure, in bytes. A query may raise an error of any size, and the report of the member, which
	// has the failures of all of its queries, has to fit into an annotation.
	maxFailure = 400
)

// A Runner runs queries, one after the other.
type Runner struct {
	// Folder of the socket, and User to log in as.
	Folder, User string
	Config       func() ([]members.Query, error)
	Log          *slog.Logger

	mu     sync.Mutex
	states []*state
}

// A state of a query.
type state struct {
	query   members.Query
	due     time.Time
	ran     bool
	took    time.Duration
	samples []sample
	// failure of the last run, "" for none, and how many there were in a row.
	failure  string
	failures int
}

type sample struct {
	labels []string
	// values by column; nil for null.
	values []*float64
}

// Run queries whenever they are due, until the context ends.
func (r *Runner) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if wanted, err := r.Config(); err != nil {
			r.Log.Warn("cannot read which queries to run", "error", err)
		} else {
			r.set(wanted)
		}
		for _, s := range r.dueAt(time.Now()) {
			if ctx.Err() != nil {
				break
			}
			begun := time.Now()
			samples, err := r.ask(ctx, s.query)
			r.note(s, samples, err, begun)
		}
		loop.Sleep(ctx, time.Second)
	}
	return nil
}

// set which queries there are. One that did not change keeps its result.
func (r *Runner) set(wanted []members.Query) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var next []*state
	for _, q := range wanted {
		i := slices.IndexFunc(r.states, func(s *state) bool { return same(s.query, q) })
		if i >= 0 {
			next = append(next, r.states[i])
		} else {
			next = append(next, &state{query: q})
		}
	}
	r.states = next
}

func same(a, b members.Query) bool {
	return slices.Equal(a.Values, b.Values) && slices.Equal(a.Labels, b.Labels) && a.Name == b.Name && a.Help == b.Help && a.Database == b.Database &&
		a.SQL == b.SQL && a.IntervalSeconds == b.IntervalSeconds
}

func (r *Runner) dueAt(now time.Time) []*state {
	r.mu.Lock()
	defer r.mu.Unlock()
	var due []*state
	for _, s := range r.states {
		if !now.Before(s.due) {
			due = append(due, s)
		}
	}
	return due
}

func (r *Runner) note(s *state, samples []sample, err error, begun time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := s.failure
	interval := time.Duration(s.query.IntervalSeconds) * time.Second
	if err == nil {
		s.failure, s.failures = "", 0
	} else {
		s.failure, s.failures = process.Head(err.Error(), maxFailure), s.failures+1
	}
	if 0 < s.failures && s.failures < failuresInRow {
		interval = min(interval, again)
	}
	s.ran, s.samples, s.took, s.due = true, samples, time.Since(begun), begun.Add(interval)
	if s.failure != before {
		r.Log.Info("ran a query", "query", s.query.Name, "failure", s.failure)
	}
}

// Failing queries, for the report of the member. It is false as long as one has not run yet: nothing can be said of all then.
func (r *Runner) Failing() (members.QueriesReport, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out members.QueriesReport
	for _, s := range r.states {
		if !s.ran {
			return members.QueriesReport{}, false
		}
		if s.failures >= failuresInRow {
			out.Failing = append(out.Failing, members.QueryFailure{Name: s.query.Name, Message: s.failure})
		}
	}
	return out, len(r.states) > 0
}

// ask the server, over a connection that is for this query only: nothing that a query sets outlasts it.
func (r *Runner) ask(ctx context.Context, q members.Query) ([]sample, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := r.connect(ctx, q.Database)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to database %q: %s", q.Database, said(err))
	}
	defer func() { _ = conn.Close(ctx) }()
	// The extended protocol takes one statement only.
	result := conn.ExecParams(ctx, q.SQL, nil, nil, nil, nil)
	at, err := columns(result.FieldDescriptions(), slices.Concat(q.Labels, q.Values))
	if err != nil {
		if _, failed := result.Close(); failed != nil {
			return nil, errors.New(said(failed))
		}
		return nil, err
	}
	var samples []sample
	known := map[string]bool{}
	for result.NextRow() {
		if len(samples) == MaxRows {
			return nil, fmt.Errorf("the result has more than %d rows: aggregate them", MaxRows)
		}
		s, err := read(q, result.Values(), at)
		if err != nil {
			return nil, err
		}
		key := strings.Join(s.labels, "\x00")
		if known[key] {
			return nil, errors.New("two rows have the same labels: group by all of them")
		}
		known[key] = true
		samples = append(samples, s)
	}
	if _, err := result.Close(); err != nil {
		return nil, errors.New(said(err))
	}
	return samples, nil
}

// said is what the server said of a failure. Its detail could have data.
func said(err error) string {
	if p := (*pgconn.PgError)(nil); errors.As(err, &p) {
		return fmt.Sprintf("%s (SQLSTATE %s)", p.Message, p.Code)
	}
	if large := (*pgproto3.ExceededMaxBodyLenErr)(nil); errors.As(err, &large) {
		return fmt.Sprintf("a row has more than %d bytes", maxMessage)
	}
	if errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) {
		return "no answer within " + limit.String()
	}
	return err.Error()
}

func (r *Runner) connect(ctx context.Context, database string) (*pgconn.PgConn, error) {
	cfg, err := pgconn.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, err
	}
	cfg.Host, cfg.Port, cfg.User, cfg.Password, cfg.Database = r.Folder, pgmember.PortPostgres, r.User, "", database
	cfg.RuntimeParams = map[string]string{
		"application_name": "capstan-queries", "search_path": "public", "default_transaction_read_only": "on", "role": "none",
		"statement_timeout": strconv.FormatInt(statementLimit.Milliseconds(), 10), "lock_timeout": "1000",
		"idle_in_transaction_session_timeout": "10000", "max_parallel_workers_per_gather": "0", "client_encoding": "UTF8",
	}
	cfg.BuildFrontend = func(in io.Reader, out io.Writer) *pgproto3.Frontend {
		f := pgproto3.NewFrontend(in, out)
		f.SetMaxBodyLen(maxMessage)
		return f
	}
	return pgconn.ConnectConfig(ctx, cfg)
}

// columns of the result by name.
func columns(fields []pgconn.FieldDescription, wanted []string) ([]int, error) {
	at := make([]int, 0, len(wanted))
	for _, name := range wanted {
		i := slices.IndexFunc(fields, func(f pgconn.FieldDescription) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("the result has no column %q", name)
		}
		at = append(at, i)
	}
	return at, nil
}

// read a row. A value that is null is no sample.
func read(q members.Query, row [][]byte, at []int) (sample, error) {
	var s sample
	for i, name := range slices.Concat(q.Labels, q.Values) {
		raw := row[at[i]]
		if i < len(q.Labels) {
			s.labels = append(s.labels, strings.ToValidUTF8(string(raw[:min(len(raw), maxLabel)]), ""))
			continue
		}
		if raw == nil {
			s.values = append(s.values, nil)
			continue
		}
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return sample{}, fmt.Errorf("column %q has a value that is no number", name)
		}
		s.values = append(s.values, &n)
	}
	return s, nil
}

// Names of metrics. No query has a name that collides, because results have another beginning.
var (
	up      = prometheus.NewDesc("capstan_queries_up", "Whether the last run of a query of spec.monitoring.queries succeeded.", []string{"query"}, nil)
	seconds = prometheus.NewDesc("capstan_queries_seconds", "How long the last run of a query took.", []string{"query"}, nil)
)

// Metric of a column of a query.
func Metric(query, column string) string { return "capstan_query_" + query + "_" + column }

// Describe nothing: what there is follows from the spec.
func (*Runner) Describe(chan<- *prometheus.Desc) {}

// Collect the last results. Of a query that failed there is none.
func (r *Runner) Collect(ch chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.states {
		if !s.ran {
			continue
		}
		var well float64
		if s.failure == "" {
			well = 1
		}
		ch <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, well, s.query.Name)
		ch <- prometheus.MustNewConstMetric(seconds, prometheus.GaugeValue, s.took.Seconds(), s.query.Name)
		for i, column := range s.query.Values {
			desc := prometheus.NewDesc(Metric(s.query.Name, column), s.query.Help, s.query.Labels, nil)
			for _, one := range s.samples {
				if v := one.values[i]; v != nil {
					ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, *v, one.labels...)
				}
			}
		}
	}
}
