// SPDX-License-Identifier: Apache-2.0

package download

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFetch(t *testing.T) {
	archive := good(t)
	short := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4096")
		_, _ = w.Write(archive[:20])
	}
	traversal := tarball(t, tar.Header{Name: "archived-1.2.3/bin/upstream"}, tar.Header{Name: "../../escaped"})
	absolute := tarball(t, tar.Header{Name: "/archived-1.2.3/bin/upstream"})
	lacking := tarball(t, tar.Header{Name: "archived-1.2.3/bin/other"})
	link := tarball(t, tar.Header{Name: "archived-1.2.3/bin/upstream", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})
	hardLink := tarball(t, tar.Header{Name: "archived-1.2.3/bin/upstream", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"})
	bomb := tarball(t, tar.Header{Name: "zeros", Size: 1 << 20}, tar.Header{Name: "archived-1.2.3/bin/upstream"})
	large := tarball(t, tar.Header{Name: "archived-1.2.3/bin/upstream", Size: 1 << 20})
	page := []byte("<html>please log in</html>")
	for name, tc := range map[string]struct {
		reason string
		serve  http.HandlerFunc
		probe  http.HandlerFunc
		pins   Pins
		want   error
		// says is what the message must name.
		says string
		// hangs is for servers that would otherwise be waited for.
		hangs bool
		// limit in bytes.
		limit int64
	}{
		"RightFile": {
			reason: "A file with the pinned checksum becomes a folder with its program.",
			serve:  content(archive), pins: pin(archivedURL, archive),
		},
		"WrongChecksum": {
			reason: "A file that somebody has changed is refused, and people can compare both sums.",
			serve:  content(archive), pins: pin(archivedURL, page), want: &ChecksumError{},
			says: archivedPath + " has the wrong checksum: expected SHA-256 " + sumOf(page) + ", got " + sumOf(archive),
		},
		"LoginPage": {
			reason: "The page of a captive portal is detected before anything is unpacked.",
			serve:  content(page), pins: pin(archivedURL, archive), want: &ChecksumError{}, says: sumOf(page),
		},
		"HalfAFile": {
			reason: "A mirror that kept half a file serves it as a whole one.",
			serve:  content(archive[:len(archive)/2]), pins: pin(archivedURL, archive), want: &ChecksumError{}, says: sumOf(archive[:len(archive)/2]),
		},
		"Truncated": {
			reason: "A connection that ends early is no file.",
			serve:  short, pins: pin(archivedURL, archive), want: ErrBroken, says: "20 of 4096 bytes",
		},
		"HangsBeforeFirstByte": {
			reason: "A site that accepts the request and never answers must not delay the build.",
			hangs:  true, serve: hang(nil), pins: pin(archivedURL, archive), want: ErrUnreachable, says: "no answer within",
		},
		"HangsInTheMiddle": {
			reason: "A site that stops in the middle of a file must not delay it either.",
			hangs:  true, serve: hang(archive[:20]), pins: pin(archivedURL, archive), want: ErrBroken, says: "after 20 bytes",
		},
		"SiteHangs": {
			reason: "A firewall that drops packets is noticed by the probe.",
			hangs:  true, serve: content(archive), probe: hang(nil), pins: pin(archivedURL, archive), want: ErrUnreachable,
		},
		"SiteInTrouble": {
			reason: "A gateway that cannot reach the site answers in its place.",
			serve:  content(archive), pins: pin(archivedURL, archive), want: ErrUnreachable, says: "502 Bad Gateway",
			probe: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		},
		"NotFound": {
			reason: "A mirror that lacks a file is no reason to stop.",
			serve:  http.NotFound, pins: pin(archivedURL, archive), want: ErrNotServed, says: "404 Not Found",
		},
		"NotPinned": {
			reason: "A file is not trusted just because a site has it.",
			serve:  content(archive), want: ErrNotPinned, says: archivedURL,
		},
		"PathTraversal": {
			reason: "An archive that reaches out of its folder is refused as a whole.",
			serve:  content(traversal), pins: pin(archivedURL, traversal), want: ErrContent, says: "../../escaped",
		},
		"AbsolutePath": {
			reason: "An absolute name leads out of the folder, too.",
			serve:  content(absolute), pins: pin(archivedURL, absolute), want: ErrContent, says: "outside",
		},
		"LacksMember": {
			reason: "A release that is packed in another way is not half a tool.",
			serve:  content(lacking), pins: pin(archivedURL, lacking), want: ErrContent, says: "lacks archived-1.2.3/bin/upstream",
		},
		"SymbolicLink": {
			reason: "A link in place of a program would run, or be packed as, a file of this machine.",
			serve:  content(link), pins: pin(archivedURL, link), want: ErrContent, says: "link",
		},
		"HardLink": {
			reason: "So would a hard link.",
			serve:  content(hardLink), pins: pin(archivedURL, hardLink), want: ErrContent, says: "link",
		},
		"TooLarge": {
			reason: "A file that is much too large is not kept until the disk is full.",
			limit:  100, serve: content(archive), pins: pin(archivedURL, archive), want: ErrContent, says: "has more than",
		},
		"Endless": {
			reason: "Nor is a stream that has no end read to its end.",
			limit:  100, pins: pin(archivedURL, archive), want: ErrContent, says: "has more than",
			serve: func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					_, _ = w.Write(archive)
				}
			},
		},
		"LargeProgram": {
			reason: "Nor is a program that unpacks to one.",
			limit:  int64(len(large)) + 100, serve: content(large), pins: pin(archivedURL, large), want: ErrContent, says: `upstream" has more than`,
		},
		"Bomb": {
			reason: "Nor is an archive that unpacks to far more than its size.",
			limit:  int64(len(bomb)) + 100, serve: content(bomb), pins: pin(archivedURL, bomb), want: ErrContent, says: "unexpected EOF",
		},
		"MarkedAsCompressed": {
			reason: "A server that calls an archive compressed content does not change its checksum.",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(archive)
			},
			pins: pin(archivedURL, archive),
		},
		"Trickles": {
			reason: "Single bytes are no progress.",
			hangs:  true, pins: pin(archivedURL, archive), want: ErrBroken, says: "less than 128 KiB in 2s",
			serve: func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					_, _ = w.Write([]byte("x"))
					w.(http.Flusher).Flush()
					time.Sleep(20 * time.Millisecond)
				}
			},
		},
		"NoArchive": {
			reason: "A pinned file that is no archive is an error of the catalogue, and not a crash.",
			serve:  content(page), pins: pin(archivedURL, page), want: ErrContent,
		},
		"CutArchive": {
			reason: "The same holds for an archive that was cut before it was pinned.",
			serve:  content(archive[:len(archive)-30]), pins: pin(archivedURL, archive[:len(archive)-30]), want: ErrContent,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]http.HandlerFunc{archivedPath: tc.serve}
			if tc.probe != nil {
				files["/"] = tc.probe
			}
			server := serve(t, files)
			d := newDownloader(t, server, ModeAuto, tc.pins)
			if tc.limit > 0 {
				d.limit = tc.limit
			}
			if tc.hangs {
				d.stallTimeout = 2 * time.Second
			}
			if tc.hangs && tc.probe != nil {
				d.probeTimeout = 500 * time.Millisecond
			}
			cache := filepath.Join(t.TempDir(), "bin")
			began := time.Now()
			err := d.Fetch(t.Context(), archived, filepath.Join(cache, "archived-1"))
			if took := time.Since(began); tc.hangs && took > 20*time.Second {
				t.Errorf("%s\nit took %s", tc.reason, took)
			}
			want := map[string]string{}
			switch sum := (*ChecksumError)(nil); {
			case tc.want == nil:
				if err != nil {
					t.Errorf("%s\ngot %v", tc.reason, err)
				}
				want["bin/archived-1/program"] = "content of archived-1.2.3/bin/upstream"
				want["bin/archived-1/.origin"] = archivedURL + " sha256:" + sumOf(archive) + "\n"
			case errors.As(tc.want, &sum):
				if !errors.As(err, &sum) {
					t.Errorf("%s\nwant a ChecksumError, got %v", tc.reason, err)
				}
			case !errors.Is(err, tc.want):
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, err)
			}
			if err != nil && (!strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s\nwant one line with %q, got %q", tc.reason, tc.says, err)
			}
			if diff := cmp.Diff(want, tree(t, filepath.Dir(cache))); diff != "" {
				t.Errorf("%s\nleft behind: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFetchSeveralFiles(t *testing.T) {
	one, two := []byte("first program"), []byte("second program")
	pins := append(pin("https://example.org/v1/one.arm64", one), pin("https://example.org/v1/two.arm64", two)...)
	server := serve(t, map[string]http.HandlerFunc{"/example.org/v1/one.arm64": content(one), "/example.org/v1/two.arm64": content(two)})
	request := Request{Tool: "plain", Version: "v1", Arch: "arm64", Received: &atomic.Int64{}}
	dir := filepath.Join(t.TempDir(), "plain")
	if err := newDownloader(t, server, ModeAuto, pins).Fetch(t.Context(), request, dir); err != nil {
		t.Fatal(err)
	}
	got := tree(t, dir)
	delete(got, originFile)
	if diff := cmp.Diff(map[string]string{"one": "first program", "two": "second program"}, got); diff != "" {
		t.Errorf("files that are programs keep their bytes and get their names: -want, +got:\n%s", diff)
	}
	if !Downloaded(dir) || Downloaded(t.TempDir()) {
		t.Error("it does not know what it made")
	}
	if received := request.Received.Load(); received != int64(len(one)+len(two)) {
		t.Errorf("%d bytes were counted", received)
	}

	half := filepath.Join(t.TempDir(), "plain")
	if err := newDownloader(t, server, ModeAuto, pins[:1]).Fetch(t.Context(), request, half); !errors.Is(err, ErrNotPinned) {
		t.Errorf("one pin of two is enough: %v", err)
	}
	if left := tree(t, filepath.Dir(half)); len(left) > 0 {
		t.Errorf("half a tool is left behind: %v", left)
	}
}

func TestFetchTwiceAtOnce(t *testing.T) {
	archive := good(t)
	var waiting sync.WaitGroup
	waiting.Add(2)
	server := serve(t, map[string]http.HandlerFunc{archivedPath: func(w http.ResponseWriter, _ *http.Request) {
		waiting.Done()
		waiting.Wait() // so that both are on their way
		_, _ = w.Write(archive)
	}})
	dir := filepath.Join(t.TempDir(), "archived")
	results := make(chan error)
	for range 2 {
		// Processes share nothing but the folder.
		d := newDownloader(t, server, ModeAuto, pin(archivedURL, archive))
		go func() { results <- d.Fetch(t.Context(), archived, dir) }()
	}
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	entries, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "*"))
	hidden, hiddenErr := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*"))
	if diff := cmp.Diff([]string{dir}, append(entries, hidden...)); diff != "" || err != nil || hiddenErr != nil {
		t.Errorf("there is not just the one folder: -want, +got:\n%s", diff)
	}
	if got := tree(t, dir)["program"]; got != "content of archived-1.2.3/bin/upstream" {
		t.Errorf("the program is %q", got)
	}
}

