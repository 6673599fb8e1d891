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
}

const (
	queriesEvery   = 15 * time.Second
	queriesMissing = time.Minute
)

// once asks the exporter, and returns the pause before the next time. What an exporter that does not answer said before is kept: its container
// starts again.
func (q *Querier) once(ctx context.Context) time.Duration {
	config, err := layout.ReadConfig()
	if err != nil {
		return queriesEvery
	}
	if len(config.Queries) == 0 {
		q.reporter.Change(func(m *members.Report) { m.Queries = nil })
		return queriesMissing
	}
	if failing, err := queries.Failing(ctx, q.address); err == nil {
		q.reporter.Change(func(m *members.Report) { m.Queries = failing })
	}
	return queriesEvery
}
