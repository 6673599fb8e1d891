// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/crew"
)

// TestSurplus shows which checkpoints can go.
func TestSurplus(t *testing.T) {
	c := func(step int64, uri string, minute int) crew.Checkpoint {
		return crew.Checkpoint{Step: step, URI: uri, At: moment(minute)}
	}
	four := []crew.Checkpoint{c(10, "/c/a", 1), c(20, "/c/b", 2), c(30, "/c/c", 3), c(40, "/c/d", 4)}
	for name, tc := range map[string]struct {
		reason    string
		complete  string
		known     []crew.Checkpoint
		discarded []Discard
		keep      int
		hold      Hold
		want      []string
	}{
		"None":  {reason: "Without a number all stay.", known: four},
		"Few":   {reason: "There are no more than stay.", known: four, keep: 4},
		"Old":   {reason: "The newest by their steps stay.", known: four, keep: 2, want: []string{"a", "b"}},
		"Began": {reason: "Ranks may read what they began with again.", known: four, keep: 2, hold: Hold{From: &four[0]}, want: []string{"b"}},
		"Began, each rank": {
			reason: "They are all of one step.", keep: 2, hold: Hold{From: &crew.Checkpoint{Step: 10, URI: "/c/10/0", At: moment(1)}},
			known: []crew.Checkpoint{c(10, "/c/10/0", 1), c(10, "/c/10/1", 1), c(20, "/c/20/0", 2), c(20, "/c/20/1", 2), c(30, "/c/30/0", 3), c(40, "/c/40/0", 4)},
			want:  []string{"20/0", "20/1"},
		},
		"Back": {
			reason: "The checkpoint that ranks began with may have the loss that is not a number: the one before it stays.", known: four, keep: 2,
			hold: Hold{From: &crew.Checkpoint{Step: 20, URI: "/c/b", At: moment(2)}, Back: true},
		},
		"Back from elsewhere": {
			reason: "The same when the ranks' first one is not in the folder.", known: four, keep: 2,
			hold: Hold{From: &crew.Checkpoint{Step: 25, URI: "s3://c/25"}, Back: true}, want: []string{"a"},
		},
		"Other run": {reason: "A checkpoint of the run before is one to begin with, too.", known: four, keep: 2, hold: Hold{URI: "a"}, want: []string{"b"}},
		"Discarded": {
			reason: "What cannot be used does not count. It goes when it is older than what does.", known: four, keep: 2,
			discarded: []Discard{{From: 20, Until: moment(3)}},
		},
		"Discarded, old": {
			reason: "It goes when it is older than what counts.", known: append(four[:3:3], c(40, "/c/d", 7), c(50, "/c/e", 8)), keep: 2,
			discarded: []Discard{{From: 20, Until: moment(5)}}, want: []string{"a", "b", "c"},
		},
		"One step": {
			reason: "Each rank may write one of its own: those of one step stay together.", keep: 2,
			known: []crew.Checkpoint{c(10, "/c/10/0", 1), c(10, "/c/10/1", 1), c(20, "/c/20/0", 2), c(20, "/c/20/1", 2), c(30, "/c/30/0", 3)},
			want:  []string{"10/0", "10/1"},
		},
		"From the start": {
			reason: "A program that does not resume writes earlier steps at a later time. They stay.", keep: 2,
			known: append(slices.Clone(four), c(5, "/c/e", 5), c(6, "/c/f", 6)), want: []string{"a", "b"},
		},
		"Elsewhere": {
			reason: "What is not in the folder stays, and so does the folder itself.", keep: 2,
			known: append(slices.Clone(four), c(1, "s3://c/1", 0), c(2, "/d/2", 0), c(3, "/c/../d/3", 0), c(4, "/c", 0), c(5, ".", 0), c(6, "../d/6", 0), c(7, "/c/.capstan-fraud.json", 0), c(8, "/c/\x00", 0)),
			want:  []string{"a", "b"},
		},
		"Inside": {
			reason: "What has one in it that stays is not removed.", keep: 2,
			known: []crew.Checkpoint{c(10, "/c/run", 1), c(20, "/c/run/20", 2), c(30, "/c/run/30", 3), c(15, "/c/run/15", 1)}, want: []string{"run/15"},
		},
		"Pattern": {
			reason: "With a pattern a checkpoint is a folder of the folder, by whichever path it is known.", complete: "step-*/DONE", keep: 2,
			known: []crew.Checkpoint{c(10, "/c/step-10/weights", 1), c(10, "step-10", 1), c(20, "/c/step-20", 2), c(23, "/c/step-20/x", 3), c(30, "/c/step-30", 4)},
			want:  []string{"step-10"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Folder{Dir: "/c", Complete: tc.complete, Training: "fraud"}.Surplus(tc.known, tc.discarded, tc.keep, tc.hold)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nSurplus(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzSurplus: enough stays to go on, and to go back, by any paths and steps that ranks report.
func FuzzSurplus(f *testing.F) {
	f.Add([]byte{2, 1, 0, 10, 1, 0, 20, 2, 0, 30, 3, 0, 40, 4, 0}, "")
	f.Add([]byte{3, 0, 5, 10, 1, 9, 20, 2, 8, 30, 3, 7, 40, 4, 6, 50, 5, 5, 60, 6, 4}, "../x")
	f.Fuzz(func(t *testing.T, raw []byte, uri string) {
		if len(raw) < 3 {
			return
		}
		folder := Folder{Dir: "/c", Training: "fraud"}
		if raw[2]%2 == 1 {
			folder.Complete = "*/DONE"
		}
		keep := 2 + int(raw[0]%5)
		known := []crew.Checkpoint{{Step: int64(raw[1]), URI: uri, At: moment(int(raw[2] % 60))}}
		for raw = raw[3:]; len(raw) >= 3; raw = raw[3:] {
			known = append(known, crew.Checkpoint{Step: int64(raw[0]), URI: fmt.Sprintf("/c/%d/%d", raw[2]%16, raw[2]%3), At: moment(int(raw[1] % 60))})
		}
		var discarded []Discard
		if len(uri) > 3 {
			n := binary.LittleEndian.Uint16([]byte(uri[:2]))
			discarded = append(discarded, Discard{From: int64(n % 256), Until: moment(int(n / 256 % 60))})
		}
		usable := Without(Merge(known), discarded)
		hold := Hold{Back: len(uri)%2 == 0}
		if len(usable) > 0 {
			hold.From = &usable[len(uri)%len(usable)]
		}
		names := folder.Surplus(known, discarded, keep, hold)
		gone := folder.Named(known, names)
		left := slices.DeleteFunc(slices.Clone(usable), func(c crew.Checkpoint) bool { return slices.Contains(gone, c) })
		for _, name := range names {
			if !filepath.IsLocal(name) || name == "." || strings.HasPrefix(name, ownPrefix) {
				t.Fatalf("%q would be removed", name)
			}
		}
		steps := func(all []crew.Checkpoint) int { return len(usableSteps(folder.places(all, nil))) }
		if steps(left) < min(keep, steps(usable)) {
			t.Fatalf("%d steps stay of %d, and %d should", steps(left), steps(usable), keep)
		}
		if len(usable) > 0 && (len(left) == 0 || left[0] != usable[0]) {
			t.Fatalf("the newest checkpoint %v would be removed", usable[0])
		}
		if hold.From == nil {
			return
		}
		if slices.Contains(gone, *hold.From) {
			t.Fatalf("ranks began with %v, which would be removed", *hold.From)
		}
		earlier := func(all []crew.Checkpoint) int {
			return steps(slices.DeleteFunc(slices.Clone(all), func(c crew.Checkpoint) bool { return c.Step >= hold.From.Step }))
		}
		if hold.Back && earlier(usable) > 0 && earlier(left) == 0 {
			t.Fatalf("nothing stays before %v: %v", *hold.From, left)
		}
	})
}

// tree of what is in a folder, by path.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRemove shows what is removed of a folder, and what is not touched.
func TestRemove(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		files   []string
		prepare func(t *testing.T, dir string)
		names   []string
		kept    []string
		want    []string // files that are left
		gone    []string
		words   []string
	}{
		"Folders and files": {
			reason: "A checkpoint may be either, at any depth.", files: []string{"step-1/a/b", "step-2.pt", "runs/step-3/x", "runs/step-4/x"},
			names: []string{"runs/step-3", "step-1", "step-2.pt"}, gone: []string{"runs/step-3", "step-1", "step-2.pt"}, want: []string{"runs/step-4/x"},
		},
		"Not there": {reason: "What the program has removed itself is gone.", names: []string{"step-1", "runs/step-3"}, gone: []string{"step-1", "runs/step-3"}},
		"A link": {
			reason: "A link is not followed, and not removed.", files: []string{"step-2/x"}, names: []string{"latest", "there/step-3"}, want: []string{"latest", "step-2/x", "there"},
			prepare: func(t *testing.T, dir string) {
				t.Helper()
				link(t, "step-2", filepath.Join(dir, "latest"))
				link(t, t.TempDir(), filepath.Join(dir, "there"))
			},
			words: []string{"latest", "symbolic link", "by hand"},
		},
		"Linked": {
			reason: "What a checkpoint that is kept links to stays.", files: []string{"step-1/x", "step-2/x"}, names: []string{"step-1", "step-2"}, kept: []string{"latest"},
			prepare: func(t *testing.T, dir string) { t.Helper(); link(t, "step-2", filepath.Join(dir, "latest")) },
			gone:    []string{"step-1"}, want: []string{"latest", "step-2/x"},
		},
		"A pipe": {
			reason: "It is no checkpoint.", names: []string{"pipe"}, want: []string{"pipe"}, words: []string{"neither"},
			prepare: func(t *testing.T, dir string) {
				t.Helper()
				if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
		},
		"Outside": {reason: "No name is outside the folder.", names: []string{"../step-1"}, words: []string{"../step-1"}},
		"Interrupted": {
			reason: "What a coordinator before was about to remove goes, too, and nothing with a similar name.",
			files:  []string{".capstan-fraud-removed-17/x", ".capstan-fraud-removed-1.json", ".capstan-fraud-removed-2-removed-3/x", ".capstan-fraud.json"},
			want:   []string{".capstan-fraud-removed-1.json", ".capstan-fraud-removed-2-removed-3/x", ".capstan-fraud.json"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, tc.files...)
			if tc.prepare != nil {
				tc.prepare(t, dir)
			}
			gone, err := Folder{Dir: dir, Training: "fraud"}.Remove(tc.names, tc.kept)
			if diff := cmp.Diff(tc.gone, gone); diff != "" {
				t.Errorf("%s\nRemove(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, tree(t, dir)); diff != "" {
				t.Errorf("%s\nwhat is left: -want, +got:\n%s", tc.reason, diff)
			}
			if (err != nil) != (len(tc.words) > 0) {
				t.Errorf("%s\nerror: %v", tc.reason, err)
			}
			for _, w := range tc.words {
				if err != nil && !strings.Contains(err.Error(), w) {
					t.Errorf("%s: want %q in the error %q", tc.reason, w, err)
				}
			}
		})
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

// TestShared shows when a folder is one of two trainings.
func TestShared(t *testing.T) {
	dir := t.TempDir()
	f, other := Folder{Dir: dir, Training: "fraud"}, Folder{Dir: dir, Training: "churn"}
	for _, tc := range []struct {
		reason string
		do     func() error
		want   string
	}{
		{"A record of its own does not count.", func() error { return f.Write(Record{Run: 1}) }, ""},
		{"Another one does while its run has not ended.", func() error { return other.Write(Record{Run: 3}) }, "churn"},
		{"After that it does not.", func() error { return other.Write(Record{Run: 3, Ended: true}) }, ""},
		{"What is no record does not, either.", func() error { return os.WriteFile(other.file(), []byte("x"), 0o600) }, ""},
	} {
		if err := tc.do(); err != nil {
			t.Fatal(err)
		}
		got, err := f.Find(nil)
		if err != nil || got.Shared != tc.want {
			t.Errorf("%s\nwant %q, got %q, %v", tc.reason, tc.want, got.Shared, err)
		}
	}
}

// TestRemovedIsNoCheckpoint: what is about to be removed never looks complete, and Tidy removes it after a crash.
func TestRemovedIsNoCheckpoint(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, ".capstan-fraud-removed-17/DONE", "step-3/DONE")
	f := Folder{Dir: dir, Complete: "*/DONE", Training: "fraud"}
	got, err := f.Find(nil)
	if err != nil || len(got.Complete) != 1 || got.Complete[0].Step != 3 {
		t.Errorf("want step 3 only, got %v, %v", got.Complete, err)
	}
	if err := f.Tidy(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"step-3/DONE"}, tree(t, dir)); diff != "" {
		t.Errorf("what is left: -want, +got:\n%s", diff)
	}
	if err := (Folder{Dir: filepath.Join(dir, "none"), Training: "fraud"}).Tidy(); err != nil {
		t.Errorf("a folder that is not there yet needs no tidying: %v", err)
	}
	if _, err := (Folder{Dir: filepath.Join(dir, "none"), Training: "fraud"}).Remove([]string{"x"}, nil); err == nil || !strings.Contains(err.Error(), "mount the volume") {
		t.Errorf("want the remedy, got %v", err)
	}
}
