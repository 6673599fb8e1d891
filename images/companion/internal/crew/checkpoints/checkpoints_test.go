// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
)

// moment of a test, some minutes after a fixed time.
func moment(minutes int) time.Time {
	return time.Date(2026, 11, 26, 12, minutes, 0, 0, time.UTC)
}

// put files into a folder. A name that ends with a slash is a folder. All change at the moment 0.
func put(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o750); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, moment(0), moment(0)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFind shows which checkpoints count.
func TestFind(t *testing.T) {
	at := func(step int64, uri string) crew.Checkpoint {
		return crew.Checkpoint{Step: step, URI: uri, At: moment(0)}
	}
	for name, tc := range map[string]struct {
		reason   string
		complete string
		files    []string
		reported []string // DIR stands for the folder
		want     []crew.Checkpoint
		gone     []string
	}{
		"Empty": {reason: "A folder without anything has no checkpoint."},
		"Complete": {
			reason: "A checkpoint without its last file is not complete.", complete: "step-*/DONE",
			files: []string{"step-10/DONE", "step-20/DONE", "step-30/weights"},
			want:  []crew.Checkpoint{at(10, "DIR/step-10"), at(20, "DIR/step-20")},
		},
		"LastNumber": {
			reason: "The last number in the name is the step.", complete: "*/DONE",
			files: []string{"attempt-2-step-00000040/DONE", "epoch3/DONE", "best/DONE"},
			want:  []crew.Checkpoint{at(40, "DIR/attempt-2-step-00000040"), at(3, "DIR/epoch3")},
		},
		"FirstFolder": {
			reason: "The first folder of a match is the checkpoint, and it counts once.", complete: "step-*/*/DONE",
			files: []string{"step-10/model/DONE", "step-10/optimizer/DONE"},
			want:  []crew.Checkpoint{at(10, "DIR/step-10")},
		},
		"TooLarge":  {reason: "A number that is none of a step is left out.", complete: "*/DONE", files: []string{"99999999999999999999/DONE"}},
		"FilesOnly": {reason: "A file in the folder itself is no checkpoint.", complete: "*", files: []string{"step-10"}},
		"Reported": {
			reason: "Without a pattern, a reported path counts while it is there. What has a scheme cannot be checked.",
			files:  []string{"step-10/weights"}, reported: []string{"DIR/step-10", "DIR/step-20", "step-10", "step-30", "s3://models/step-40"},
			gone: []string{"DIR/step-20", "step-30"},
		},
		"ReportedIncomplete": {
			reason: "With a pattern, what is reported of the folder must be complete.", complete: "step-*/DONE",
			files: []string{"step-10/DONE", "step-20/weights"}, reported: []string{"DIR/step-10/weights", "DIR/step-20"},
			want: []crew.Checkpoint{at(10, "DIR/step-10")}, gone: []string{"DIR/step-20"},
		},
		"Strange": {
			reason: "A path that cannot be one is not there.", files: []string{"step-10"},
			reported: []string{"DIR/step-10/below", "DIR/" + strings.Repeat("x", 5000), "\x00"},
			gone:     []string{"\x00", "DIR/" + strings.Repeat("x", 5000), "DIR/step-10/below"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, tc.files...)
			var reported []crew.Checkpoint
			for _, uri := range tc.reported {
				reported = append(reported, at(1, strings.Replace(uri, "DIR", dir, 1)))
			}
			got, err := Folder{Dir: dir, Complete: tc.complete, Training: "fraud"}.Find(reported)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got.Complete {
				got.Complete[i].URI = strings.Replace(got.Complete[i].URI, dir, "DIR", 1)
			}
			for i := range got.Gone {
				got.Gone[i] = strings.Replace(got.Gone[i], dir, "DIR", 1)
			}
			slices.Sort(got.Gone)
			slices.Sort(tc.gone)
			slices.SortFunc(tc.want, func(a, b crew.Checkpoint) int { return strings.Compare(a.URI, b.URI) })
			slices.SortFunc(got.Complete, func(a, b crew.Checkpoint) int { return strings.Compare(a.URI, b.URI) })
			want := Found{Record: Record{Ledger: protocol.Ledger{Attempt: -1}}, Complete: tc.want, Gone: tc.gone}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nFind(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFindFails shows what cannot be read, and what a person can do about it.
func TestFindFails(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		prepare func(t *testing.T, dir string)
		folder  Folder
		words   []string
	}{
		"Missing":    {reason: "No rank could write there.", folder: Folder{Dir: "/none"}, words: []string{"cannot read", "/none", "mount the volume"}},
		"AFile":      {reason: "The volume is a folder.", prepare: func(t *testing.T, dir string) { t.Helper(); put(t, dir, "file") }, folder: Folder{Dir: "DIR/file"}, words: []string{"not a directory"}},
		"NoPattern":  {reason: "Such a pattern matches nothing.", folder: Folder{Dir: "DIR", Complete: "["}, words: []string{`"[" is no pattern`}},
		"NoRecord":   {reason: "Nobody's record is read as none: its account would begin again.", prepare: func(t *testing.T, dir string) { t.Helper(); put(t, dir, ".capstan-fraud.json") }, folder: Folder{Dir: "DIR", Training: "fraud"}, words: []string{"is no record", "remove it"}},
		"NoVolume":   {reason: "The folder of a cycle is below a volume, which nobody makes.", folder: Folder{Dir: "/none/fraud-cycle-3", Cycle: 3}, words: []string{"cannot make", "mount the volume"}},
		"CycleAFile": {reason: "What is in the way is not replaced.", prepare: func(t *testing.T, dir string) { t.Helper(); put(t, dir, "fraud-cycle-3") }, folder: Folder{Dir: "DIR/fraud-cycle-3", Cycle: 3}, words: []string{"not a directory"}},
		"LargeRecord": {
			reason: "A file of this name may be anything.", folder: Folder{Dir: "DIR", Training: "fraud"}, words: []string{"larger than"},
			prepare: func(t *testing.T, dir string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, ".capstan-fraud.json"), make([]byte, maxRecord+1), 0o600); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tc.prepare != nil {
				tc.prepare(t, dir)
			}
			tc.folder.Dir = strings.Replace(tc.folder.Dir, "DIR", dir, 1)
			_, err := tc.folder.Find(nil)
			if err == nil {
				t.Fatalf("%s: want an error", tc.reason)
			}
			for _, w := range tc.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s: want %q in the error %q", tc.reason, w, err)
				}
			}
		})
	}
}

