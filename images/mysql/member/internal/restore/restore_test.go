// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

// TestWithin ends a restore within a log, which has :17, :abc:1, :abc:2 and :18.
func TestWithin(t *testing.T) {
	const server = "e3a917ff-e965-11f1-b526-02fc00000001"
	parse := func(numbers string) gtid.Set {
		s, err := gtid.Parse(server + ":" + numbers)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	second := time.Date(2026, 11, 26, 7, 13, 51, 90190*1000, time.UTC)
	early, later := second.Add(-time.Microsecond), second.Add(time.Hour)
	log := repository.Log{Set: parse("17-18:abc:1-2"), Last: second}
	for name, tc := range map[string]struct {
		reason       string
		target       Target
		ended        bool
		has, exclude string
	}{
		"Latest":  {"Without a target all of it is replayed.", Target{}, false, "1-18:abc:1-2", ""},
		"At":      {"What was committed at the time is restored.", Target{At: &second}, true, "1-17:abc:1", "abc:2"},
		"Before":  {"What was committed a microsecond later is not.", Target{At: &early}, true, "1-17", "abc:1"},
		"Later":   {"All of it may be before the time.", Target{At: &later}, false, "1-18:abc:1-2", ""},
		"Point":   {"A point has exactly its transactions.", Target{Point: &Point{Set: parse("1-17:abc:1-2")}}, true, "1-17:abc:1-2", "18"},
		"Outside": {"Another log may have more of it.", Target{Point: &Point{Set: parse("1-30:abc:1-2")}}, false, "1-18:abc:1-2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			has, b := parse("1-16"), batch{}
			ended, err := Plan{Target: tc.target}.within("testdata/binlog.000005", log, &has, &b)
			if err != nil {
				t.Fatal(err)
			}
			want := []any{tc.ended, parse(tc.has).String(), ""}
			if tc.exclude != "" {
				want[2] = parse(tc.exclude).String()
			}
			if diff := cmp.Diff(want, []any{ended, has.String(), b.before.String()}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReached ends a restore to a point within a log of another server, which executed :abc:1 and :18 in another order than the point's.
func TestReached(t *testing.T) {
	const server = "e3a917ff-e965-11f1-b526-02fc00000001"
	parse := func(numbers string) gtid.Set {
		s, err := gtid.Parse(server + ":" + numbers)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	p := Plan{Target: Target{Point: &Point{Name: "v1", At: "2026-11-26T07:13:51Z", Set: parse("1-18")}}}
	has, b := parse("1-16"), batch{}
	if ended, err := p.within("testdata/binlog.000005", repository.Log{Set: parse("17-18:abc:1-2")}, &has, &b); err != nil || !ended {
		t.Fatal(ended, err)
	}
	if err := p.reached(has); err == nil || !strings.Contains(err.Error(), server+":18 and no other did") || !strings.Contains(err.Error(), "or the time 2026-11-26T07:13:51Z") {
		t.Errorf("a restore without :18 says of the point that has it: %v", err)
	}
	if err := p.reached(parse("1-18")); err != nil {
		t.Errorf("the point is reached: %v", err)
	}
}

func TestNext(t *testing.T) {
	small, large := repository.Log{Size: 1000}, repository.Log{Size: batchSize}
	for name, tc := range map[string]struct {
		reason string
		logs   []repository.Log
		want   int
	}{
		"All":   {"A few small ones are one batch.", []repository.Log{small, small}, 2},
		"Large": {"A large one ends a batch.", []repository.Log{small, large, small}, 2},
		"One":   {"One that is larger than a batch is one.", []repository.Log{{Size: 5 * batchSize}, small}, 1},
		"Many":  {"Many small ones are several.", make([]repository.Log, 2*batchLogs), batchLogs},
	} {
		if got := next(tc.logs); got != tc.want {
			t.Errorf("%s: %s: got %d, want %d", name, tc.reason, got, tc.want)
		}
	}
}
