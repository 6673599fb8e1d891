// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/report"
)

// TestQuerier: an exporter that starts again is missed for a while, and of one that stays away nothing is known.
func TestQuerier(t *testing.T) {
	q := &Querier{reporter: report.New(nil, slog.New(slog.DiscardHandler))}
	lost := errors.New("connection refused")
	q.note(nil, lost)
	q.note(&members.QueriesReport{}, nil)
	for i := range queriesLost - 1 {
		if q.note(nil, lost); q.reporter.Report().Queries == nil {
			t.Fatalf("after %d misses nothing is known", i+1)
		}
	}
	if q.note(nil, lost); q.reporter.Report().Queries != nil {
		t.Error("queries that no exporter runs are taken for well")
	}
	if q.note(&members.QueriesReport{}, nil); q.reporter.Report().Queries == nil {
		t.Error("what an exporter says that is back is not reported")
	}
}