// TestRecord shows that a record is found as it was written, also when an earlier write was cut off.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	f := Folder{Dir: dir, Training: "fraud"}
	put(t, dir, ".capstan-fraud.json.next")
	var r Record
	for i := range maxKept + 5 {
		r.Reported = append(r.Reported, crew.Checkpoint{Step: int64(i), URI: "/none", At: moment(0)})
		r.Discarded = append(r.Discarded, Discard{From: int64(i), Until: moment(1)})
	}
	r.Run, r.Ended, r.Ledger = 3, true, protocol.Ledger{Attempt: 2}
	r.Trim()
	if len(r.Reported) != maxKept || r.Reported[0].Step != 5 || len(r.Discarded) != maxKept || r.Discarded[0].From != 5 {
		t.Errorf("want the newest %d entries, got %d and %d", maxKept, len(r.Reported), len(r.Discarded))
	}
	if err := f.Write(r); err != nil {
		t.Fatal(err)
	}
	got, err := f.Find(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got.Record); diff != "" {
		t.Errorf("record: -want, +got:\n%s", diff)
	}
	if other, err := (Folder{Dir: dir, Training: "fraud-2"}).Find(nil); err != nil || other.Record.Run != 0 {
		t.Errorf("another training should have no record there, got %+v, %v", other.Record, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*.next")); err != nil || len(left) > 0 {
		t.Errorf("nothing half written should be left, got %v, %v", left, err)
	}
}

