// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/hack/internal/host"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

func TestRemains(t *testing.T) {
	cases := map[string]struct {
		reason   string
		packages []string
		caches   []goCache
		want     []string
	}{
		"Nothing": {
			reason: "No package was installed, and Go is gone.",
			want:   []string{"kernel modules that were loaded stay until the next boot"},
		},
		"All": {
			reason:   "What stays has a size and a command that removes it.",
			packages: []string{"gcc", "ipset"},
			caches:   []goCache{{"build cache", "/b", 7 << 29, true}, {"module cache", "/m", 0, true}},
			want: []string{
				"Debian packages stay that were installed for the cluster; remove them with: apt-get remove --autoremove gcc ipset",
				"their names stay in /c/installed-packages",
				"Go's build cache stays: 3.5 GiB in /b",
				"Go's caches serve other projects, too; empty them with: go clean -cache -modcache",
				"kernel modules that were loaded stay until the next boot",
			},
		},
		"Large": {
			reason: "What was counted in time is told as that.",
			caches: []goCache{{"build cache", "/b", 7 << 29, false}, {"module cache", "/m", 0, false}},
			want: []string{
				"Go's build cache stays: at least 3.5 GiB in /b",
				"Go's module cache stays: at least 0.0 GiB in /m",
				"Go's caches serve other projects, too; empty them with: go clean -cache -modcache",
				"kernel modules that were loaded stay until the next boot",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, remains(tc.packages, "/c/installed-packages", tc.caches)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDownAll removes caches of its own. Only root may.
func TestDownAll(t *testing.T) {
	if err := host.CheckRoot(); err != nil {
		if os.Getenv("CAPSTAN_CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	cases := map[string]struct {
		reason string
		files  []string
		busy   string
		want   []string
		err    string
	}{
		"All": {
			reason: "Programs, images and what dead clusters left are gone.",
			files:  []string{"bin/etcd/etcd", "images/x", "clusters/unit-a/registry/y", "clusters/unit-old/state/cluster.json"},
		},
		"Empty": {reason: "A machine on which nothing was built."},
		"Packages": {
			reason: "The names of packages stay as long as these may.",
			files:  []string{"bin/etcd/etcd", host.RecordName},
			want:   []string{host.RecordName},
		},
		"Busy": {
			reason: "Another cluster is just starting.",
			files:  []string{"bin/etcd/etcd"},
			busy:   "unit-b",
			want:   []string{"bin/etcd/etcd", "clusters/unit-a/lock", "clusters/unit-b/lock"},
			err:    "is used by unit-b: run 'down' with --name",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("XDG_CACHE_HOME", home)
			// Without Go nobody measures its caches, which takes long.
			t.Setenv("PATH", home)
			neighbour := filepath.Join(home, "neighbour")
			if err := os.WriteFile(neighbour, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			// Control groups have names of their cluster, and "capstan" may be running.
			c, err := New("unit-a", "")
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range tc.files {
				if err := host.WriteFiles(c.Cache, map[string][]byte{f: []byte("ipset\n")}); err != nil {
					t.Fatal(err)
				}
			}
			if tc.busy != "" {
				unlock, err := (&Cluster{Name: tc.busy, Cache: c.Cache}).lock()
				if err != nil {
					t.Fatal(err)
				}
				defer unlock()
			}
			var said bytes.Buffer
			err = c.DownAll(t.Context(), progress.New(&said))
			if got := message(err); !strings.Contains(got, tc.err) || (tc.err == "") != (err == nil) {
				t.Errorf("%s\nwant error %q, got %q", tc.reason, tc.err, got)
			}
			if diff := cmp.Diff(tc.want, below(t, c.Cache)); diff != "" {
				t.Errorf("%s\nfiles: -want, +got:\n%s", tc.reason, diff)
			}
			if named := strings.Contains(said.String(), "apt-get remove --autoremove ipset"); named != (name == "Packages") {
				t.Errorf("%s\nsaid %s", tc.reason, said.String())
			}
			if _, err := os.Stat(neighbour); err != nil {
				t.Errorf("%s\nother caches have to stay: %v", tc.reason, err)
			}
		})
	}
}

func TestGoCaches(t *testing.T) {
	built, modules := t.TempDir(), t.TempDir()
	t.Setenv("GOCACHE", built)
	t.Setenv("GOMODCACHE", modules)
	if err := host.WriteFiles(modules, map[string][]byte{"a": make([]byte, 1000), "b/c": make([]byte, 24)}); err != nil {
		t.Fatal(err)
	}
	want := []goCache{{"build cache", built, 0, true}, {"module cache", modules, 1024, true}}
	if diff := cmp.Diff(want, goCaches(t.Context()), cmp.AllowUnexported(goCache{})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if size, all := folderSize(done, modules); size != 0 || all {
		t.Errorf("no time to count: got %d, all %t", size, all)
	}
	t.Setenv("PATH", built)
	if got := goCaches(t.Context()); got != nil {
		t.Errorf("without Go: got %v", got)
	}
}

func TestNoMounts(t *testing.T) {
	if err := noMounts("/"); err != nil {
		t.Errorf("no path begins with two slashes: %v", err)
	}
	if err := noMounts(""); err == nil {
		t.Error("want an error for a folder with mounts below it")
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// below lists the files of a folder.
func below(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil && !e.IsDir() {
			path, err = filepath.Rel(dir, path)
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
