// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A source may answer without end. What is kept of its answers has one.
const (
	// maxBody of one message of a source, in bytes.
	maxBody = 1 << 20
	// maxRows and maxAnswer are of one query, the second in bytes.
	maxRows, maxAnswer = 200_000, 64 << 20
)

// errAnswer is why an answer is not taken.
var errAnswer = fmt.Errorf("an answer has more than %d rows or %d MiB", maxRows, maxAnswer>>20)

// collect what a query returns, as pgx.CollectRows does, and no more than there may be.
func collect[T any](rows pgx.Rows, err error, to pgx.RowToFunc[T]) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []T
	bytes := 0
	for rows.Next() {
		for _, v := range rows.RawValues() {
			bytes += len(v)
		}
		if len(out) == maxRows || bytes > maxAnswer {
			return nil, errAnswer
		}
		row, err := to(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// list the texts that a query of the source returns.
func list(ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]string, error) {
	rows, err := conn.Query(ctx, query, args...)
	return collect(rows, err, pgx.RowTo[string])
}
