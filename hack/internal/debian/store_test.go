// SPDX-License-Identifier: Apache-2.0

package debian_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/hack/internal/debian"
	"github.com/capstan-dev/capstan/hack/internal/debian/debiantest"
)

func TestFetch(t *testing.T) {
	const content = "a package"
	p := debiantest.Package("tool", []byte(content))
	lock := debian.Lock{
		Snapshots: map[string]time.Time{"sid": time.Date(2026, 10, 30, 20, 8, 1, 0, time.UTC)}, Packages: []debian.Package{p},
	}
	const (
		onMirror   = "/mirror/debian/pool/main/tool.deb"
		onSnapshot = "/snapshot/debian/20261030T200801Z/pool/main/tool.deb"
	)
	cases := map[string]struct {
		reason string
		have   map[string]string
		cached bool
		want   []string
		gone   bool
		fails  bool
	}{
		"Cached":   {reason: "What is there is not asked for.", cached: true},
		"Mirror":   {reason: "The mirror is near.", have: map[string]string{onMirror: content, onSnapshot: content}, want: []string{onMirror}},
		"Snapshot": {reason: "The snapshot service has what mirrors have dropped.", have: map[string]string{onSnapshot: content}, want: []string{onMirror, onSnapshot}},
		"Changed": {
			reason: "Other bytes of the same name are not taken.", have: map[string]string{onMirror: "other", onSnapshot: content},
			want: []string{onMirror, onSnapshot},
		},
		"Gone":    {reason: "Who may take another version has to know that this one is gone.", want: []string{onMirror, onSnapshot}, gone: true, fails: true},
		"Damaged": {reason: "Other bytes are no reason to take another version.", have: map[string]string{onMirror: "other"}, want: []string{onMirror, onSnapshot}, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var asked []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.Path)
				body, ok := tc.have[r.URL.Path]
				if !ok {
					http.NotFound(w, r)
					return
				}
				_, _ = w.Write([]byte(body))
			}))
			defer srv.Close()
			store := &debian.Store{
				Dir: t.TempDir(), Mirrors: debian.Mirrors{"debian": srv.URL + "/mirror/debian"}, Snapshot: srv.URL + "/snapshot",
			}
			if tc.cached {
				debiantest.Put(t, store, "tool", []byte(content))
			}
			var done atomic.Int64
			err := store.Fetch(t.Context(), lock, lock.Packages, &done)
			if (err != nil) != tc.fails || errors.Is(err, debian.ErrGone) != tc.gone {
				t.Errorf("%s\nwant failure %t, gone %t, got %v", tc.reason, tc.fails, tc.gone, err)
			}
			if diff := cmp.Diff(tc.want, asked); diff != "" {
				t.Errorf("%s\nasked for: -want, +got:\n%s", tc.reason, diff)
			}
			got, err := os.ReadFile(store.Path(p))
			if !tc.fails && (err != nil || string(got) != content) {
				t.Errorf("%s\ngot %q, %v", tc.reason, got, err)
			}
			if tc.fails && err == nil {
				t.Errorf("%s\nkept %q", tc.reason, got)
			}
			if left, err := os.ReadDir(store.Dir); err != nil || len(left) > 1 {
				t.Errorf("%s\nleft behind: %v, %v", tc.reason, left, err)
			}
		})
	}
}

func TestFetchUnreachable(t *testing.T) {
	mirror := httptest.NewServer(http.NotFoundHandler())
	defer mirror.Close()
	nowhere := httptest.NewServer(http.NotFoundHandler())
	nowhere.Close()
	p := debiantest.Package("tool", nil)
	lock := debian.Lock{Snapshots: map[string]time.Time{"sid": time.Now()}}
	for name, tc := range map[string]struct {
		reason           string
		mirror, snapshot string
		gone             bool
	}{
		"NoSnapshotService": {"A network without the snapshot service has only its mirror to go by.", mirror.URL, nowhere.URL, true},
		"NoSnapshotNamed":   {"Who names no archive has only the mirror to go by, too.", mirror.URL, "", true},
		"NoMirror":          {"Without a network nobody knows what is gone.", nowhere.URL, nowhere.URL, false},
	} {
		t.Run(name, func(t *testing.T) {
			store := &debian.Store{Dir: t.TempDir(), Mirrors: debian.Mirrors{"debian": tc.mirror}, Snapshot: tc.snapshot}
			var done atomic.Int64
			err := store.Fetch(t.Context(), lock, []debian.Package{p}, &done)
			if err == nil || errors.Is(err, debian.ErrGone) != tc.gone {
				t.Errorf("%s want gone %t, got %v", tc.reason, tc.gone, err)
			}
		})
	}
}

func TestHostMirrors(t *testing.T) {
	t.Setenv(debian.MirrorVariable, "https://mirror.example.org/")
	want := debian.Mirrors{"debian": "https://mirror.example.org/debian", "debian-security": "https://mirror.example.org/debian-security"}
	if diff := cmp.Diff(want, debian.HostMirrors(t.Context())); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	t.Setenv(debian.MirrorVariable, "")
	for archive, mirror := range debian.HostMirrors(t.Context()) {
		if !strings.HasSuffix(mirror, "/"+archive) {
			t.Errorf("the mirror of %s is %q", archive, mirror)
		}
	}
}
