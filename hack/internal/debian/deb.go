// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// A package is an ar archive: a file with the version of the format, a tar with what describes the package, a tar with its
// files.
const (
	arMagic  = "!<arch>\n"
	arHeader = 60
	arEnd    = "`\n"
)

// Walk calls visit for every file of a package, in the order in which they lie in it. The header's name has no leading "./"
// and no slash at its end.
func Walk(file string, visit func(hdr *tar.Header, content io.Reader) error) error {
	return member(file, "data.tar", func(content io.Reader) error { return walk(content, visit) })
}

// Control returns the paragraph that describes a package, as in dpkg's database of what is installed.
func Control(file string) ([]byte, error) {
	var control []byte
	err := member(file, "control.tar", func(content io.Reader) error {
		return walk(content, func(hdr *tar.Header, content io.Reader) error {
			if hdr.Name != "control" {
				return nil
			}
			var err error
			control, err = io.ReadAll(content)
			return err
		})
	})
	if err == nil && len(control) == 0 {
		err = fmt.Errorf("cannot find what describes the package in %s", file)
	}
	return bytes.TrimSpace(control), err
}

func walk(content io.Reader, visit func(*tar.Header, io.Reader) error) error {
	for r := tar.NewReader(content); ; {
		hdr, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		hdr.Name = strings.TrimPrefix(path.Clean("/"+hdr.Name), "/")
		if hdr.Name == "" {
			continue // the root itself
		}
		if err := visit(hdr, r); err != nil {
			return err
		}
	}
}

// member decompresses the member of a package that has this name before its extension.
func member(file, name string, read func(io.Reader) error) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("cannot open a package: %w", err)
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(f, 1<<20)
	if err := find(r, name, read); err != nil {
		return fmt.Errorf("cannot read %s of package %s: %w", name, file, err)
	}
	return nil
}

func find(r *bufio.Reader, name string, read func(io.Reader) error) error {
	magic := make([]byte, len(arMagic))
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != arMagic {
		return errors.New("it is no package of Debian")
	}
	for {
		header := make([]byte, arHeader)
		if _, err := io.ReadFull(r, header); err != nil {
			return fmt.Errorf("it is not in there: %w", err)
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(header[48:58])), 10, 64)
		if err != nil || size < 0 || string(header[58:]) != arEnd {
			return errors.New("the package is damaged")
		}
		content := io.LimitReader(r, size)
		found := strings.TrimSuffix(strings.TrimSpace(string(header[:16])), "/")
		if extension, ok := strings.CutPrefix(found, name); ok {
			plain, err := decompress(content, extension)
			if err != nil {
				return err
			}
			return read(plain)
		}
		// Members begin at even places.
		if _, err := io.CopyN(io.Discard, r, size+size%2); err != nil {
			return err
		}
	}
}

func decompress(r io.Reader, extension string) (io.Reader, error) {
	switch extension {
	case "":
		return r, nil
	case ".gz":
		return gzip.NewReader(r)
	case ".xz":
		return xz.NewReader(r)
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("cannot decompress %q", extension)
}
