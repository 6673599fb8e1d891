// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
)

// put a file into a folder.
func put(f *Folder, name, content string) error {
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	return w.Copy(strings.NewReader(content), make([]byte, 8))
}

func TestFolder(t *testing.T) {
	cases := map[string]struct {
		reason string
		fill   func(f *Folder) error
		want   []string
		err    string
	}{
		"Files": {
			reason: "Files come sorted by their bytes, whatever order they were written in.",
			fill: func(f *Folder) error {
				return errors.Join(put(f, "b/c", "1"), put(f, "a", "2"), put(f, "b-", "3"))
			},
			want: []string{"a", "b-", "b/c"},
		},
		"Empty": {
			reason: "Nothing is no model.",
			fill:   func(f *Folder) error { return f.Mkdir("a/b") },
			err:    "the model has no files",
		},
		"Twice": {
			reason: "Two objects cannot be one file.",
			fill:   func(f *Folder) error { return errors.Join(put(f, "a", "1"), put(f, "a", "2")) },
			err:    `cannot write "a": file exists`,
		},
		"FileAndFolder": {
			reason: "In object storage something can be both.",
			fill:   func(f *Folder) error { return errors.Join(put(f, "a", "1"), put(f, "a/b", "2")) },
			err:    `cannot write "a/b": file exists`,
		},
		"Up":       {reason: "No step up.", fill: func(f *Folder) error { return put(f, "../a", "1") }, err: `"../a" is not the path`},
		"Absolute": {reason: "No other folder.", fill: func(f *Folder) error { return put(f, "/a", "1") }, err: `"/a" is not the path`},
		"Newline": {
			reason: "sha256sum would write such a name in another way.",
			fill:   func(f *Folder) error { return put(f, "a\nb", "1") }, err: `"a\nb" has a control character`,
		},
		"LinkWithin": {
			reason: "A link to a file of the model stays a link, and is none of its files.",
			fill: func(f *Folder) error {
				return errors.Join(put(f, "blobs/1", "1"), f.Mkdir("v1"), f.Symlink("../blobs/1", "v1/model"))
			},
			want: []string{"blobs/1"},
		},
		"LinkAbsolute": {
			reason: "In an image the top of the model is the top of everything.",
			fill: func(f *Folder) error {
				return errors.Join(f.Symlink("/data/v1", "models"), f.Mkdir("data/v1"), put(f, "models/a", "1"))
			},
			want: []string{"data/v1/a"},
		},
		"LinkUp": {
			reason: "Above the top there is nothing.",
			fill: func(f *Folder) error {
				return errors.Join(put(f, "a", "1"), f.Symlink("../../../../../../etc/passwd", "b"))
			},
			want: []string{"a"},
		},
		"LinkThroughLink": {
			reason: "A link that was made through another one is higher up than its name says.",
			fill: func(f *Folder) error {
				return errors.Join(put(f, "a", "1"), f.Mkdir("x"), f.Symlink("/", "x/top"), f.Symlink("../../etc", "x/top/b"))
			},
			err: "points out of the model",
		},
		"LinkCircle": {
			reason: "Nobody gets to the end of it.",
			fill:   func(f *Folder) error { return errors.Join(put(f, "a", "1"), f.Symlink("c", "b"), f.Symlink("b", "c")) },
			err:    "points out of the model or in a circle",
		},
		"WriteThroughLink": {
			reason: "A link does not help to write elsewhere.",
			fill: func(f *Folder) error {
				return errors.Join(f.Mkdir("x"), f.Symlink("/", "x/top"), f.Symlink("../..", "x/top/up"), put(f, "up/escaped", "1"))
			},
			err: `cannot write "up/escaped": path escapes from parent`,
		},
		"Hardlink": {
			reason: "One file by two names is two files.",
			fill:   func(f *Folder) error { return errors.Join(put(f, "a", "1"), f.Hardlink("a", "b/c")) },
			want:   []string{"a", "b/c"},
		},
		"HardlinkToNothing": {
			reason: "A link to what is not there is an error of who built it.",
			fill:   func(f *Folder) error { return f.Hardlink("a", "b") },
			err:    `cannot link "b" to "a": that is no file`,
		},
		"Remove": {
			reason: "What is below goes with it.",
			fill: func(f *Folder) error {
				return errors.Join(put(f, "a/b", "1"), put(f, "ab", "2"), f.Remove("a"), f.Remove("nothing"))
			},
			want: []string{"ab"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "model")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			f := NewFolder(open(t, dir))
			err := tc.fill(f)
			var m Manifest
			if err == nil {
				m, err = f.Seal(t.Context(), slog.New(slog.DiscardHandler))
			}
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s\nwant error %q, got %v", tc.reason, tc.err, err)
				}
				if reason := failure.Of(err).Reason; reason != failure.Invalid {
					t.Errorf("%s\nwant reason %s, got %s", tc.reason, failure.Invalid, reason)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			var got []string
			for _, file := range m {
				got = append(got, file.Path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			// What was computed while it was written is what is there.
			there, err := Of(t.Context(), open(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(there, m); diff != "" {
				t.Errorf("%s\n-there, +computed:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSealPermissions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f := NewFolder(open(t, dir))
	if err := put(f, "a/b", "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seal(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{".": 0o775, "a": 0o775, "a/b": 0o644} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("other users must be able to read %q, and those of the group to remove it: want mode %s, got %s", name, want, got)
		}
	}
}
