// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
)

const (
	// whiteout is the begin of the name of a file that says that another of the layers below is gone.
	whiteout = ".wh."
	// opaque says that all of a folder of the layers below is gone.
	opaque = ".wh..wh..opq"
	// zstdWindow bounds memory; zstd itself uses no more up to its level 19.
	zstdWindow = 8 << 20
)

// An archiveError is an archive that cannot be read.
type archiveError struct{ err error }

func (a *archiveError) Error() string { return a.err.Error() }
func (a *archiveError) Unwrap() error { return a.err }

// decompress what is compressed, by its content and not by its name.
func decompress(r io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	begin, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(begin, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, &archiveError{err}
		}
		return expander{z}, nil
	case bytes.Equal(begin, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, &archiveError{err}
		}
		return expander{z.IOReadCloser()}, nil
	}
	return io.NopCloser(b), nil
}

// An unpacker writes archives into a folder.
type unpacker struct {
	folder *model.Folder
	log    *slog.Logger
	// limit is how many bytes all files may have; 0 is no limit.
	limit int64
	bytes int64
	buf   []byte

	// made is what the archive at hand has made.
	made map[string]bool
}

// unpack a tar archive. With changes, names of some files say what to remove of the archives before.
func (u *unpacker) unpack(r io.Reader, changes bool) error {
	u.made = map[string]bool{}
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(err)
		}
		name, err := inside(h.Name)
		if err != nil {
			return err
		}
		if name == "" {
			continue
		}
		if changes && strings.HasPrefix(path.Base(name), whiteout) {
			err = u.whiteout(name)
		} else {
			err = u.entry(archive, h, name)
			u.made[name] = true
		}
		if err != nil {
			return err
		}
		if err := model.Countable(len(u.made)); err != nil {
			return err
		}
	}
}

// broken distinguishes archives that cannot be read from disks that are full.
func broken(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &archiveError{err}
	}
	return err
}

// An expander reads what is compressed.
type expander struct{ io.ReadCloser }

// Read on. What the server behind it fails with is a Failure already, or the end of a context; all else is the archive's.
func (e expander) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	var server *failure.Failure
	if err == nil || errors.Is(err, io.EOF) || errors.As(err, &server) || errors.Is(err, context.Canceled) {
		return n, err
	}
	return n, &archiveError{err}
}

// inside returns the path that an entry's name means within the folder; "" is the folder itself.
func inside(name string) (string, error) {
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", failure.New(failure.Invalid, fmt.Sprintf("an archive of the model has %s, which points out of it", strconv.Quote(name)),
			"build it again, without .. in names")
	}
	clean := strings.TrimPrefix(path.Clean("/"+name), "/")
	if clean == "" {
		return "", nil
	}
	if err := model.ValidPath(clean); err != nil {
		return "", failure.New(failure.Invalid, err.Error(), "build it again, with other names")
	}
	return clean, nil
}

// entry makes what an entry says.
func (u *unpacker) entry(archive io.Reader, h *tar.Header, name string) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return u.dir(name)
	case tar.TypeReg:
		return u.file(archive, h, name)
	case tar.TypeLink:
		target, err := inside(h.Linkname)
		if err != nil {
			return err
		}
		if target == name {
			return nil
		}
		if err := u.clear(name); err != nil {
			return err
		}
		return u.folder.Hardlink(target, name)
	case tar.TypeSymlink:
		if err := u.clear(name); err != nil {
			return err
		}
		return u.folder.Symlink(h.Linkname, name)
	case tar.TypeXGlobalHeader:
		return nil
	}
	u.log.Warn("left out what is neither file nor folder nor link", "name", name)
	return nil
}

func (u *unpacker) dir(name string) error {
	if kind, ok := u.folder.Kind(name); ok && !kind.IsDir() {
		if err := u.folder.Remove(name); err != nil {
			return err
		}
	}
	return u.folder.Mkdir(name)
}

func (u *unpacker) file(archive io.Reader, h *tar.Header, name string) error {
	u.bytes += h.Size
	if u.limit > 0 && u.bytes > u.limit {
		return failure.New(failure.SizeMismatch, fmt.Sprintf("the model has more than the %d bytes that it should have", u.limit),
			"correct spec.model.size, or the model")
	}
	if err := u.clear(name); err != nil {
		return err
	}
	w, err := u.folder.Create(name)
	if err != nil {
		return err
	}
	if err := w.Copy(archive, u.buf); err != nil {
		return broken(err)
	}
	return nil
}

// clear the place of what an entry makes.
func (u *unpacker) clear(name string) error {
	if _, ok := u.folder.Kind(name); !ok {
		return nil
	}
	return u.folder.Remove(name)
}

// whiteout removes what archives before have made.
func (u *unpacker) whiteout(name string) error {
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	if base != opaque {
		gone := path.Join(dir, strings.TrimPrefix(base, whiteout))
		if u.made[gone] {
			return nil
		}
		return u.remove(gone)
	}
	names, err := u.folder.Names(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if gone := path.Join(dir, n); !u.madeBelow(gone) {
			if err := u.remove(gone); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove something, unless its name is one that nothing can have.
func (u *unpacker) remove(name string) error {
	if valid := model.ValidPath(name) == nil; !valid {
		return nil
	}
	return u.clear(name)
}

// madeBelow reports whether the archive at hand has made something or what is in it.
func (u *unpacker) madeBelow(name string) bool {
	if u.made[name] {
		return true
	}
	for made := range u.made {
		if strings.HasPrefix(made, name+"/") {
			return true
		}
	}
	return false
}
