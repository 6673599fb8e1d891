// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
)

func open(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Stale == 0 {
		o.Stale = time.Minute
	}
	s, err := Open(slog.New(slog.DiscardHandler), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// publish a model of one file.
func publish(t *testing.T, s *Store, content string) {
	t.Helper()
	p, m := begin(t, s, content)
	if err := s.Publish(p, m); err != nil {
		t.Fatal(err)
	}
}

func begin(t *testing.T, s *Store, content string) (*Partial, model.Manifest) {
	t.Helper()
	p, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	w, err := p.Create("model.bin")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Copy(strings.NewReader(content), make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	m, err := p.Seal(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return p, m
}

// there reports whether the model can be used.
func there(t *testing.T, s *Store) bool {
	t.Helper()
	m, err := s.Use()
	if err != nil {
		t.Fatal(err)
	}
	return m != nil
}

func TestPublish(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, Key: "reco"})
	if there(t, s) {
		t.Error("an empty volume has no model")
	}
	// A pod that was killed, and a folder that the kubelet has made for a mount.
	if _, err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "reco"), 0o755); err != nil {
		t.Fatal(err)
	}
	if there(t, s) {
		t.Error("a folder alone is no model")
	}
	p, m := begin(t, s, "weights")
	if there(t, s) {
		t.Error("a model that is not published cannot be seen")
	}
	if err := s.Publish(p, m); err != nil {
		t.Fatal(err)
	}
	if !there(t, s) {
		t.Error("a model that is published can be seen")
	}
	if left := s.list(partialSuffix); len(left) > 0 {
		t.Errorf("want nothing left of downloads, got %v", left)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("want the model and one folder of our own, got %v, %v", entries, err)
	}
	if err := os.Truncate(filepath.Join(dir, "reco", "model.bin"), 3); err != nil {
		t.Fatal(err)
	}
	if there(t, s) {
		t.Error("a model that is damaged cannot be used")
	}
	publish(t, s, "weights")
	if !there(t, s) {
		t.Error("a damaged model is replaced")
	}
}

func TestDiscard(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), Key: "reco"})
	p, _ := begin(t, s, "weights")
	s.Discard(p)
	if left := s.list(partialSuffix); len(left) > 0 || there(t, s) {
		t.Errorf("want nothing left of a download, got %v", left)
	}
}

func TestKeys(t *testing.T) {
	for key, reason := range map[string]string{
		"":                      "a key is a name",
		"..":                    "it would lead out",
		own:                     "it is ours",
		"a/b":                   "it is one folder",
		"A":                     "some file systems know no difference",
		strings.Repeat("a", 64): "it is too long",
		"a-":                    "it ends with a dash",
	} {
		if _, err := Open(slog.New(slog.DiscardHandler), Options{Dir: t.TempDir(), Key: key}); !failure.Is(err, failure.Invalid) {
			t.Errorf("key %q: %s: want %s, got %v", key, reason, failure.Invalid, err)
		}
	}
}

// TestLock has many pods want the same model.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	var holders, downloads, most atomic.Int32
	var wait sync.WaitGroup
	for range 8 {
		s := open(t, Options{Dir: dir, Key: "reco", Stale: 2 * time.Second})
		wait.Go(func() {
			_, l, err := s.Lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), holders.Add(1)))
			if m, err := s.Use(); err != nil || m == nil {
				downloads.Add(1)
				time.Sleep(50 * time.Millisecond)
				publish(t, s, "weights")
			}
			holders.Add(-1)
			l.Release()
		})
	}
	wait.Wait()
	if downloads.Load() != 1 || most.Load() != 1 {
		t.Errorf("want one download by one holder at a time, got %d by up to %d", downloads.Load(), most.Load())
	}
}

// TestLockOfDead is about pods that are gone without a word.
func TestLockOfDead(t *testing.T) {
	cases := map[string]struct {
		reason   string
		dead     string
		pod      string
		min, max time.Duration
	}{
		"OtherPod": {
			reason: "A lock that does not move is taken over after a while.",
			dead:   "other", pod: "me", min: 600 * time.Millisecond, max: 5 * time.Second,
		},
		"SamePod": {
			reason: "A container that starts again need not wait for itself.",
			dead:   "me", pod: "me", max: 500 * time.Millisecond,
		},
		"Nobody": {
			reason: "Pods without a name are not taken for each other.",
			min:    600 * time.Millisecond, max: 5 * time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir, stale := t.TempDir(), 600*time.Millisecond
			dead := open(t, Options{Dir: dir, Key: "reco", Pod: tc.dead, Stale: stale})
			if err := dead.acquire(); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			_, l, err := open(t, Options{Dir: dir, Key: "reco", Pod: tc.pod, Stale: stale}).Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			l.Release()
			if took := time.Since(begun); took < tc.min || took > tc.max {
				t.Errorf("%s\nwant the lock after %s to %s, got it after %s", tc.reason, tc.min, tc.max, took)
			}
		})
	}
}

// TestLockLives shows that a download may take longer than a lock must not move.
func TestLockLives(t *testing.T) {
	dir, stale := t.TempDir(), 600*time.Millisecond
	held, l, err := open(t, Options{Dir: dir, Key: "reco", Stale: stale}).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 3*stale)
	defer cancel()
	if _, _, err := open(t, Options{Dir: dir, Key: "reco", Stale: stale}).Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want no second lock while the first one moves, got %v", err)
	}
	if held.Err() != nil {
		t.Errorf("want the lock to be held still, got %v", context.Cause(held))
	}
}

