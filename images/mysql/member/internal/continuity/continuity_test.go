// SPDX-License-Identifier: Apache-2.0

package continuity

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

const (
	group = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	later = "4f22fa47-71ca-11e1-9e33-c80aa9429562"
)

func parse(t *testing.T, text string) gtid.Set {
	t.Helper()
	s, err := gtid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func logs(t *testing.T, texts ...[2]string) []Log {
	t.Helper()
	out := make([]Log, 0, len(texts))
	for _, one := range texts {
		out = append(out, Log{parse(t, one[0]), parse(t, one[1])})
	}
	return out
}

func TestGap(t *testing.T) {
	cases := map[string]struct {
		reason string
		logs   [][2]string
		backup string
		want   string
	}{
		"Nothing":   {"An archive without logs lacks nothing: there is no last transaction.", nil, group + ":1-5", ""},
		"Whole":     {"Each log follows on the one before.", [][2]string{{"", group + ":1-5"}, {group + ":1-5", group + ":6-9"}}, "", ""},
		"Order":     {"The order in which logs were archived does not count.", [][2]string{{group + ":1-5", group + ":6-9"}, {"", group + ":1-5"}}, "", ""},
		"Between":   {"A log between two others is not there.", [][2]string{{"", group + ":1-5"}, {group + ":1-7", group + ":8-9"}}, "", group + ":6-7"},
		"End":       {"A log that is not there yet is no gap.", [][2]string{{"", group + ":1-5"}}, "", ""},
		"Backup":    {"What a backup has no log needs.", [][2]string{{group + ":1-7", group + ":8-9"}}, group + ":1-7", ""},
		"Behind":    {"What was written after the backup is needed.", [][2]string{{group + ":1-7", group + ":8-9"}}, group + ":1-5", group + ":6-7"},
		"Blocks":    {"A leader that numbers a block of its own skips numbers that nobody wrote.", [][2]string{{"", group + ":1-5"}, {group + ":1-5", group + ":1000005-1000009"}}, "", ""},
		"InBlock":   {"Numbers in a block are missed.", [][2]string{{"", group + ":1-5"}, {group + ":1-5:1000005-1000006", group + ":1000007"}}, "", group + ":1000005-1000006"},
		"Failover":  {"The next leader's own log has again what the former one archived, in another file.", [][2]string{{"", group + ":1-5"}, {group + ":1-3", group + ":4-8"}}, "", ""},
		"Overtaken": {"A log without transactions tells of those before it.", [][2]string{{"", group + ":1-5"}, {group + ":1-8", ""}}, "", group + ":6-8"},
		"Another":   {"A group of another name is another source.", [][2]string{{"", group + ":1-5"}, {group + ":1-5", later + ":1-2"}, {group + ":1-5," + later + ":1-3", later + ":4"}}, "", later + ":3"},
		"Tag":       {"A tag has numbers of its own.", [][2]string{{group + ":1-5:pay:1-2", group + ":6:pay:3"}}, group + ":1-5:pay:1", group + ":pay:2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Gap(logs(t, tc.logs...), parse(t, tc.backup)).String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	all := logs(t, [2]string{"", group + ":1-5"}, [2]string{group + ":1-7", group + ":8-9"}, [2]string{group + ":1-5", group + ":6"})
	for i, want := range []string{"", group + ":7", ""} {
		if got := Missing(all[i], all, gtid.Set{}).String(); got != want {
			t.Errorf("until the end of log %d it lacks %q, want %q", i, got, want)
		}
	}
}

func TestOf(t *testing.T) {
	all := logs(t, [2]string{"", group + ":1-5"}, [2]string{group + ":1-5", group + ":6-9"}, [2]string{group + ":1-9", ""},
		[2]string{group + ":1-5", group + ":6," + later + ":1"})
	got := Archived(Of(parse(t, group+":1-7,"+later+":1-3"), all)).String()
	if want := group + ":1-6," + later + ":1"; got != want {
		t.Errorf("a group that began with less has %q of the archive, want %q: the others are of a history that ended", got, want)
	}
}

func TestLost(t *testing.T) {
	cases := map[string]struct{ reason, executed, backup, archived, waiting, want string }{
		"Nothing": {"All is somewhere.", group + ":1-9", group + ":1-3", group + ":2-7", group + ":8-9", ""},
		"Waits":   {"What waits for the archive is not lost.", group + ":1-9", "", group + ":1-5", group + ":6-9", ""},
		"Dropped": {"What was dropped is, before anything later is archived.", group + ":1-9", "", group + ":1-5", group + ":8-9", group + ":6-7"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Lost(parse(t, tc.executed), parse(t, tc.backup), parse(t, tc.archived), parse(t, tc.waiting)).String()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGapProperty: of histories with changes of the leader and blocks of numbers, written by each member to files of its own, of which some
// are archived, the gap is exactly what a list of all transactions tells.
func TestGapProperty(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // It is for a test.
		// What was executed, in order. The leader numbers the rest of its block, and each leader has a block of its own.
		var history []int64
		next := map[int]int64{0: 1, 1: 1000001, 2: 2000001}
		leader := 0
		for range 5 + r.IntN(40) {
			if r.IntN(8) == 0 {
				leader = r.IntN(3)
			}
			history = append(history, next[leader])
			next[leader] += 1 + int64(r.IntN(2)*r.IntN(3)) // rolled back ones leave numbers out
		}
		var archived []Log
		has, last := map[int64]bool{}, 0
		for range 3 {
			for from := 0; from < len(history); {
				to := min(from+1+r.IntN(8), len(history))
				if r.IntN(3) > 0 {
					archived = append(archived, Log{set(t, history[:from]), set(t, history[from:to])})
					last = max(last, to)
					for _, n := range history[from:to] {
						has[n] = true
					}
				}
				from = to
			}
		}
		r.Shuffle(len(archived), func(i, j int) { archived[i], archived[j] = archived[j], archived[i] })
		backup := r.IntN(len(history))
		var want []int64
		for i := backup; i < last; i++ {
			if !has[history[i]] {
				want = append(want, history[i])
			}
		}
		if diff := cmp.Diff(set(t, want).String(), Gap(archived, set(t, history[:backup])).String()); diff != "" {
			t.Fatalf("seed %d: -want +got:\n%s", seed, diff)
		}
	}
}

// set of numbers in any order.
func set(t *testing.T, numbers []int64) gtid.Set {
	t.Helper()
	var b gtid.Builder
	for _, n := range numbers {
		if err := b.Add(group, "", n, n); err != nil {
			t.Fatal(err)
		}
	}
	return b.Set()
}
