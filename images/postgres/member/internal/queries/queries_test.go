// SPDX-License-Identifier: Apache-2.0

package queries

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/capstan-dev/capstan/apis/members"
)

func TestRead(t *testing.T) {
	q := members.Query{Name: "orders", Values: []string{"n"}, Labels: []string{"l"}}
	for name, tc := range map[string]struct {
		reason string
		row    [][]byte
		want   sample
		err    string
	}{
		"Row":    {"Columns are found by name.", [][]byte{[]byte("1.5"), []byte("x")}, sample{[]string{"x"}, []*float64{new(1.5)}}, ""},
		"Null":   {"A value that is null is no sample, a label is empty.", [][]byte{nil, nil}, sample{[]string{""}, []*float64{nil}}, ""},
		"Long":   {"A label is cut, at no half of a character.", [][]byte{[]byte("1"), []byte(strings.Repeat("x", maxLabel-1) + "ü")}, sample{[]string{strings.Repeat("x", maxLabel-1)}, []*float64{new(1.0)}}, ""},
		"Number": {"What is no number is an error that has no data.", [][]byte{[]byte("secret"), nil}, sample{}, `column "n" has a value that is no number`},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := columns([]pgconn.FieldDescription{{Name: "n"}, {Name: "l"}}, []string{"l", "n"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(q, tc.row, at)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("%s got %v", tc.reason, err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(sample{})); diff != "" || err != nil {
				t.Errorf("%s %v -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
	if _, err := columns(nil, []string{"n"}); err == nil {
		t.Error("a column that is not there is found")
	}
}

// TestMetrics: results stand after the metrics of the exporter. A query that fails has none, and is reported after the second time.
func TestMetrics(t *testing.T) {
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "pg_up 1\n") }))
	defer exporter.Close()
	r := &Runner{Log: slog.New(slog.DiscardHandler)}
	r.set([]members.Query{
		{Name: "good", Help: "H.", Values: []string{"n"}, Labels: []string{"l"}, IntervalSeconds: 60},
		{Name: "bad", Values: []string{"n"}, IntervalSeconds: 60},
		{Name: "later", Values: []string{"n"}, IntervalSeconds: 60},
	})
	registry := prometheus.NewRegistry()
	if err := registry.Register(r); err != nil {
		t.Fatal(err)
	}
	text := func() string {
		w := httptest.NewRecorder()
		if err := metrics(t.Context(), w, exporter.Client(), exporter.URL, registry); err != nil {
			t.Fatal(err)
		}
		var out []string
		for line := range strings.Lines(w.Body.String()) {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "capstan_queries_seconds") {
				out = append(out, line)
			}
		}
		return strings.Join(out, "")
	}
	now := time.Now()
	due := r.dueAt(now)
	if len(due) != 3 {
		t.Fatalf("%d are due, want all", len(due))
	}
	r.note(due[0], []sample{{[]string{"x"}, []*float64{new(2.0)}}}, nil, now)
	r.note(due[1], nil, errors.New("no"), now)
	want := "pg_up 1\ncapstan_queries_up{query=\"bad\"} 0\ncapstan_queries_up{query=\"good\"} 1\ncapstan_query_good_n{l=\"x\"} 2\n"
	if diff := cmp.Diff(want, text()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, known := r.Failing(); known {
		t.Error("one that has not run is taken for well")
	}
	r.note(due[2], nil, nil, now)
	if failing, known := r.Failing(); len(failing.Failing) != 0 || !known {
		t.Errorf("failing %v, known %t", failing, known)
	}
	if soon := r.dueAt(now.Add(31 * time.Second)); len(soon) != 1 || soon[0].query.Name != "bad" {
		t.Errorf("%d are due before their time, want the one that failed once", len(soon))
	}
	r.note(due[1], nil, errors.New(strings.Repeat("no ledger\n", 10000)), now)
	if soon := r.dueAt(now.Add(59 * time.Second)); len(soon) != 0 {
		t.Errorf("%d are due before their time", len(soon))
	}
	failing, _ := r.Failing()
	if len(failing.Failing) != 1 || failing.Failing[0].Name != "bad" || !strings.HasPrefix(failing.Failing[0].Message, "no ledger") || len(failing.Failing[0].Message) > maxFailure+4 {
		t.Errorf("failing %+v", failing)
	}
	r.set([]members.Query{due[0].query})
	if got := text(); !strings.Contains(got, "capstan_query_good_n") || strings.Contains(got, "bad") {
		t.Errorf("after a change: %s", got)
	}
	exporter.Close()
	if err := metrics(t.Context(), httptest.NewRecorder(), http.DefaultClient, exporter.URL, registry); err == nil {
		t.Error("without the exporter there is an answer")
	}
}