// TestLockLost shows that a pod that stood still learns that it was taken for dead.
func TestLockLost(t *testing.T) {
	dir, stale := t.TempDir(), 600*time.Millisecond
	first := open(t, Options{Dir: dir, Key: "reco", Stale: stale})
	held, l, err := first.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second := open(t, Options{Dir: dir, Key: "reco", Stale: stale})
	second.takeOver(second.holder())
	if err := second.acquire(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-held.Done():
	case <-time.After(5 * time.Second):
	}
	if !Lost(held) {
		t.Error("want the lock to be lost")
	}
	l.Release()
	if !strings.HasPrefix(second.holder(), second.id) {
		t.Errorf("want the lock to stay with who has taken it over, got %q", second.holder())
	}
}

// TestTakeOverTooLate shows that who is second to take over a lock gives it back.
func TestTakeOverTooLate(t *testing.T) {
	dir := t.TempDir()
	first, second := open(t, Options{Dir: dir, Key: "reco"}), open(t, Options{Dir: dir, Key: "reco"})
	if err := first.acquire(); err != nil {
		t.Fatal(err)
	}
	second.takeOver("what was there before")
	if !strings.HasPrefix(first.holder(), first.id) {
		t.Errorf("want the lock to be given back, got %q", first.holder())
	}
	if left := first.list("." + second.id); len(left) > 0 {
		t.Errorf("want nothing left, got %v", left)
	}
}

func TestRoom(t *testing.T) {
	const gib = 1 << 30
	ages := map[string]time.Duration{"old": 72 * time.Hour, "older": 96 * time.Hour, "kept": 200 * time.Hour, "young": 23 * time.Hour, "mine": 500 * time.Hour}
	cases := map[string]struct {
		reason string
		need   int64
		want   []string // models that are left
		err    string
	}{
		"Enough": {reason: "Nothing goes without need.", need: gib / 2, want: []string{"kept", "mine", "old", "older", "young"}},
		"One":    {reason: "The one that was not used for longest goes first.", need: 3 * gib / 2, want: []string{"kept", "mine", "old", "young"}},
		"Two":    {reason: "And then the next.", need: 5 * gib / 2, want: []string{"kept", "mine", "young"}},
		"TooMuch": {
			reason: "What is kept, was used today or is the pod's own stays, whatever is needed.",
			need:   10 * gib, want: []string{"kept", "mine", "young"},
			err: "the model needs 10 GiB and the volume for models has 3.0 GiB left",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for key, age := range ages {
				s := open(t, Options{Dir: dir, Key: key})
				publish(t, s, key)
				there(t, s)
				when := time.Now().Add(-age)
				if err := os.Chtimes(filepath.Join(dir, own, key+usedSuffix), when, when); err != nil {
					t.Fatal(err)
				}
			}
			// A folder that somebody else has put there is none of ours.
			if err := os.Mkdir(filepath.Join(dir, "theirs"), 0o755); err != nil {
				t.Fatal(err)
			}
			s := open(t, Options{Dir: dir, Key: "mine", Keep: []string{"kept"}})
			left := func() []string {
				var names []string
				entries, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					if e.Name() != own && e.Name() != "theirs" {
						names = append(names, e.Name())
					}
				}
				return names
			}
			// Each model has 1 GiB.
			s.free = func() (int64, error) { return int64(1+len(ages)-len(left()))*gib + spare, nil }
			err := s.Room(tc.need)
			switch {
			case tc.err == "" && err != nil:
				t.Errorf("%s\n%v", tc.reason, err)
			case tc.err != "" && (err == nil || err.Error() != tc.err || !failure.Is(err, failure.NoSpace)):
				t.Errorf("%s\nwant error %q, got %v", tc.reason, tc.err, err)
			}
			if diff := cmp.Diff(tc.want, left()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for _, key := range []string{"old", "older"} {
				_, err := os.Stat(filepath.Join(dir, own, key+recordSuffix))
				if gone := errors.Is(err, os.ErrNotExist); gone == strings.Contains(strings.Join(tc.want, " ")+" ", key+" ") {
					t.Errorf("%s\nrecord of %q: gone %t", tc.reason, key, gone)
				}
			}
		})
	}
}

// TestEvictInUse shows that a model is put back when a pod starts with it while it is taken away.
func TestEvictInUse(t *testing.T) {
	dir := t.TempDir()
	other := open(t, Options{Dir: dir, Key: "other"})
	publish(t, other, "weights")
	there(t, other) // now
	s := open(t, Options{Dir: dir, Key: "mine"})
	now, err := s.now()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.evict("other", now); err != nil {
		t.Fatal(err)
	}
	if !there(t, other) {
		t.Error("want a model that is used again to be put back")
	}
}

// TestSweepPartials shows that what was left of downloads goes, and what is under way does not.
func TestSweepPartials(t *testing.T) {
	dir := t.TempDir()
	for _, key := range []string{"left", "young", "slow"} {
		s := open(t, Options{Dir: dir, Key: key})
		p, err := s.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if key == "slow" {
			if err := s.acquire(); err != nil {
				t.Fatal(err)
			}
		}
		if key != "young" {
			when := time.Now().Add(-25 * time.Hour)
			if err := os.Chtimes(filepath.Join(dir, p.name), when, when); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := open(t, Options{Dir: dir, Key: "mine"})
	s.sweepPartials(time.Now())
	var got []string
	for _, name := range s.list(partialSuffix) {
		got = append(got, keyOf(name))
	}
	if diff := cmp.Diff([]string{"slow", "young"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1536: "1.5 KiB", 20 << 20: "20 MiB", 3<<30 + 5<<20: "3.0 GiB", 1 << 50: "1024 TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d): want %q, got %q", n, want, got)
		}
	}
}
