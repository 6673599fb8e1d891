// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestSize(t *testing.T) {
	cases := map[string]struct {
		reason      string
		least, most int64
		want        int64
		code        codes.Code
	}{
		"Asked":    {"It has the size it was asked for.", 400 << 20, 0, 400 << 20, codes.OK},
		"Small":    {"XFS takes no less.", 1 << 20, 0, 300 << 20, codes.OK},
		"Odd":      {"It ends at a whole block.", 400<<20 + 1, 0, 400<<20 + 4096, codes.OK},
		"Bound":    {"A bound holds.", 1 << 20, 100 << 20, 0, codes.OutOfRange},
		"JustFits": {"It may be as large as the bound.", 400 << 20, 400 << 20, 400 << 20, codes.OK},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := size(tc.least, tc.most)
			if got != tc.want || status.Code(err) != tc.code {
				t.Errorf("\n%s\nsize(%d, %d): want %d, %s, got %d, %v", tc.reason, tc.least, tc.most, tc.want, tc.code, got, err)
			}
		})
	}
}

func TestDisks(t *testing.T) {
	d := disks{folder: t.TempDir()}
	const bytes = 400 << 20
	for range 2 { // the provisioner may ask twice
		if err := d.make("pvc-1", bytes); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.make("pvc-1", 2*bytes); status.Code(err) != codes.AlreadyExists {
		t.Errorf("a volume of another size is another one: %v", err)
	}
	if device, err := d.grow("pvc-1", 2*bytes); err != nil || device != "" {
		t.Errorf("a volume grows while it is attached to nothing: %q, %v", device, err)
	}
	if _, err := d.grow("pvc-1", bytes); err != nil {
		t.Error(err)
	}
	if got, err := d.size("pvc-1"); err != nil || got != 2*bytes {
		t.Errorf("a volume never shrinks: %d, %v", got, err)
	}
	if _, err := d.grow("pvc-2", bytes); status.Code(err) != codes.NotFound {
		t.Errorf("what is not there does not grow: %v", err)
	}
	for range 2 {
		if err := d.remove("pvc-1"); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(d.folder); err != nil || len(left) > 0 {
		t.Errorf("nothing is left: %v, %v", left, err)
	}
}

// TestSnapshots of a volume that is mounted nowhere, and volumes that are filled from them.
func TestSnapshots(t *testing.T) {
	d := disks{folder: t.TempDir()}
	const bytes = 400 << 20
	if err := d.make("pvc-1", bytes); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		f, err := os.OpenFile(filepath.Join(d.folder, "pvc-1.xfs"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(text), 4096); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	write("before")
	s, err := d.snapshot("snapshot-1", "pvc-1")
	if err != nil || s.GetSizeBytes() != bytes || !s.GetReadyToUse() {
		t.Fatalf("a snapshot has the size of its volume: %v, %v", s, err)
	}
	write("behind")
	again, err := d.snapshot("snapshot-1", "pvc-1")
	if err != nil || again.GetSnapshotId() != s.GetSnapshotId() || !again.GetCreationTime().AsTime().Equal(s.GetCreationTime().AsTime()) {
		t.Errorf("one that is there is not made again: %v, %v", again, err)
	}
	if err := d.make("pvc-2", bytes); err != nil {
		t.Fatal(err)
	}
	if _, err := d.snapshot("snapshot-1", "pvc-2"); status.Code(err) != codes.AlreadyExists {
		t.Errorf("its name is taken: %v", err)
	}
	for range 2 { // the provisioner may ask twice
		if err := d.fill("pvc-3", s.GetSnapshotId(), 2*bytes); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(d.folder, "pvc-3.xfs"))
	if err != nil || len(raw) != 2*bytes || string(raw[4096:4102]) != "before" {
		t.Errorf("a filled volume has its size and what the snapshot shows: %d bytes, %v", len(raw), err)
	}
	for what, code := range map[string]codes.Code{"gone.pvc-1.snapshot": codes.ResourceExhausted, "../x.snapshot": codes.InvalidArgument, "pvc-1.xfs": codes.InvalidArgument} {
		if err := d.fill("pvc-4", what, bytes); status.Code(err) != code {
			t.Errorf("a volume from %q: want %s, got %v", what, code, err)
		}
	}
	if err := d.fill("pvc-4", s.GetSnapshotId(), bytes/2+leastSize/4); status.Code(err) != codes.OutOfRange {
		t.Errorf("a volume that is too small: %v", err)
	}
}

func TestNamesStayInTheFolder(t *testing.T) {
	d := disks{folder: filepath.Join(t.TempDir(), "disks")}
	for _, name := range []string{"", ".", "..", "../pvc", "a/b", ".hidden"} {
		for what, err := range map[string]error{"make": d.make(name, leastSize), "remove": d.remove(name)} {
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s %q: want %s, got %v", what, name, codes.InvalidArgument, err)
			}
		}
	}
}
