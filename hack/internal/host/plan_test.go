// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/hack/internal/progress"
)

func TestLines(t *testing.T) {
	cases := map[string]struct {
		reason string
		plan   Plan
		want   []string
	}{
		"Nothing": {reason: "A machine that has it all is left as it is."},
		"All": {
			reason: "A line for each kind of change.",
			plan:   Plan{Packages: []string{"ipset", "gcc"}, Modules: []string{"xfs", "loop"}, Cache: "/home/me/.cache/capstan"},
			want: []string{
				"installs Debian packages, with their dependencies: ipset gcc",
				"loads kernel modules, unless they are built in: xfs loop",
				"keeps programs and images in /home/me/.cache/capstan, and what Go compiles in Go's own caches: 10 GiB have to be free",
			},
		},
		"Warm": {
			reason: "What is built needs no announcement.",
			plan:   Plan{Modules: []string{"br_netfilter"}},
			want:   []string{"loads kernel modules, unless they are built in: br_netfilter"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.plan.Lines()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMissingModules(t *testing.T) {
	cases := map[string]struct {
		reason string
		known  []string
		paths  []string
		want   []string
	}{
		"None": {reason: "A kernel after its boot.", known: []string{"ext4"}, want: []string{"overlay", "xfs", "loop", "br_netfilter"}},
		"All":  {reason: "A kernel with it all.", known: []string{"xfs", "overlay"}, paths: []string{"/dev/loop-control", bridgeFilter}},
		"Some": {reason: "Docker has asked for some.", known: []string{"overlay"}, paths: []string{bridgeFilter}, want: []string{"xfs", "loop"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := missingModules(tc.known, func(path string) bool { return slices.Contains(tc.paths, path) })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A witness notes what is written, and whether apt-get had run by then.
type witness struct {
	ran   string
	lines []string
}

func (w *witness) Write(line []byte) (int, error) {
	_, text, _ := strings.Cut(strings.TrimSpace(string(line)), "  ")
	if present(w.ran) {
		text = "after: " + text
	}
	w.lines = append(w.lines, text)
	return len(line), nil
}

// TestInstall has an apt-get that installs ipset and cannot install conntrack.
func TestInstall(t *testing.T) {
	cases := map[string]struct {
		reason   string
		before   string
		only     []string
		apt      bool
		said     []string
		recorded []string
		fails    bool
	}{
		"Says": {
			reason:   "What is missing is named before it is installed, and recorded after.",
			only:     []string{"ipset"},
			apt:      true,
			said:     []string{"this command installs Debian packages, with their dependencies: ipset", "after: install ipset (0s)"},
			recorded: []string{"ipset"},
		},
		"Again": {
			reason:   "What was installed before stays recorded.",
			before:   "gcc\nipset\n",
			only:     []string{"ipset"},
			apt:      true,
			said:     []string{"this command installs Debian packages, with their dependencies: ipset", "after: install ipset (0s)"},
			recorded: []string{"gcc", "ipset"},
		},
		"Half": {
			reason:   "What came although the rest failed is recorded.",
			only:     []string{"ipset", "conntrack"},
			apt:      true,
			said:     []string{"this command installs Debian packages, with their dependencies: ipset conntrack"},
			recorded: []string{"ipset"},
			fails:    true,
		},
		"NoApt": {
			reason: "Nothing is announced that cannot be done.",
			only:   []string{"ipset"},
			fails:  true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bin, home := t.TempDir(), t.TempDir()
			t.Setenv("PATH", bin)
			t.Setenv("XDG_CACHE_HOME", home)
			w := &witness{ran: filepath.Join(bin, "ran")}
			if tc.apt {
				script := "#!/bin/sh\n: >" + w.ran + "\n/bin/cp " + bin + "/apt-get " + bin + "/ipset\ncase $* in *conntrack*) exit 1 ;; esac\n"
				if err := os.WriteFile(filepath.Join(bin, "apt-get"), []byte(script), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			cache := filepath.Join(home, "capstan")
			if tc.before != "" {
				if err := WriteFiles(cache, map[string][]byte{RecordName: []byte(tc.before)}); err != nil {
					t.Fatal(err)
				}
			}
			err := Install(t.Context(), progress.New(w), tc.only...)
			if (err != nil) != tc.fails {
				t.Errorf("%s\nerror: %v", tc.reason, err)
			}
			for i, line := range w.lines {
				if at := strings.LastIndex(line, " ("); at >= 0 && strings.HasPrefix(line, "after: ") {
					w.lines[i] = line[:at] + " (0s)"
				}
			}
			if diff := cmp.Diff(tc.said, w.lines); diff != "" {
				t.Errorf("%s\nsaid: -want, +got:\n%s", tc.reason, diff)
			}
			got, err := Installed(cache)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.recorded, got); diff != "" {
				t.Errorf("%s\nrecorded: -want, +got:\n%s", tc.reason, diff)
			}
			// The second time there is nothing to do.
			if w.lines = nil; tc.apt && !tc.fails {
				if err := Install(t.Context(), progress.New(w), tc.only...); err != nil || len(w.lines) > 0 {
					t.Errorf("%s\nagain: %v, said %q", tc.reason, err, w.lines)
				}
			}
		})
	}
}

// TestChanges expects the folder of the cache to be named as long as nothing is in it.
func TestChanges(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	cache := filepath.Join(home, "capstan")
	for _, want := range []string{cache, ""} {
		plan, err := Changes()
		if err != nil || plan.Cache != want {
			t.Errorf("want %q, got %q, %v", want, plan.Cache, err)
		}
		if err := MakeFolder(filepath.Join(cache, "bin")); err != nil {
			t.Fatal(err)
		}
	}
	if plan, err := Changes("gcc"); err != nil || plan.Cache != "" || plan.Modules != nil {
		t.Errorf("a request for one package starts no cluster: got %+v, %v", plan, err)
	}
}
