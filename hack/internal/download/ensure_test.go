// SPDX-License-Identifier: Apache-2.0

package download

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEnsure(t *testing.T) {
	archive := good(t)
	right := map[string]http.HandlerFunc{archivedPath: content(archive)}
	changed := map[string]http.HandlerFunc{archivedPath: content([]byte("changed"))}
	trouble := map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }}
	pins := pin(archivedURL, archive)
	for name, tc := range map[string]struct {
		reason string
		mode   Mode
		tool   string
		files  map[string]http.HandlerFunc
		pins   Pins
		done   bool
		// fails and says are parts of the error and of the lines for people; no line is wanted when says is empty.
		fails, says string
	}{
		"AutoDownloads":       {"A pinned file is there.", ModeAuto, "archived", right, pins, true, "", ""},
		"AutoBuilds":          {"A tool without release files is built without a line.", ModeAuto, "compiled", right, pins, false, "", ""},
		"AutoUnreachable":     {"Without the site there is a build, and a line explains the wait.", ModeAuto, "archived", trouble, pins, false, "", "programs are built from source; CAPSTAN_DOWNLOADS names a mirror"},
		"AutoNotPinned":       {"A tool without pins is built: nothing proves that the site is right.", ModeAuto, "archived", right, nil, false, "", "go -C hack run ./releases pin"},
		"AutoChanged":         {"A changed file is a loud warning.", ModeAuto, "archived", changed, pins, false, "", "WARNING: cannot download archived v1.2.3: "},
		"DownloadDownloads":   {"A pinned file is there.", ModeDownload, "archived", right, pins, true, "", ""},
		"DownloadBuilds":      {"A tool without release files is built in every mode.", ModeDownload, "compiled", right, pins, false, "", ""},
		"DownloadUnreachable": {"A user who asked for downloads does not want an hour of compiling.", ModeDownload, "archived", trouble, pins, false, "name a mirror in CAPSTAN_DOWNLOADS, or set CAPSTAN_PROGRAMS=auto", ""},
		"DownloadChanged":     {"A changed file ends the command.", ModeDownload, "archived", changed, pins, false, "do not use this file", ""},
		"DownloadNotFound":    {"So does a file that the mirror lacks.", ModeDownload, "archived", map[string]http.HandlerFunc{}, pins, false, "check the mirror or the publisher's site, or set CAPSTAN_PROGRAMS=auto", ""},
		"DownloadNotPinned":   {"Without TLS the publisher's list proves nothing.", ModeDownload, "archived", right, nil, false, "run `go -C hack run ./releases pin` on a machine with internet, or set CAPSTAN_PROGRAMS=auto", ""},
		"BuildBuilds":         {"Nothing is downloaded although it could be.", ModeBuild, "archived", right, pins, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDownloader(t, serve(t, tc.files), tc.mode, tc.pins)
			cache := t.TempDir()
			for attempt := range 2 {
				var said []string
				request := Request{Tool: tc.tool, Version: "v1.2.3", Arch: "amd64", Say: func(format string, args ...any) {
					said = append(said, fmt.Sprintf(format, args...))
				}}
				done, err := d.Ensure(t.Context(), request, filepath.Join(cache, tc.tool))
				if done != tc.done || (err != nil) != (tc.fails != "") || (err != nil && !strings.Contains(err.Error(), tc.fails)) {
					t.Errorf("%s\nwant %t and %q, got %t and %v", tc.reason, tc.done, tc.fails, done, err)
				}
				lines := strings.Join(said, "\n")
				// Otherwise every tool would repeat that there is no network.
				once := attempt > 0 && strings.HasSuffix(name, "Unreachable")
				if (tc.says != "" && !once) != (len(said) == 1) || !once && !strings.Contains(lines, tc.says) {
					t.Errorf("%s\nattempt %d: want one line with %q, got %q", tc.reason, attempt, tc.says, lines)
				}
				if _, err := os.Stat(filepath.Join(cache, tc.tool)); (err == nil) != tc.done {
					t.Errorf("%s\nthe folder: %v", tc.reason, err)
				}
			}
		})
	}
}

func TestEnsureFullDisk(t *testing.T) {
	archive := good(t)
	server := serve(t, map[string]http.HandlerFunc{archivedPath: content(archive)})
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []Mode{ModeAuto, ModeDownload} {
		d := newDownloader(t, server, mode, pin(archivedURL, archive))
		done, err := d.Ensure(t.Context(), archived, filepath.Join(blocked, "archived"))
		if done || err == nil || strings.Contains(err.Error(), ModeVariable) {
			t.Errorf("%s: a build does not solve a problem of this machine: %t, %v", mode, done, err)
		}
	}
	d := newDownloader(t, server, ModeAuto, nil)
	address, err := d.locate(archivedURL)
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	if err := d.get(t.Context(), address, fullDisk{full}, maxFile, nil); !errors.Is(err, full) || isRemote(err) {
		t.Errorf("a full disk looks like a problem of the site: %v", err)
	}
}

// fullDisk takes nothing.
type fullDisk struct{ err error }

func (d fullDisk) Write([]byte) (int, error) { return 0, d.err }

func TestUnreachableSiteIsNamedOnce(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	d := newDownloader(t, server, ModeAuto, nil)
	address, err := d.locate(archivedURL)
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	if err := d.get(t.Context(), address, io.Discard, maxFile, nil); !errors.Is(err, ErrUnreachable) || strings.Count(err.Error(), archivedPath) != 1 {
		t.Errorf("want one line with one address, got %v", err)
	}
}

func TestDownloadModeAsksThePublisher(t *testing.T) {
	archive := good(t)
	for name, tc := range map[string]struct {
		reason, list string
		done         bool
	}{
		"Agrees":    {"In this mode the publisher's list is enough, and a line names it.", sumOf(archive), true},
		"Disagrees": {"A file that is not the one of the list is refused.", sumOf([]byte("other")), false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(handler(map[string]http.HandlerFunc{
				archivedPath: content(archive), archivedPath + ".sha256": content([]byte(tc.list)),
			}))
			defer server.Close()
			var said []string
			request := archived
			request.Say = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
			done, err := newDownloader(t, server, ModeDownload, nil).Ensure(t.Context(), request, filepath.Join(t.TempDir(), "archived"))
			if done != tc.done || (err == nil) != tc.done {
				t.Errorf("%s\ngot %t, %v", tc.reason, done, err)
			}
			if len(said) != 1 || !strings.Contains(said[0], "the publisher's own list, "+server.URL+archivedPath+".sha256") {
				t.Errorf("%s\nsaid: %q", tc.reason, said)
			}
		})
	}
}
