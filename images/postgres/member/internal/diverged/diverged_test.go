// SPDX-License-Identifier: Apache-2.0

package diverged

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/images/member/volume"
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// made is a Folder beside data of 64 KiB, on a volume with so many bytes free of one MiB.
func made(t *testing.T, free int64) Folder {
	t.Helper()
	base := t.TempDir()
	f := Folder{Path: filepath.Join(base, "pgdata.diverged"), Data: filepath.Join(base, "pgdata")}
	f.Measure = func(string) (volume.Usage, error) { return volume.Usage{Size: 1 << 20, Free: free}, nil }
	for name, size := range map[string]int{"PG_VERSION": 3, "base/1/16384": 64 << 10, "pg_wal/000000010000000000000003": 9} {
		file := filepath.Join(f.Data, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// replaced data, as a new copy of the leader's.
func (f Folder) replaced(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(f.Data); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(f.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.Data, version), []byte("17\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestKeep(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		free     int64
		replaced bool
		class    string
		after    time.Duration
		kept     bool
	}{
		"Fits":     {"There is space for two.", 1 << 19, true, volume.DiskOk, time.Hour, true},
		"TooLarge": {"A new copy would leave the volume nearly full.", 250 << 10, true, volume.DiskOk, time.Hour, false},
		"Old":      {"Nobody came for it.", 1 << 19, true, volume.DiskOk, 8 * 24 * time.Hour, false},
		"Full":     {"The Database needs the space.", 1 << 19, true, volume.DiskLow, time.Hour, false},
		"Soon":     {"Patroni is about to remove the data.", 1 << 19, false, volume.DiskOk, time.Minute, true},
		"InUse":    {"The data was not removed: what is kept changes with it.", 1 << 19, false, volume.DiskOk, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := made(t, tc.free)
			err := f.Keep(now)
			if tc.replaced {
				f.replaced(t)
			}
			since, serr := f.Since(now.Add(tc.after), tc.class)
			if serr != nil || since.IsZero() == tc.kept || tc.kept && !since.Equal(now) {
				t.Errorf("%s: it is kept since %s (%v, %v)", tc.reason, since, err, serr)
			}
			_, err = os.Stat(filepath.Join(f.Path, "data", "pg_wal", "000000010000000000000003"))
			if (err == nil) != tc.kept {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestKeepOnce: the last one is kept, and a folder that is not whole is none.
func TestKeepOnce(t *testing.T) {
	f := made(t, 1<<19)
	if err := f.Keep(now); err != nil {
		t.Fatal(err)
	}
	f.replaced(t)
	if err := f.Keep(now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if since, err := f.Since(now.Add(time.Hour), volume.DiskOk); err != nil || !since.Equal(now.Add(time.Hour)) {
		t.Errorf("the last is of %s (%v)", since, err)
	}
	if _, err := os.Stat(filepath.Join(f.Path, "data", "base")); err == nil {
		t.Error("what was kept before is mixed with it")
	}
	if err := os.Remove(f.record()); err != nil {
		t.Fatal(err)
	}
	for after, there := range map[time.Duration]bool{0: true, time.Hour: false} {
		if since, err := f.Since(time.Now().Add(after), volume.DiskOk); err != nil || !since.IsZero() {
			t.Errorf("half a folder is of %s (%v)", since, err)
		}
		if _, err := os.Stat(f.Path); after > 0 && (err == nil) != there {
			t.Errorf("half a folder after %s: %v", after, err)
		}
	}
}

// TestKeepLog: a write-ahead log on a volume of its own is kept there, and the data that is kept leads to it.
func TestKeepLog(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		free   int64
		kept   bool
	}{
		"Fits":     {"There is space for two on both volumes.", 1 << 19, true},
		"TooLarge": {"Another copy would leave the volume of the log nearly full.", 200 << 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := made(t, 1<<19)
			wal := t.TempDir()
			f.Log = filepath.Join(wal, "pg_wal.diverged")
			f.Measure = func(on string) (volume.Usage, error) {
				if on == wal {
					return volume.Usage{Size: 1 << 20, Free: tc.free}, nil
				}
				return volume.Usage{Size: 1 << 20, Free: 1 << 19}, nil
			}
			own, in := filepath.Join(wal, "pg_wal"), filepath.Join(f.Data, "pg_wal")
			if err := errors.Join(os.Rename(in, own), os.Symlink(own, in)); err != nil {
				t.Fatal(err)
			}
			if err := f.Keep(now); (err == nil) != tc.kept {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			// Patroni removes the log, and then the data.
			if err := os.RemoveAll(own); err != nil {
				t.Fatal(err)
			}
			f.replaced(t)
			_, err := os.Stat(filepath.Join(f.Path, "data", "pg_wal", "000000010000000000000003"))
			if (err == nil) != tc.kept {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if err := f.Remove(); err != nil {
				t.Fatal(err)
			}
			if left, _ := os.ReadDir(wal); len(left) > 0 {
				t.Errorf("%s is left of it", left[0].Name())
			}
		})
	}
}