func TestFetchCancelled(t *testing.T) {
	archive := good(t)
	asked := make(chan struct{})
	var once sync.Once
	server := serve(t, map[string]http.HandlerFunc{archivedPath: func(w http.ResponseWriter, r *http.Request) {
		first := false
		once.Do(func() { first = true })
		if !first {
			_, _ = w.Write(archive)
			return
		}
		close(asked)
		<-r.Context().Done()
	}})
	d := newDownloader(t, server, ModeAuto, pin(archivedURL, archive))
	d.stallTimeout = time.Minute
	cache := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	done, err := d.Ensure(ctx, archived, filepath.Join(cache, "archived"))
	if done || !errors.Is(err, context.Canceled) {
		t.Errorf("who interrupts does not want a build: %t, %v", done, err)
	}
	if left := tree(t, cache); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := d.Fetch(t.Context(), archived, filepath.Join(cache, "archived")); err != nil {
		t.Errorf("an interruption says nothing about the site: %v", err)
	}
}

// TestSlowButSteady is a line that needs longer than the time in which something must arrive.
func TestSlowButSteady(t *testing.T) {
	chunk := make([]byte, stallBytes)
	server := serve(t, map[string]http.HandlerFunc{"/example.org/v1/sums": func(w http.ResponseWriter, _ *http.Request) {
		for range 6 {
			_, _ = w.Write(chunk)
			w.(http.Flusher).Flush()
			time.Sleep(500 * time.Millisecond)
		}
	}})
	d := newDownloader(t, server, ModeAuto, nil)
	d.stallTimeout = 2 * time.Second
	address, err := d.locate("https://example.org/v1/sums")
	if err != nil {
		t.Fatal(err)
	}
	var received atomic.Int64
	if err := d.get(t.Context(), address, io.Discard, maxFile, &received); err != nil || received.Load() != 6*stallBytes {
		t.Errorf("%d bytes arrived: %v", received.Load(), err)
	}
}

func TestRedirects(t *testing.T) {
	archive := good(t)
	plain := serve(t, map[string]http.HandlerFunc{"/": content(archive)})
	var target string
	secure := httptest.NewTLSServer(handler(map[string]http.HandlerFunc{
		archivedPath: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, http.StatusFound) },
		"/storage":   content(archive),
	}))
	defer secure.Close()
	for name, tc := range map[string]struct {
		reason, target string
		want           error
	}{
		"Storage":   {"Publishers redirect to the storage that has their files.", secure.URL + "/storage", nil},
		"Downgrade": {"A redirect that leaves TLS is refused, whatever the checksum.", plain.URL, ErrNotServed},
		"Endless":   {"A circle ends.", secure.URL + archivedPath, ErrNotServed},
	} {
		t.Run(name, func(t *testing.T) {
			target = tc.target
			d := newDownloader(t, secure, ModeAuto, pin(archivedURL, archive))
			if err := d.Fetch(t.Context(), archived, filepath.Join(t.TempDir(), "archived")); !errors.Is(err, tc.want) {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
