// SPDX-License-Identifier: Apache-2.0

package postmaster

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/images/member/process"
)

// server stands in for PostgreSQL: a shell of its name that runs a script, and the data folder that names it.
func server(t *testing.T, script string) (*process.Child, string) {
	t.Helper()
	data := t.TempDir()
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(data, "postgres")
	if err := os.WriteFile(program, shell, 0o755); err != nil {
		t.Fatal(err)
	}
	child, err := process.Start(program, nil, "-c", script+"; touch "+data+"/begun; while :; do sleep 0.05; done")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		Kill(data)
		<-child.Done()
	})
	if err := os.WriteFile(filepath.Join(data, "postmaster.pid"), []byte(strconv.Itoa(child.PID())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(data + "/begun"); err == nil {
			return child, data
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestStop(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		script string
		freeze bool
		limit  time.Duration
		runs   bool
	}{
		"Stops":  {reason: "It does as it is told.", script: "trap 'exit 0' INT", limit: time.Minute},
		"Frozen": {reason: "One that is frozen hears of nothing and is ended.", script: "trap 'exit 0' INT", freeze: true, limit: time.Minute},
		"Deaf":   {reason: "One that goes on is waited for no longer than the context lasts.", script: "trap '' INT", limit: 300 * time.Millisecond, runs: true},
	} {
		t.Run(name, func(t *testing.T) {
			child, data := server(t, tc.script)
			if tc.freeze {
				if err := child.Signal(syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
			defer cancel()
			Stop(ctx, data)
			if _, runs := Find(data); runs != tc.runs {
				t.Errorf("%s: it runs: %v", tc.reason, runs)
			}
			if gone := process.Gone(ctx, child.PID()); gone == tc.runs {
				t.Errorf("%s: it is gone: %v", tc.reason, gone)
			}
			if late := ctx.Err() != nil; late != tc.runs {
				t.Errorf("%s: the context has ended: %v", tc.reason, late)
			}
			Kill(data)
			<-child.Done()
			if _, runs := Find(data); runs {
				t.Error("it runs although it was ended with all its processes")
			}
		})
	}
}

// TestKill: its processes go with it, of which any may be frozen.
func TestKill(t *testing.T) {
	child, data := server(t, "sleep 60 & kill -STOP $!")
	below := process.Descendants(child.PID())
	Kill(data)
	<-child.Done()
	for _, p := range below {
		for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			if now, ok := process.Get(p.PID); !ok || now.Dead {
				break
			}
			if time.Since(begun) > 10*time.Second {
				t.Fatalf("process %d, %s, is left", p.PID, p.Name)
			}
		}
	}
}
