// SPDX-License-Identifier: Apache-2.0

package download

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What the tests download: an archive with one program, and a program that is a file of its own.
const (
	testReleases = `
archived:
  files:
    - url: https://example.org/{version}/archived-{number}-{arch}.tar.gz
      sums: "{url}.sha256"
      members:
        program: archived-{number}/bin/upstream
plain:
  files:
    - url: https://example.org/{version}/one.{arch}
      sums: https://example.org/{version}/sums.txt
      program: one
    - url: https://example.org/{version}/two.{arch}
      sums: https://example.org/{version}/sums.txt
      program: two
compiled:
  built: nobody publishes it
`
	archivedPath = "/example.org/v1.2.3/archived-1.2.3-amd64.tar.gz"
	archivedURL  = "https:/" + archivedPath
)

var archived = Request{Tool: "archived", Version: "v1.2.3", Arch: "amd64"}

func newDownloader(t *testing.T, server *httptest.Server, mode Mode, pins Pins) *Downloader {
	t.Helper()
	parsed, err := parseReleases([]byte(testReleases))
	if err != nil {
		t.Fatal(err)
	}
	mirror, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := newClient()
	if server.TLS != nil {
		client.Transport = server.Client().Transport
	}
	return &Downloader{
		mode: mode, releases: parsed, pins: pins, mirror: mirror, client: client,
		probeTimeout: 30 * time.Second, stallTimeout: 30 * time.Second, limit: maxFile,
	}
}

// serve answers probes, and requests for files by their path.
func serve(t *testing.T, files map[string]http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler(files))
	t.Cleanup(server.Close)
	return server
}

func handler(files map[string]http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if serveFile, ok := files[r.URL.Path]; ok {
			serveFile(w, r)
			return
		}
		http.NotFound(w, r)
	})
}

func content(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }
}

// hang sends some bytes and then nothing until the client leaves.
func hang(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if len(data) > 0 {
			_, _ = w.Write(data)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

func pin(address string, data []byte) Pins {
	return Pins{{Tool: "archived", Version: "v1.2.3", Arch: "amd64", URL: address, SHA256: sumOf(data), Source: "test"}}
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// tarball has members in the order given: regular files, unless the header says otherwise, of zeros if it has a size.
func tarball(t *testing.T, members ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, hdr := range members {
		body := []byte("content of " + hdr.Name)
		if hdr.Size > 0 {
			body = make([]byte, hdr.Size)
		}
		if hdr.Typeflag == 0 {
			hdr.Size = int64(len(body))
		}
		if err := archive.WriteHeader(&hdr); err != nil {
			t.Fatal(err)
		}
		if hdr.Typeflag == 0 {
			if _, err := archive.Write(body); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func good(t *testing.T) []byte {
	t.Helper()
	return tarball(t, tar.Header{Name: "./archived-1.2.3/README", Mode: 0o644}, tar.Header{Name: "archived-1.2.3/bin/upstream", Mode: 0o644})
}

// tree returns the files below a folder with their contents, and fails for programs that nobody can run.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if info, infoErr := entry.Info(); infoErr == nil && filepath.Base(path) != originFile && info.Mode().Perm() != 0o755 {
			t.Errorf("%s has mode %s", name, info.Mode())
		}
		found[name] = string(data)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return found
}
