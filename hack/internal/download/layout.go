// SPDX-License-Identifier: Apache-2.0

package download

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
)

// LayOut writes the programs in a folder as files of a release below root, where a mirror has them, and returns their pins. The
// release is then one of our own making, for machines that must not reach the publisher.
func (d *Downloader) LayOut(r Request, programs, root string) (Pins, error) {
	files, err := d.releases.files(r.Tool, r.Version, r.Arch)
	if err != nil {
		return nil, fmt.Errorf("cannot lay out %s: %w", r.Tool, err)
	}
	pins := make(Pins, 0, len(files))
	for _, f := range files {
		sum, err := layOut(f, programs, root)
		if err != nil {
			return nil, fmt.Errorf("cannot lay out %s: %w", r.Tool, err)
		}
		pins = append(pins, Pin{
			Tool: r.Tool, Version: r.Version, Arch: r.Arch, URL: f.URL, SHA256: sum, Source: "made of programs that were built from source",
		})
	}
	return pins, nil
}

func layOut(f File, programs, root string) (sum string, err error) {
	address, err := url.Parse(f.URL)
	if err != nil {
		return "", err
	}
	target := filepath.Join(root, address.Host, filepath.FromSlash(address.Path))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", err
	}
	out, err := os.Create(target)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	hash := sha256.New()
	w := io.MultiWriter(out, hash)
	if f.IsArchive() {
		err = pack(w, f, programs)
	} else {
		for program := range f.Members {
			err = copyFile(w, filepath.Join(programs, program))
		}
	}
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func pack(w io.Writer, f File, programs string) error {
	// Speed: what is served to the same machine or network once need not be small.
	zipped, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zipped)
	for _, program := range slices.Sorted(maps.Keys(f.Members)) {
		source := filepath.Join(programs, program)
		info, err := os.Stat(source)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{Name: f.Members[program], Mode: 0o755, Size: info.Size()}); err != nil {
			return err
		}
		if err := copyFile(archive, source); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

func copyFile(w io.Writer, source string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	_, err = io.Copy(w, in)
	return err
}