// TestMerge and TestWithout show which checkpoint is the newest one that can be used.
func TestMerge(t *testing.T) {
	c := func(step int64, uri string, minute int) crew.Checkpoint {
		return crew.Checkpoint{Step: step, URI: uri, At: moment(minute)}
	}
	for name, tc := range map[string]struct {
		reason string
		lists  [][]crew.Checkpoint
		want   []crew.Checkpoint
	}{
		"None":   {reason: "There may be none."},
		"Newest": {reason: "The highest step is first.", lists: [][]crew.Checkpoint{{c(10, "a", 0)}, {c(20, "b", 0)}}, want: []crew.Checkpoint{c(20, "b", 0), c(10, "a", 0)}},
		"Again":  {reason: "A checkpoint that was written again counts once, as it is now.", lists: [][]crew.Checkpoint{{c(10, "a", 0)}, {c(12, "a", 1)}}, want: []crew.Checkpoint{c(12, "a", 1)}},
		"Same":   {reason: "Of one step, the later one is first, then the name decides.", lists: [][]crew.Checkpoint{{c(10, "c", 0), c(10, "b", 0), c(10, "a", 1)}}, want: []crew.Checkpoint{c(10, "a", 1), c(10, "b", 0), c(10, "c", 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Merge(tc.lists...)); diff != "" {
				t.Errorf("%s\nMerge(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWithout(t *testing.T) {
	all := []crew.Checkpoint{{Step: 30, URI: "c", At: moment(3)}, {Step: 20, URI: "b", At: moment(2)}, {Step: 10, URI: "a", At: moment(1)}}
	for name, tc := range map[string]struct {
		reason    string
		discarded []Discard
		want      []crew.Checkpoint
	}{
		"None":  {reason: "All can be used.", want: all},
		"From":  {reason: "What is before the step can be used.", discarded: []Discard{{From: 20, Until: moment(5)}}, want: all[2:]},
		"Later": {reason: "What was written later under the same name can be used.", discarded: []Discard{{From: 10, Until: moment(2)}}, want: all[:1]},
		"All":   {reason: "Then a training begins from the start.", discarded: []Discard{{From: 0, Until: moment(5)}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Without(all, tc.discarded)); diff != "" {
				t.Errorf("%s\nWithout(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCycle shows that a cycle has a folder of its own, and what is deleted for it.
func TestCycle(t *testing.T) {
	volume := t.TempDir()
	put(t, volume, "fraud-cycle-1/step-9/DONE", "fraud-cycle-2/step-9/DONE", "fraud-cycle-4/step-9/DONE", "fraud-cycle-9/step-9/DONE", "fraud-cycle-03/DONE",
		"fraud-cycle-x/DONE", "fraud-2-cycle-1/DONE", "step-7/DONE", "fraud-cycle-3")
	f := Folder{Dir: filepath.Join(volume, "fraud-cycle-5"), Complete: "step-*/DONE", Training: "fraud", Cycle: 5, Former: 2}
	for range 2 { // A coordinator that starts again finds the folder.
		got, err := f.Find(nil)
		if err != nil || len(got.Complete) > 0 {
			t.Fatalf("a cycle should begin without checkpoints, got %v, %v", got.Complete, err)
		}
	}
	if info, err := os.Stat(f.Dir); err != nil || info.Mode().Perm() != 0o770 || info.Mode()&fs.ModeSetgid == 0 {
		t.Errorf("other pods should be able to write there by their group, got %v, %v", info.Mode(), err)
	}
	if err := f.Tidy(); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(volume)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	// 1 and 4 are earlier cycles. 2 is the former one, 9 is of the time before the Training was made again, and the rest is not ours.
	want := []string{"fraud-2-cycle-1", "fraud-cycle-03", "fraud-cycle-2", "fraud-cycle-3", "fraud-cycle-5", "fraud-cycle-9", "fraud-cycle-x", "step-7"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("what is left: -want, +got:\n%s", diff)
	}
	if err := (Folder{Dir: volume, Training: "fraud"}).Tidy(); err != nil {
		t.Errorf("without a cycle nothing is tidied: %v", err)
	}
}
