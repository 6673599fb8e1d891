// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func source(name, text string) Source {
	return Source{Name: name, Open: func(context.Context, time.Time, bool) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
}

// TestPrint merges logs whose lines are not in step, one of them with a line that has no time, and one that cannot be read.
func TestPrint(t *testing.T) {
	a := source("orders-a-0", "2026-11-26T11:00:00.1Z first\n2026-11-26T11:00:00.4Z fourth\nwithout a time\n")
	b := source("b-0", "2026-11-26T11:00:00.2Z second\n2026-11-26T11:00:00.3Z third\n2026-11-26T11:00:00.5Z fifth\n")
	gone := Source{Name: "c-0", Open: func(context.Context, time.Time, bool) (io.ReadCloser, error) { return nil, errors.New("forbidden") }}
	var out bytes.Buffer
	var failed []string
	if err := Print(t.Context(), &out, []Source{a, b, gone, source("empty", "")}, func(err error) { failed = append(failed, err.Error()) }); err != nil {
		t.Fatal(err)
	}
	want := `orders-a-0  11:00:00.100  first
b-0         11:00:00.200  second
b-0         11:00:00.300  third
orders-a-0  11:00:00.400  fourth
orders-a-0  11:00:00.400  without a time
b-0         11:00:00.500  fifth
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cannot read the log of c-0: forbidden"}, failed); diff != "" {
		t.Errorf("failures: -want, +got:\n%s", diff)
	}
}

// TestFollow: lines of the same moment are sorted, a pod that is created later is followed, and a container that starts again is opened
// from its last line on, which is not printed twice.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 7*time.Second)
		defer stop()
		began := time.Now()
		opened := 0
		a := Source{Name: "a", Open: func(_ context.Context, since time.Time, follow bool) (io.ReadCloser, error) {
			opened++
			switch {
			case !follow:
				return nil, errors.New("it is not followed")
			case opened == 1:
				return io.NopCloser(strings.NewReader("2026-11-26T11:00:02Z later\n")), nil
			case opened == 2 && since.Format(time.RFC3339) != "2026-11-26T11:00:02Z":
				return nil, errors.New("it begins at " + since.String())
			case opened == 2:
				return io.NopCloser(strings.NewReader("2026-11-26T11:00:02Z later\n2026-11-26T11:00:03Z again\n")), nil
			default:
				return io.NopCloser(strings.NewReader("")), nil
			}
		}}
		once := func(s Source) Source {
			read := false
			open := s.Open
			s.Open = func(ctx context.Context, since time.Time, follow bool) (io.ReadCloser, error) {
				if read {
					return io.NopCloser(strings.NewReader("")), nil
				}
				read = true

				return open(ctx, since, follow)
			}

			return s
		}
		b := once(source("b", "2026-11-26T11:00:01Z earlier\n"))
		created := once(source("created", "2026-11-26T11:00:04Z hello\n"))
		list := func(context.Context) ([]Source, error) {
			if time.Since(began) > 3*time.Second {
				return []Source{a, b, created}, nil
			}

			return []Source{a, b}, nil
		}
		var out bytes.Buffer
		err := Follow(ctx, &out, list, func(err error) { t.Errorf("failed: %v", err) })
		if err != nil {
			t.Fatal(err)
		}
		want := "b  11:00:01.000  earlier\na  11:00:02.000  later\na  11:00:03.000  again\ncreated  11:00:04.000  hello\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}
