// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

func TestProbeCancelled(t *testing.T) {
	archive := good(t)
	ctx, cancel := context.WithCancel(t.Context())
	server := serve(t, map[string]http.HandlerFunc{archivedPath: content(archive), "/": func(_ http.ResponseWriter, r *http.Request) {
		if ctx.Err() == nil {
			cancel()
			<-r.Context().Done()
		}
	}})
	d := newDownloader(t, server, ModeAuto, pin(archivedURL, archive))
	dir := filepath.Join(t.TempDir(), "archived")
	if err := d.Fetch(ctx, archived, dir); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
		t.Errorf("an interruption looks like a site that does not answer: %v", err)
	}
	if err := d.Fetch(t.Context(), archived, dir); err != nil {
		t.Errorf("an interruption says nothing about the site: %v", err)
	}
}

func TestProbeOnce(t *testing.T) {
	archive := good(t)
	var probes atomic.Int32
	for name, tc := range map[string]struct {
		reason string
		probe  http.HandlerFunc
		want   error
	}{
		"Answers":     {"A site that answers is not asked again.", http.NotFound, nil},
		"DoesNot":     {"Nor is one that does not: each tool would wait for it.", hang(nil), ErrUnreachable},
		"NotByItself": {"An answer is enough: sites redirect from their root.", http.RedirectHandler("https://nowhere.invalid/", http.StatusFound).ServeHTTP, nil},
	} {
		t.Run(name, func(t *testing.T) {
			probes.Store(0)
			server := serve(t, map[string]http.HandlerFunc{archivedPath: content(archive), "/": func(w http.ResponseWriter, r *http.Request) {
				probes.Add(1)
				tc.probe(w, r)
			}})
			d := newDownloader(t, server, ModeAuto, pin(archivedURL, archive))
			if tc.want != nil {
				d.probeTimeout = 200 * time.Millisecond
			}
			for i := range 3 {
				if err := d.Fetch(t.Context(), archived, filepath.Join(t.TempDir(), "archived")); !errors.Is(err, tc.want) {
					t.Errorf("%s\nfetch %d: want %v, got %v", tc.reason, i, tc.want, err)
				}
			}
			if n := probes.Load(); n != 1 {
				t.Errorf("%s\nit was asked %d times", tc.reason, n)
			}
		})
	}
}

// TestHungSiteIsNotAskedAgain by the next tool, though it has answered the probe.
func TestHungSiteIsNotAskedAgain(t *testing.T) {
	var asked atomic.Int32
	server := serve(t, map[string]http.HandlerFunc{archivedPath: func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		hang(nil)(w, r)
	}})
	d := newDownloader(t, server, ModeAuto, pin(archivedURL, nil))
	d.stallTimeout = 200 * time.Millisecond
	for range 2 {
		if err := d.Fetch(t.Context(), archived, filepath.Join(t.TempDir(), "archived")); !errors.Is(err, ErrUnreachable) {
			t.Errorf("got %v", err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}
