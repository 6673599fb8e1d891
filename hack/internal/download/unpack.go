// SPDX-License-Identifier: Apache-2.0

package download

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// unpack puts the programs of a verified file into a folder. Names in the folder come from the catalogue, never from an archive.
func unpack(f File, source, programs string, limit int64) error {
	if f.IsArchive() {
		return unpackArchive(f, source, programs, limit)
	}
	for program := range f.Members {
		if err := os.Chmod(source, 0o755); err != nil { //nolint:gosec // programs are for everybody to run
			return fmt.Errorf("cannot make %s executable: %w", program, err)
		}
		if err := os.Rename(source, filepath.Join(programs, program)); err != nil {
			return fmt.Errorf("cannot keep %s: %w", program, err)
		}
	}
	return nil
}

func unpackArchive(f File, source, programs string, limit int64) error {
	file, err := os.Open(source)
	if err != nil {
		return fmt.Errorf("cannot unpack %s: %w", f.URL, err)
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrContent, f.URL, err)
	}
	wanted := map[string]string{}
	for program, member := range f.Members {
		wanted[member] = program
	}
	// A small archive must not keep a processor busy for hours, nor fill the disk.
	archive := tar.NewReader(io.LimitReader(unzipped, 2*limit))
	for {
		hdr, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrContent, f.URL, err)
		}
		if !filepath.IsLocal(hdr.Name) {
			return fmt.Errorf("%w: %s has a member outside of it: %q", ErrContent, f.URL, hdr.Name)
		}
		program, ok := wanted[path.Clean(hdr.Name)]
		if !ok {
			continue
		}
		if err := extract(archive, hdr, filepath.Join(programs, program), limit); err != nil {
			return fmt.Errorf("cannot unpack %s: %w", f.URL, err)
		}
		delete(wanted, path.Clean(hdr.Name))
	}
	if len(wanted) > 0 {
		missing := slices.Sorted(maps.Keys(wanted))
		return fmt.Errorf("%w: %s lacks %s", ErrContent, f.URL, strings.Join(missing, ", "))
	}
	return nil
}

func extract(archive *tar.Reader, hdr *tar.Header, target string, limit int64) error {
	if hdr.Typeflag != tar.TypeReg {
		return fmt.Errorf("%w: %q is a link or no file", ErrContent, hdr.Name)
	}
	if hdr.Size > limit {
		return fmt.Errorf("%w: %q has more than %d MiB", ErrContent, hdr.Name, limit>>20)
	}
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755) //nolint:gosec // programs are for everybody to run
	if err != nil {
		return err
	}
	content := &watched{Reader: archive, extend: func() {}}
	_, err = io.CopyN(out, content, hdr.Size)
	if content.err != nil {
		err = fmt.Errorf("%w: %q: %w", ErrContent, hdr.Name, content.err)
	}
	return errors.Join(err, out.Close())
}
