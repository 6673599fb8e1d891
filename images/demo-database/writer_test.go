// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// scripted answers each insert as its script says, and takes a second for it.
type scripted struct {
	answers []string // member that acknowledges, or "" for an error, or "?" for a row that is written and not acknowledged
	clock   time.Time
	there   []int64
	stop    context.CancelFunc
	lose    int64
}

func (s *scripted) prepare(context.Context) error { return nil }

func (s *scripted) close() {}

func (s *scripted) insert(_ context.Context, _ string, n int64) (string, error) {
	answer := s.answers[0]
	s.answers = s.answers[1:]
	s.clock = s.clock.Add(time.Second)
	if len(s.answers) == 0 {
		s.stop()
	}
	switch answer {
	case "":
		return "", errors.New("refused")
	case "?":
		s.there = append(s.there, n)
		return "", errors.New("broken")
	}
	if n != s.lose {
		s.there = append(s.there, n)
	}
	return answer, nil
}

func (s *scripted) read(_ context.Context, _ string, each func(int64)) error {
	for _, n := range s.there {
		each(n)
	}
	return nil
}

func TestWriter(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cases := map[string]struct {
		reason  string
		answers []string
		lose    int64
		gaps    []Gap
		account Account
	}{
		"AllGood": {
			reason:  "Every row is acknowledged and there.",
			answers: []string{"a", "a", "a"},
			account: Account{Acknowledged: 3, Lost: []int64{}, Longest: 1, Errors: map[string]int64{}},
		},
		"Failover": {
			reason:  "Writes that failed make a gap between two members, and nothing is lost.",
			answers: []string{"a", "", "?", "b"},
			gaps: []Gap{{
				From: start.Add(time.Second), To: start.Add(4 * time.Second), Seconds: 3, Before: "a", After: "b", Error: "broken",
			}},
			account: Account{
				Acknowledged: 2, Failed: 2, Lost: []int64{}, Surplus: 1, Longest: 3, Errors: map[string]int64{"refused": 1, "broken": 1},
			},
		},
		"Lost": {
			reason:  "A row that was acknowledged and is not there is named.",
			answers: []string{"a", "a", "b"},
			lose:    2,
			account: Account{Acknowledged: 3, Lost: []int64{2}, Longest: 1, Errors: map[string]int64{}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &scripted{answers: tc.answers, clock: start, stop: cancel, lose: tc.lose}
			var gaps []Gap
			w := &writer{
				options: Options{Name: "w", Timeout: time.Minute, Gap: 2 * time.Second, Settle: time.Minute},
				server:  s,
				now:     func() time.Time { return s.clock },
				tell: func(v any) error {
					if g, ok := v.(map[string]Gap); ok {
						gaps = append(gaps, g["gap"])
					}
					return nil
				},
			}
			if err := w.prepare(ctx); err != nil {
				t.Fatal(err)
			}
			if err := w.write(ctx); err != nil {
				t.Fatal(err)
			}
			got, err := w.account(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.gaps, gaps); diff != "" {
				t.Errorf("\n%s\ngaps: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.account, got["account"]); diff != "" {
				t.Errorf("\n%s\naccount: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// takes what members acknowledge from a script, where an empty one is refused. It is asked by several at a time.
type takes struct {
	scripted

	by string
}

func (s *takes) insert(context.Context, string, int64) (string, error) {
	if s.by == "" {
		return "", errors.New("refused")
	}
	return s.by, nil
}

func TestProber(t *testing.T) {
	for by, want := range map[string]int{"a": 3, "": 0} {
		var told int
		ticks := make(chan time.Time)
		ctx, stop := context.WithCancel(t.Context())
		p, err := newProber(&writer{now: time.Now, options: Options{Timeout: time.Second}, tell: func(any) error { told++; return nil }},
			func() (rows, error) { return &takes{by: by}, nil })
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range 3 {
				ticks <- time.Time{}
			}
			stop()
		}()
		p.write(ctx, ticks)
		if told != want || len(p.acknowledged) != want || p.failed != int64(3-want) {
			t.Errorf("A member that answers %q took %d writes and refused %d, and %d were told.", by, len(p.acknowledged), p.failed, told)
		}
	}
}

func TestAt(t *testing.T) {
	got, err := at("mysql://api:p%40ss@orders-db-rw.demo.svc:3306/orders?ssl-mode=VERIFY_IDENTITY", "orders-db-a-0.orders-db-pods.demo.svc")
	if want := "mysql://api:p%40ss@orders-db-a-0.orders-db-pods.demo.svc:3306/orders?ssl-mode=VERIFY_IDENTITY"; err != nil || got != want {
		t.Errorf("Only the host is another one: got %q, %v", got, err)
	}
}
