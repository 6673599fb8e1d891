// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// TestTransactions reads a log of a server of 9.7.4, which has transactions with a tag and without one.
func TestTransactions(t *testing.T) {
	var got [][2]string
	err := Transactions("testdata/binlog.000005", func(one gtid.Set, at time.Time) error {
		got = append(got, [2]string{one.String(), at.Format(time.RFC3339Nano)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const server = "e3a917ff-e965-11f1-b526-02fc00000001"
	want := [][2]string{
		{server + ":17", "2026-11-26T07:13:51.087654Z"}, {server + ":abc:1", "2026-11-26T07:13:51.09019Z"},
		{server + ":abc:2", "2026-11-26T07:13:51.094003Z"}, {server + ":18", "2026-11-26T07:13:51.10088Z"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := Transactions("transactions_test.go", nil); err == nil {
		t.Error("another file was taken for a binary log")
	}
}
