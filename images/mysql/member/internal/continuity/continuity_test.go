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

func TestOf(t *testing.T) {
	all := logs(t, [2]string{"", group + ":1-5"}, [2]string{group + ":1-5", group + ":6-9"}, [2]string{group + ":1-9", ""},
		[2]string{group + ":1-5", group + ":6," + later + ":1"})
	got := Archived(Of(parse(t, group+":1-7,"+later+":1-3"), all)).String()
	if want := group + ":1-6," + later + ":1"; got != want {
		t.Errorf("a group that began with less has %q of the archive, want %q: the others are of a history that ended", got, want)
	}
}

func TestEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		sets, want []string
	}{
		"None":  {"An empty archive has no history.", nil, nil},
		"One":   {"Members are behind each other in one history.", []string{group + ":1-5", group + ":1-9", "", group + ":1-7"}, []string{group + ":1-9"}},
		"Ended": {"A group that began with less continues elsewhere.", []string{group + ":1-9", group + ":1-5," + later + ":1", group + ":1-5"}, []string{group + ":1-9", group + ":1-5," + later + ":1"}},
		"Order": {"Of one group, one may have what the other one lacks.", []string{group + ":1-9", group + ":1-7:1000001"}, []string{group + ":1-9:1000001"}},
		"Equal": {"Two servers may have the same.", []string{group + ":1-9", group + ":1-9"}, []string{group + ":1-9"}},
	} {
		t.Run(name, func(t *testing.T) {
			sets := make([]gtid.Set, 0, len(tc.sets))
			for _, one := range tc.sets {
				sets = append(sets, parse(t, one))
			}
			var got []string
			for _, end := range Ends(sets) {
				got = append(got, end.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	if all := parse(t, group+":1-9"); !Same(all, parse(t, group+":1-5")) || !Same(gtid.Set{}, all) || !Same(all, parse(t, group+":1-8:11")) || Same(all, parse(t, group+":1-5,"+later+":1")) {
		t.Error("two are in one history unless one lacks something and has something of another group")
	}
}

func TestGap(t *testing.T) {
	cases := map[string]struct{ reason, executed, backup, archived, waiting, want string }{
		"Nothing": {"All is somewhere.", group + ":1-9", group + ":1-3", group + ":2-7", group + ":8-9", ""},
		"Waits":   {"What waits for the archive is no gap.", group + ":1-9", "", group + ":1-5", group + ":6-9", ""},
		"Dropped": {"What was dropped is, before anything later is archived.", group + ":1-9", "", group + ":1-5", group + ":8-9", group + ":6-7"},
		"Backup":  {"What a backup has needs no archive.", group + ":1-9", group + ":1-7", group + ":8-9", "", ""},
		"Blocks":  {"A leader that numbers a block of its own skips numbers that no transaction has.", group + ":1-5:1000005-1000009", "", group + ":1-5", group + ":1000005-1000009", ""},
		"InBlock": {"Numbers in a block are missed.", group + ":1-5:1000005-1000009", "", group + ":1-5", group + ":1000007-1000009", group + ":1000005-1000006"},
		"Another": {"A group of another name is another source.", group + ":1-5," + later + ":1-4", "", group + ":1-5", later + ":4", later + ":1-3"},
		"Tag":     {"A tag has numbers of its own.", group + ":1-6:pay:1-3", group + ":1-5:pay:1", group + ":6:pay:3", "", group + ":pay:2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Gap(parse(t, tc.executed), parse(t, tc.backup), parse(t, tc.archived), parse(t, tc.waiting)).String()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGapProperty: of histories with changes of the leader and blocks of numbers, written by each member to files of its own, of which some
// are archived and some wait, the gap is exactly what a list of all transactions shows.
func TestGapProperty(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
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
		has := map[int64]bool{}
		var waits []int64
		for range 3 {
			for from := 0; from < len(history); {
				to := min(from+1+r.IntN(8), len(history))
				switch r.IntN(4) {
				case 0:
					archived = append(archived, Log{set(t, history[:from]), set(t, history[from:to])})
				case 1:
					waits = append(waits, history[from:to]...)
				default:
					from = to
					continue
				}
				for _, n := range history[from:to] {
					has[n] = true
				}
				from = to
			}
		}
		executed := set(t, history)
		// One of a history that ended counts for nothing.
		archived = append(archived, Log{executed, set(t, []int64{3000001})})
		r.Shuffle(len(archived), func(i, j int) { archived[i], archived[j] = archived[j], archived[i] })
		backup := r.IntN(len(history))
		var want []int64
		for _, n := range history[backup:] {
			if !has[n] {
				want = append(want, n)
			}
		}
		got := Gap(executed, set(t, history[:backup]), Archived(Of(executed, archived)), set(t, waits))
		if diff := cmp.Diff(set(t, want).String(), got.String()); diff != "" {
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
