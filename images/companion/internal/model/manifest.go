// SPDX-License-Identifier: Apache-2.0

// Package model is about models as folders of files: how they are written without ever leaving the folder, and by which digest
// one knows them again.
package model

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxFiles of a model. It bounds memory; an image with a whole operating system in it has a tenth of that.
const maxFiles = 100_000

// A File is one regular file of a model.
type File struct {
	// Path relative to the model, with slashes.
	Path string
	// Size in bytes.
	Size int64
	// Sum is its sha256.
	Sum [sha256.Size]byte
}

// A Manifest is all regular files of a model, sorted by their paths' bytes.
type Manifest []File

// Digest is the sha256 of the lines that sha256sum writes of all files:
//
//	find . -type f -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum -- | sha256sum
func (m Manifest) Digest() string {
	h := sha256.New()
	for i := range m {
		_, _ = fmt.Fprintf(h, "%x  %s\n", m[i].Sum, m[i].Path)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Size of all files together, in bytes.
func (m Manifest) Size() int64 {
	var size int64
	for i := range m {
		size += m[i].Size
	}
	return size
}

// Write the manifest, a line for each file.
func (m Manifest) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for i := range m {
		if _, err := fmt.Fprintf(b, "%x %d %s\n", m[i].Sum, m[i].Size, m[i].Path); err != nil {
			return fmt.Errorf("cannot write a manifest: %w", err)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("cannot write a manifest: %w", err)
	}
	return nil
}

// Read what Write has written.
func Read(r io.Reader) (Manifest, error) {
	var m Manifest
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		sum, rest, _ := strings.Cut(lines.Text(), " ")
		size, name, _ := strings.Cut(rest, " ")
		f := File{Path: name}
		n, err := hex.Decode(f.Sum[:], []byte(sum[:min(len(sum), 2*sha256.Size)]))
		if err != nil || n != sha256.Size || len(sum) != 2*sha256.Size {
			return nil, fmt.Errorf("cannot read a manifest: %q is no digest", sum)
		}
		if f.Size, err = strconv.ParseInt(size, 10, 64); err != nil || f.Size < 0 {
			return nil, fmt.Errorf("cannot read a manifest: %q is no size", size)
		}
		if err := ValidPath(name); err != nil {
			return nil, fmt.Errorf("cannot read a manifest: %w", err)
		}
		m = append(m, f)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read a manifest: %w", err)
	}
	return m, nil
}

// Matches reports whether a folder has exactly the files of the manifest, by name and size. It does not read them.
func (m Manifest) Matches(root *os.Root) error {
	want := make(map[string]int64, len(m))
	for i := range m {
		want[m[i].Path] = m[i].Size
	}
	err := walk(root, func(name string, info fs.FileInfo) error {
		size, ok := want[name]
		switch {
		case !ok:
			return fmt.Errorf("file %q does not belong to it", name)
		case size != info.Size():
			return fmt.Errorf("file %q has %d bytes instead of %d", name, info.Size(), size)
		}
		delete(want, name)
		return nil
	})
	if err != nil {
		return err
	}
	for name := range want {
		return fmt.Errorf("file %q is missing", name)
	}
	return nil
}

// SizeOf all files below a folder together, in bytes, and how many there are. It does not read them.
func SizeOf(root *os.Root) (size int64, files int, err error) {
	err = walk(root, func(_ string, info fs.FileInfo) error {
		size += info.Size()
		files++
		return nil
	})
	return size, files, err
}

// reading reads until ctx is done.
type reading struct {
	io.Reader

	ctx context.Context //nolint:containedctx // A Reader has no other way to be told.
}

func (r reading) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}

// Of reads all files below a folder.
func Of(ctx context.Context, root *os.Root) (Manifest, error) {
	var m Manifest
	buf := make([]byte, 256<<10)
	err := walk(root, func(name string, _ fs.FileInfo) error {
		if err := ValidPath(name); err != nil {
			return err
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		h := sha256.New()
		// Without the plain Writer the buffer would not be used.
		size, err := io.CopyBuffer(struct{ io.Writer }{h}, reading{f, ctx}, buf)
		if err != nil {
			return err
		}
		m = append(m, File{Path: name, Size: size, Sum: [sha256.Size]byte(h.Sum(nil))})
		return nil
	})
	if err != nil {
		return nil, err
	}
	m.sort()
	return m, nil
}

func (m Manifest) sort() {
	slices.SortFunc(m, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
}

// walk calls fn for all regular files.
func walk(root *os.Root, fn func(name string, info fs.FileInfo) error) error {
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return fn(name, info)
	})
}

// ValidPath refuses names that lead out of a folder, and those that sha256sum would write in another way than they are.
func ValidPath(name string) error {
	switch {
	case name == "" || name == "." || !fs.ValidPath(name) || path.IsAbs(name):
		return fmt.Errorf("%w: %s is not the path of a file within a folder", errPath, strconv.Quote(name))
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }):
		return fmt.Errorf("%w: %s has a control character or a backslash", errPath, strconv.Quote(name))
	}
	return nil
}

var errPath = errors.New("a file's name cannot be used")
