// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
)

// archive of entries; one without a type is a file with its link name as content.
func archive(tb testing.TB, entries ...tar.Header) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := ""
		if h.Typeflag == 0 {
			h.Typeflag, content, h.Linkname = tar.TypeReg, h.Linkname, ""
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			tb.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// newFolder returns a folder to write a model into, and where it is.
func newFolder(tb testing.TB) (*model.Folder, string) {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "outer", "model")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = root.Close() })
	return model.NewFolder(root), dir
}

// tree of a folder: files with their content, links with their target, empty folders with a slash.
func tree(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			if below, err := os.ReadDir(name); err != nil || len(below) == 0 {
				found[rel+"/"] = ""
				return err
			}
		case entry.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			found[rel] = "-> " + target
			return err
		default:
			content, err := os.ReadFile(name)
			found[rel] = string(content)
			return err
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

func TestUnpack(t *testing.T) {
	file := func(name, content string) tar.Header { return tar.Header{Name: name, Linkname: content} }
	cases := map[string]struct {
		reason string
		layers [][]tar.Header
		limit  int64
		want   map[string]string
		err    string
		failed failure.Reason
	}{
		"Plain": {
			reason: "Names may begin with a slash or with a dot.",
			layers: [][]tar.Header{{{Name: "./", Typeflag: tar.TypeDir}, file("./a", "1"), file("/b/c", "2"), {Name: "d/", Typeflag: tar.TypeDir}}},
			want:   map[string]string{"a": "1", "b/c": "2", "d/": ""},
		},
		"Replaced": {
			reason: "The last one counts, whatever was there.",
			layers: [][]tar.Header{
				{file("a", "1"), file("b/c", "1"), {Name: "l", Linkname: "a", Typeflag: tar.TypeSymlink}},
				{file("a/x", "2"), file("b", "2"), file("l", "2")},
			},
			err: `cannot write "a/x": file exists`, failed: failure.Invalid,
		},
		"ReplacedByFolder": {
			reason: "A folder takes the place of a file if the layer says so.",
			layers: [][]tar.Header{
				{file("a", "1"), file("b/c", "1"), {Name: "l", Linkname: "b", Typeflag: tar.TypeSymlink}},
				{{Name: "a", Typeflag: tar.TypeDir}, file("a/x", "2"), file("b", "2"), file("l", "2")},
			},
			want: map[string]string{"a/x": "2", "b": "2", "l": "2"},
		},
		"Whiteout": {
			reason: "A layer takes away what those below have made, and not what it makes itself.",
			layers: [][]tar.Header{
				{file("a", "1"), file("b/c", "1"), file("b/d/e", "1")},
				{file(".wh.a", ""), file("b/new", "2"), file("b/.wh..wh..opq", ""), file(".wh.nothing", ""), file(".wh...", "")},
			},
			want: map[string]string{"b/new": "2"},
		},
		"Hardlink": {
			reason: "A hard link is the file.",
			layers: [][]tar.Header{{file("a", "1"), {Name: "b", Linkname: "/a", Typeflag: tar.TypeLink}, {Name: "a", Linkname: "a", Typeflag: tar.TypeLink}}},
			want:   map[string]string{"a": "1", "b": "1"},
		},
		"Symlink": {
			reason: "Links count from the top of the model and stay in it.",
			layers: [][]tar.Header{{
				file("blobs/a", "1"),
				{Name: "s/a", Linkname: "../blobs/a", Typeflag: tar.TypeSymlink},
				{Name: "s/b", Linkname: "/blobs/a", Typeflag: tar.TypeSymlink},
				{Name: "s/c", Linkname: "../../../../blobs/a", Typeflag: tar.TypeSymlink},
			}},
			want: map[string]string{"blobs/a": "1", "s/a": "-> ../blobs/a", "s/b": "-> ../blobs/a", "s/c": "-> ../blobs/a"},
		},
		"Devices": {
			reason: "What is no file is left out.",
			layers: [][]tar.Header{{file("a", "1"), {Name: "null", Typeflag: tar.TypeChar}, {Name: "pipe", Typeflag: tar.TypeFifo}}},
			want:   map[string]string{"a": "1"},
		},
		"Up": {
			reason: "A step up is refused, not repaired.",
			layers: [][]tar.Header{{file("a/../../b", "1")}}, err: `"a/../../b", which points out of it`, failed: failure.Invalid,
		},
		"HardlinkUp": {
			reason: "Also as the target of a link.",
			layers: [][]tar.Header{{{Name: "a", Linkname: "../../etc/passwd", Typeflag: tar.TypeLink}}}, err: "points out of it", failed: failure.Invalid,
		},
		"TooMuch": {
			reason: "An archive may be larger than it looks; the disk is shared.",
			layers: [][]tar.Header{{file("a", "123"), file("b", "456")}}, limit: 5,
			err: "the model has more than the 5 bytes", failed: failure.SizeMismatch,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder, dir := newFolder(t)
			u := &unpacker{folder: folder, log: slog.New(slog.DiscardHandler), limit: tc.limit, buf: make([]byte, 1<<10)}
			var err error
			for _, l := range tc.layers {
				if err = u.unpack(bytes.NewReader(archive(t, l...)), true); err != nil {
					break
				}
			}
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || !failure.Is(err, tc.failed) {
					t.Fatalf("%s\nwant %s %q, got %v", tc.reason, tc.failed, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, tree(t, dir)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDecompress(t *testing.T) {
	plain := archive(t, tar.Header{Name: "a", Linkname: strings.Repeat("model ", 1000)})
	var zipped, zstandard bytes.Buffer
	z := gzip.NewWriter(&zipped)
	s, err := zstd.NewWriter(&zstandard)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []io.WriteCloser{z, s} {
		if _, err := w.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string][]byte{"plain": plain, "gzip": zipped.Bytes(), "zstd": zstandard.Bytes()} {
		r, err := decompress(bytes.NewReader(content))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: want what was compressed, got %d bytes, %v", name, len(got), err)
		}

		// Whatever is cut off or changed is an archive that cannot be read, not a server that cannot be reached.
		broken := slices.Clone(content)
		for i := 20; i < len(broken); i += 7 {
			broken[i] ^= 0xff
		}
		folder, _ := newFolder(t)
		u := &unpacker{folder: folder, log: slog.New(slog.DiscardHandler), buf: make([]byte, 1<<10)}
		if r, err = decompress(bytes.NewReader(broken)); err == nil {
			err = u.unpack(r, false)
		}
		if err = (&image{ref: reference(t)}).broken(layer{}, err); !failure.Is(err, failure.Invalid) {
			t.Errorf("%s, broken: want %s, got %v", name, failure.Invalid, err)
		}
	}
}

// FuzzUnpack shows that nothing that an archive can hold reaches anything outside of the folder, while it is unpacked or later by
// whoever reads the model.
func FuzzUnpack(f *testing.F) {
	f.Add("a", "x/../../b", byte(tar.TypeReg), byte(tar.TypeReg), "", "")
	f.Add("l", "l/passwd", byte(tar.TypeSymlink), byte(tar.TypeReg), "../..", "")
	f.Add("x/top", "x/top/up", byte(tar.TypeSymlink), byte(tar.TypeSymlink), "/", "../../..")
	f.Add("x/../l", "h", byte(tar.TypeSymlink), byte(tar.TypeLink), "/etc/passwd", "l")
	f.Add(".wh..", ".wh..wh..opq", byte(tar.TypeReg), byte(tar.TypeReg), "", "")
	f.Add("a/.wh...", "a\\b", byte(tar.TypeDir), byte(tar.TypeReg), "", "")
	f.Fuzz(func(t *testing.T, name, second string, kind, other byte, link, target string) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range []tar.Header{
			{Name: "x/y", Typeflag: tar.TypeDir},
			{Name: name, Typeflag: kind, Linkname: link},
			{Name: second, Typeflag: other, Linkname: target},
			{Name: name + "/" + second, Typeflag: tar.TypeReg},
			{Name: second + "/z", Typeflag: kind, Linkname: target},
		} {
			// Archives that cannot be written cannot be read either.
			_ = w.WriteHeader(&h)
		}
		if err := w.Close(); err != nil {
			return
		}
		folder, dir := newFolder(t)
		outside := filepath.Dir(dir)
		if err := os.WriteFile(filepath.Join(outside, "passwd"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.DiscardHandler)
		u := &unpacker{folder: folder, log: log, buf: make([]byte, 1<<10)}
		err := u.unpack(&b, true)
		if _, serr := folder.Seal(t.Context(), log); err == nil {
			err = serr
		}
		entries, lerr := os.ReadDir(outside)
		if lerr != nil || len(entries) != 2 {
			t.Fatalf("something was written outside of the folder: %v, %v", entries, lerr)
		}
		if content, rerr := os.ReadFile(filepath.Join(outside, "passwd")); rerr != nil || string(content) != "secret" {
			t.Fatalf("something was changed outside of the folder: %q, %v", content, rerr)
		}
		if err != nil {
			return // it is never published
		}
		top, rerr := filepath.EvalSymlinks(dir)
		if rerr != nil {
			t.Fatal(rerr)
		}
		for path, content := range tree(t, dir) {
			if !strings.HasPrefix(content, "-> ") {
				continue
			}
			to, rerr := filepath.EvalSymlinks(filepath.Join(dir, path))
			if rerr != nil || to != top && !strings.HasPrefix(to, top+"/") {
				t.Fatalf("link %q leads to %q: %v", path, to, rerr)
			}
		}
	})
}
