// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/server"
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

// TestCut: when the clock of a leader was set back, no restore to a time ends with only some of what was committed before it.
func TestCut(t *testing.T) {
	at := time.Date(2026, 11, 26, 3, 10, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason string
		behind []time.Duration
		want   string
	}{
		"Forward":    {"All that comes later is from after the time.", []time.Duration{time.Second, 2 * time.Second, time.Second}, ""},
		"Concurrent": {"Transactions that were committed at once are in any order.", []time.Duration{300 * time.Millisecond, -100 * time.Millisecond, time.Second}, ""},
		"Back":       {"The clock went back, and the time came twice.", []time.Duration{time.Second, time.Minute, -2 * time.Minute, -time.Minute, 2 * time.Minute}, "2026-11-26T03:10:00Z is no single moment: the clock of a leader was set back, and what was committed at 2026-11-26T03:08:00Z comes after what was committed at 2026-11-26T03:11:00Z. Choose a time before 2026-11-26T03:08:00Z, one after 2026-11-26T03:11:00Z"},
		"Other":      {"The clock of the next leader may be behind.", []time.Duration{time.Second, 5 * time.Second, -time.Second}, "Choose a time before 2026-11-26T03:09:59Z, one after 2026-11-26T03:10:05Z"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cut{at: at}
			for _, d := range tc.behind {
				c.add(at.Add(d))
			}
			if err := c.err(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// write a binary log without checksums, with transactions of the group that were committed at these times.
func write(t *testing.T, file string, committed ...time.Time) {
	t.Helper()
	event := func(kind byte, body []byte) []byte {
		out := append(make([]byte, 4), kind, 1, 0, 0, 0)
		out = binary.LittleEndian.AppendUint32(out, uint32(19+len(body)))
		return append(append(out, make([]byte, 6)...), body...)
	}
	content := append([]byte("\xfebin"), event(15, make([]byte, 100))...)
	content = append(content, event(35, make([]byte, 8))...)
	id := uuid.MustParse(group)
	for i, at := range committed {
		body := binary.LittleEndian.AppendUint64(append([]byte{0}, id[:]...), uint64(i+1))
		body = append(body, make([]byte, 17)...)
		body = append(body, binary.LittleEndian.AppendUint64(nil, uint64(at.UnixMicro()))[:7]...)
		content = append(content, event(33, body)...)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestBehind reads what comes behind the transaction that ends a restore to a time, in its own log and in the next one.
func TestBehind(t *testing.T) {
	folder := t.TempDir()
	r, at := Restorer{Server: server.Scratch{Data: folder}}, minute(10)
	logs := []repository.Log{{Set: set("1-4")}, {Set: set("1-5")}}
	write(t, filepath.Join(folder, "one"), minute(9), minute(8), minute(11), minute(12))
	for name, tc := range map[string]struct {
		reason string
		next   []time.Time
		want   string
	}{
		"Same": {"What is in both is from after the cut once.", []time.Time{minute(9), minute(8), minute(11), minute(12), minute(13)}, ""},
		"Back": {"The next log has something from before the time.", []time.Time{minute(9), minute(8), minute(11), minute(12), minute(7)}, "Choose a time before 2026-11-26T03:07:00Z, one after 2026-11-26T03:12:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(folder, "two"), tc.next...)
			has, b := gtid.Set{}, batch{}
			p := Plan{Target: Target{At: &at}}
			if ended, err := p.within(filepath.Join(folder, "one"), logs[0], &has, &b); err != nil || !ended || has.String() != set("1-2").String() {
				t.Fatal(ended, err, has)
			}
			err := r.behind(t.Context(), p, has, logs, []string{"one", "two"}, nil)
			var back *Backwards
			if (err == nil) != (tc.want == "") || err != nil && (!errors.As(err, &back) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
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
