// SPDX-License-Identifier: Apache-2.0

// Package debiantest makes packages of Debian for tests.
package debiantest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/capstan-dev/capstan/hack/internal/debian"
)

// A File is one entry of a package; names begin with "./", as dpkg writes them.
type File struct {
	tar.Header

	Content string
}

// Deb returns a package with these files, compressed as its extension says: .gz, .xz, .zst or nothing.
func Deb(t *testing.T, name, extension string, files ...File) []byte {
	t.Helper()
	control := "Package: " + name + "\nVersion: 1\n"
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	member(&out, "debian-binary", []byte("2.0\n"))
	member(&out, "control.tar"+extension, archive(t, extension, File{tar.Header{Name: "./control", Mode: 0o644}, control}))
	member(&out, "data.tar"+extension, archive(t, extension, files...))
	return out.Bytes()
}

// Put writes a package into a store and returns what a lock would say of it.
func Put(t *testing.T, store *debian.Store, name string, content []byte) debian.Package {
	t.Helper()
	p := Package(name, content)
	if err := os.MkdirAll(store.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(store.Dir, p.SHA256+".deb"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// Package describes a package of sid for amd64.
func Package(name string, content []byte) debian.Package {
	sum := sha256.Sum256(content)
	return debian.Package{
		Architecture: "amd64", Suite: "sid", Name: name, Version: "1", SHA256: hex.EncodeToString(sum[:]),
		Path: "pool/main/" + name + ".deb",
	}
}

func member(out *bytes.Buffer, name string, content []byte) {
	fmt.Fprintf(out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, 0, 0, 0, "100644", len(content))
	out.Write(content)
	if len(content)%2 == 1 {
		out.WriteByte('\n')
	}
}

func archive(t *testing.T, extension string, files ...File) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch extension {
	case ".gz":
		w = gzip.NewWriter(&out)
	case ".xz":
		w, err = xz.NewWriter(&out)
	case ".zst":
		w, err = zstd.NewWriter(&out)
	default:
		w = nopCloser{&out}
	}
	if err != nil {
		t.Fatal(err)
	}
	tw := tar.NewWriter(w)
	for _, f := range files {
		f.Size = int64(len(f.Content))
		if err := tw.WriteHeader(&f.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, f.Content); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
