// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/queries"
)

// A Querier reports which queries of the spec fail. The exporter of the pod runs them.
type Querier struct {
	address  string
	reporter *report.Reporter

	// missed is how often in a row the exporter did not say how queries do.
	missed int
}

const (
	queriesEvery   = 15 * time.Second
	queriesMissing = time.Minute
	// queriesLost is how often the exporter may miss. Its container may start again, and queries that were edited have yet to run.
	queriesLost = 4
)

// once asks the exporter, and returns the pause before the next time.
func (q *Querier) once(ctx context.Context) time.Duration {
	config, err := layout.ReadConfig()
	if err != nil {
		return queriesEvery
	}
	if len(config.Queries) == 0 {
		q.missed = 0
		q.reporter.Change(func(m *members.Report) { m.Queries = nil })
		return queriesMissing
	}
	q.note(queries.Failing(ctx, q.address))
	return queriesEvery
}

// note what the exporter said. What it said before is kept for a while, and then nothing is known.
func (q *Querier) note(failing *members.QueriesReport, err error) {
	if err == nil {
		q.missed = 0
	} else if q.missed++; q.missed < queriesLost {
		return
	}
	q.reporter.Change(func(m *members.Report) { m.Queries = failing })
}
