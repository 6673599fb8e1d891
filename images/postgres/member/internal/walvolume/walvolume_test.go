// SPDX-License-Identifier: Apache-2.0

package walvolume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/volume"
)

const (
	identity = "3f2a9c1b"
	control  = "global/pg_control"
)

// log of a server, as files in the data folder.
var log = map[string]string{
	"pg_wal/000000010000000000000001": "first", "pg_wal/000000010000000000000002": "second", "pg_wal/00000002.history": "1",
	"pg_wal/archive_status/000000010000000000000001.ready": "", "pg_wal/summaries/a.summary": "sums",
}

// place of a log with a data folder that has files, and a volume that has some, too. The volume is mounted unless its files are nil.
func place(t *testing.T, data, on map[string]string) Place {
	t.Helper()
	base := t.TempDir()
	p := Place{Data: filepath.Join(base, "data", "pgdata"), Volume: filepath.Join(base, "wal")}
	p.Measure = func(string) (volume.Usage, error) { return volume.Usage{Size: 1 << 30, Free: 1 << 29}, nil }
	write(t, p.Data, data)
	if on != nil {
		write(t, p.Volume, on)
	}
	return p
}

func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// files in a folder, also behind the link to a log. A link is a file with what it leads to.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(folder, path)
		if d.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			for behind, content := range files(t, to) {
				out[filepath.Join(name, behind)] = content
			}
			return err
		}
		raw, err := os.ReadFile(path)
		out[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func with(files map[string]string, more ...string) map[string]string {
	out := maps.Clone(files)
	for _, name := range more {
		out[name] = "whole"
	}
	return out
}

// moved wants the log of a place behind a link, and nothing of a move left over.
func moved(t *testing.T, p Place) {
	t.Helper()
	if diff := cmp.Diff(with(log, control), files(t, p.Data)); diff != "" {
		t.Errorf("the data with its log: -want, +got:\n%s", diff)
	}
	if apart, err := p.Apart(); !apart || err != nil {
		t.Errorf("the log is not on its volume: %v", err)
	}
	for folder, want := range map[string][]string{filepath.Dir(p.Data): {"pgdata"}, p.Volume: {"capstan.json", "pg_wal"}} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", filepath.Base(folder), diff)
		}
	}
}

// TestCrash ends a move at each of its points: between two steps, and in the middle of each that is not done at once. The log is whole
// then, wherever the server looks for it: with the volume, and also in a pod that does not have it any more.
func TestCrash(t *testing.T) {
	ctx := context.Background()
	steps := place(t, nil, nil).steps(ctx)
	last := len(steps)
	halves := map[string]func(*testing.T, Place){
		"copy": func(t *testing.T, p Place) {
			t.Helper()
			write(t, p.copied(), map[string]string{"000000010000000000000001": "fi", "archive_status/x.ready": ""})
		},
		"clear": func(t *testing.T, p Place) {
			t.Helper()
			write(t, p.Log(), map[string]string{"00000009": "of earlier data"})
			write(t, p.Log()+failed, map[string]string{"00000009": "of earlier data"})
		},
		"tidy": func(t *testing.T, p Place) {
			t.Helper()
			if err := os.RemoveAll(filepath.Join(p.former(), "summaries")); err != nil {
				t.Fatal(err)
			}
		},
	}
	for done := range last + 1 {
		for _, half := range []bool{false, true} {
			if half && (done == last || halves[steps[done].name] == nil) {
				continue // It is done at once.
			}
			for _, unmounted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d/half=%t/unmounted=%t", done, half, unmounted), func(t *testing.T) {
					p := place(t, with(log, control), map[string]string{})
					if err := volume.Claim(p.mark(), p.Log(), identity, "17"); err != nil {
						t.Fatal(err)
					}
					all := p.steps(ctx)
					for _, s := range all[:done] {
						if err := s.do(); err != nil {
							t.Fatalf("%s: %v", s.name, err)
						}
					}
					if half {
						halves[all[done].name](t, p)
					}
					if unmounted {
						without := p
						without.Volume = filepath.Join(t.TempDir(), "none")
						err := without.Prepare(ctx, identity, "17")
						if linked, _ := p.linked(); linked {
							want(t, err, pgmember.ReasonWALVolumeLost)
							return
						}
						if err != nil {
							t.Fatal(err)
						}
						if diff := cmp.Diff(with(log, control), files(t, p.Data)); diff != "" {
							t.Errorf("the data with its log, without the volume: -want, +got:\n%s", diff)
						}
						return
					}
					for range 2 {
						if err := p.Prepare(ctx, identity, "17"); err != nil {
							t.Fatal(err)
						}
						moved(t, p)
					}
				})
			}
		}
	}
}

