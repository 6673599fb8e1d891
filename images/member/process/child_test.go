// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		script string
		limit  time.Duration
		want   string
		fails  bool
	}{
		"Well":    {reason: "What it says on either channel is returned.", script: "echo one; echo two >&2", limit: time.Minute, want: "one\ntwo\n"},
		"Fails":   {reason: "What one says that fails is the cause.", script: "echo no room; exit 3", limit: time.Minute, want: "no room\n", fails: true},
		"Stopped": {reason: "One whose time is up is told to stop.", script: "trap 'echo stopped; exit 1' TERM; while :; do sleep 0.01; done", limit: 300 * time.Millisecond, want: "stopped\n", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
			defer cancel()
			got, err := Run(ctx, t.TempDir(), "/bin/sh", "-c", tc.script)
			if (err != nil) != tc.fails {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "sh: ") {
				t.Errorf("the error %q does not name the program", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nRun(...): -want, +got:\n%s", tc.reason, diff)
			}
			if len(awaited.pids) > 0 {
				t.Errorf("%d programs are taken for running", len(awaited.pids))
			}
		})
	}
}

func TestHeadAndTail(t *testing.T) {
	for _, short := range []func(string, int) string{Head, Tail} {
		if got := short("a\n  b\n", 3); got != "a b" {
			t.Errorf("a short text = %q, want one line", got)
		}
	}
	long := "the beginning" + strings.Repeat("x", 300) + "the end"
	if got := Head(long, 100); !strings.HasPrefix(got, "the beginning") || !strings.HasSuffix(got, " …") || len(got) > 105 {
		t.Errorf("Head(...) of a long text = %q, want its beginning", got)
	}
	if got := Tail(long, 100); !strings.HasPrefix(got, "… ") || !strings.HasSuffix(got, "the end") || len(got) > 105 {
		t.Errorf("Tail(...) of a long text = %q, want its end", got)
	}
	if got := Head("äöü", 3); got != "ä …" {
		t.Errorf("Head(...) = %q, want whole characters", got)
	}
}
