// SPDX-License-Identifier: Apache-2.0

package states_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/images/companion/internal/flink/states"
)

func put(t *testing.T, dir, path string, content []byte) {
	t.Helper()
	file := filepath.Join(dir, path, flink.MetadataFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if content == nil {
		return
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func whole(id int64) []byte { return append(states.Header(4, id), "state"...) }

func TestComplete(t *testing.T) {
	cases := map[string]struct {
		reason  string
		files   map[string][]byte
		ignored []int
		want    []int64
	}{
		"Empty": {reason: "A folder without state is no error."},
		"Order": {
			reason: "Numbers decide within a revision, also from 9 to 10, and savepoints are among them.",
			files:  map[string][]byte{"checkpoints/r1/job/chk-9": whole(9), "checkpoints/r1/job/chk-10": whole(10), "savepoints/r1/savepoint-a": whole(11)},
			want:   []int64{9, 10, 11},
		},
		"Revisions": {
			reason: "A Pipeline that is made again counts its revisions from 1, and Flink counts on from the state that it found.",
			files:  map[string][]byte{"checkpoints/r7/job/chk-3": whole(3), "checkpoints/r1/job/chk-4": whole(4), "checkpoints/r10/job/chk-2": whole(2)},
			want:   []int64{2, 3, 4},
		},
		"Ignored": {
			reason:  "The state of a revision that was rolled back does not count.",
			files:   map[string][]byte{"checkpoints/r1/job/chk-3": whole(3), "checkpoints/r2/job/chk-4": whole(4), "savepoints/r2/savepoint-b": whole(5)},
			ignored: []int{2}, want: []int64{3},
		},
		"Half": {
			reason: "What has no metadata, only the begin of it, or something else in its place is not complete.",
			files: map[string][]byte{
				"checkpoints/r1/job/chk-1": whole(1), "checkpoints/r1/job/chk-2": nil, "checkpoints/r1/job/chk-3": states.Header(4, 3)[:10],
				"checkpoints/r1/job/chk-4": states.Header(4, 4), "checkpoints/r1/job/chk-5": []byte("no metadata of Flink at all"), "checkpoints/r1/job/chk-6": {},
			},
			want: []int64{1},
		},
		"Foreign": {
			reason: "Folders that are of no revision are left alone.",
			files:  map[string][]byte{"checkpoints/mine/job/chk-1": whole(1), "savepoints/r0/savepoint-x": whole(2), "savepoints/r01/savepoint-x": whole(3)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "with [brackets]*")
			for path, content := range tc.files {
				put(t, dir, path, content)
			}
			all, err := states.Folder{Dir: dir}.Complete(tc.ignored)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, s := range all {
				got = append(got, s.ID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "savepoints/r1/savepoint-a", whole(1))
	f := states.Folder{Dir: dir}
	for _, path := range []string{dir, filepath.Join(dir, "savepoints"), filepath.Join(dir, "savepoints", "r1"), filepath.Join(dir, "savepoints", "..", "..", "x")} {
		if err := f.Remove(flink.Saved{Path: path, Savepoint: true}); err == nil {
			t.Errorf("%s is removed, and is no savepoint", path)
		}
	}
	if err := f.Remove(flink.Saved{Path: filepath.Join(dir, "savepoints", "r1", "savepoint-a")}); err == nil {
		t.Error("a checkpoint is removed")
	}
	if err := f.Remove(flink.Saved{Path: filepath.Join(dir, "savepoints", "r1", "savepoint-a"), Savepoint: true}); err != nil {
		t.Error(err)
	}
}

func TestSurplus(t *testing.T) {
	all := []flink.Saved{{Path: "a", Savepoint: true}, {Path: "b", Savepoint: true}, {Path: "chk"}, {Path: "c", Savepoint: true}, {Path: "d", Savepoint: true}}
	var got []string
	for _, s := range states.Surplus(all, 2, &all[0], nil) {
		got = append(got, s.Path)
	}
	if diff := cmp.Diff([]string{"b"}, got); diff != "" {
		t.Errorf("want all savepoints but two, that in use, and no checkpoint (-want +got):\n%s", diff)
	}
}

func TestRecord(t *testing.T) {
	f := states.Folder{Dir: t.TempDir()}
	r, found, err := f.Record()
	if err != nil || found || r.Known != nil {
		t.Fatalf("without a record: %+v, %v", r, err)
	}
	r.Known = &flink.Saved{Path: "a", ID: 3}
	if err := f.Keep(r); err != nil {
		t.Fatal(err)
	}
	again, found, err := f.Record()
	if diff := cmp.Diff(r, again); diff != "" || !found || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
	if err := os.WriteFile(filepath.Join(f.Dir, flink.RecordFile), []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Record(); err == nil {
		t.Error("half a record is taken for none")
	}
}