// want an error for a reason.
func want(t *testing.T, err error, reason string) {
	t.Helper()
	var problem *volume.Problem
	if !errors.As(err, &problem) || problem.Reason != reason {
		t.Errorf("want the problem %s, got %v", reason, err)
	}
}

func TestPrepare(t *testing.T) {
	mark := map[string]string{"capstan.json": `{"identity":"3f2a9c1b","version":"17"}`}
	old := "pg_wal/000000090000000000000001"
	for name, tc := range map[string]struct {
		reason   string
		data, on map[string]string
		link     string // what the link in the data leads to, after the name of the log
		free     int64
		problem  string
		log, wal map[string]string
	}{
		"None": {
			reason: "Without a volume the log stays in the data.", data: with(log, control),
			log: with(log, control),
		},
		"Empty": {
			reason: "What earlier data left is no log of new data.", data: map[string]string{}, on: with(mark, old, "pg_wal.failed/x", "pg_wal.diverged/kept"),
			log: map[string]string{}, wal: with(mark, "pg_wal.diverged/kept"),
		},
		"HalfCopied": {
			reason: "A copy of the leader that did not end is cleared with its log.", data: map[string]string{"PG_VERSION": "17"}, on: with(mark, old),
			log: map[string]string{"PG_VERSION": "17"}, wal: mark,
		},
		"OfAnother": {
			reason: "The volume of another Database is left alone.", data: with(log, control), on: map[string]string{"capstan.json": `{"identity":"ffff"}`, old: "x"},
			problem: "VolumeOfAnother", log: with(log, control), wal: map[string]string{"capstan.json": `{"identity":"ffff"}`, old: "x"},
		},
		"Unknown": {
			reason: "A log that no Database marked is left alone.", data: with(log, control), on: map[string]string{old: "x"},
			problem: "VolumeOfAnother", log: with(log, control), wal: map[string]string{old: "x"},
		},
		"Lost": {
			reason: "Data whose log was on a volume that is new does not start with an empty log.", data: map[string]string{control: "whole"}, on: map[string]string{}, link: "/",
			problem: pgmember.ReasonWALVolumeLost,
		},
		"Emptied": {
			reason: "Nor does data whose log is gone from the volume.", data: map[string]string{control: "whole"}, on: mark, link: "/",
			problem: pgmember.ReasonWALVolumeLost,
		},
		"Elsewhere": {
			reason: "Data that was put back by hand does not run on a log that is removed with what is diverged.", data: map[string]string{control: "whole"},
			on: with(mark, old, "pg_wal.diverged/kept"), link: ".diverged", problem: pgmember.ReasonWALVolumeLost,
			log: with(map[string]string{}, control, "pg_wal/kept"), wal: with(mark, old, "pg_wal.diverged/kept"),
		},
		"TooSmall": {
			reason: "A log that does not fit stays where it is.", data: with(log, control), on: map[string]string{}, free: 50 << 20,
			problem: pgmember.ReasonWALVolumeTooSmall, log: with(log, control),
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := place(t, tc.data, tc.on)
			if tc.free > 0 {
				p.Measure = func(string) (volume.Usage, error) { return volume.Usage{Size: 1 << 30, Free: tc.free}, nil }
			}
			if tc.link != "" {
				if err := os.Symlink(filepath.Clean(p.Log()+tc.link), p.inData()); err != nil {
					t.Fatal(err)
				}
			}
			switch err := p.Prepare(t.Context(), identity, "17"); {
			case tc.problem != "":
				want(t, err, tc.problem)
			case err != nil:
				t.Errorf("\n%s\nPrepare(...): %v", tc.reason, err)
			}
			if tc.log != nil {
				if diff := cmp.Diff(tc.log, files(t, p.Data)); diff != "" {
					t.Errorf("\n%s\nthe data: -want, +got:\n%s", tc.reason, diff)
				}
			}
			if tc.wal != nil {
				if diff := cmp.Diff(tc.wal, files(t, p.Volume)); diff != "" {
					t.Errorf("\n%s\nthe volume: -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// TestStopped: a pod that is stopped while it copies ends the move, and the next one completes it.
func TestStopped(t *testing.T) {
	p := place(t, with(log, control), map[string]string{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Prepare(ctx, identity, "17"); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "copy") {
		t.Errorf("want a copy that was stopped, got %v", err)
	}
	if err := p.Prepare(t.Context(), identity, "17"); err != nil {
		t.Fatal(err)
	}
	moved(t, p)
}
