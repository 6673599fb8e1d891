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

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

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

// TestForget: the files of a server that is gone are removed, also if a thread has its number, and those of one that runs are not.
func TestForget(t *testing.T) {
	left := func(t *testing.T, data string) []string {
		t.Helper()
		var out []string
		for _, name := range []string{file, ".s.PGSQL.5432.lock", ".s.PGSQL.5432"} {
			if _, err := os.Stat(filepath.Join(data, name)); err == nil {
				out = append(out, name)
			}
		}
		return out
	}
	write := func(t *testing.T, path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{file, ".s.PGSQL.5432.lock", ".s.PGSQL.5432"}
	for name, tc := range map[string]struct {
		reason string
		number func(t *testing.T) int
		want   []string
	}{
		"Gone":   {"Another process or thread may get its number.", func(*testing.T) int { return 1 << 22 }, []string{".s.PGSQL.5432"}},
		"Other":  {"This is another program.", func(*testing.T) int { return os.Getpid() }, []string{".s.PGSQL.5432"}},
		"Thread": {"A thread is no server.", func(*testing.T) int { return unix.Gettid() }, []string{".s.PGSQL.5432"}},
		"Runs": {"A server that runs keeps its files.", func(t *testing.T) int {
			t.Helper()
			child, _ := server(t, ":")
			return child.PID()
		}, all},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			number := strconv.Itoa(tc.number(t)) + "\n"
			write(t, filepath.Join(data, file), number)
			write(t, filepath.Join(data, ".s.PGSQL.5432.lock"), number)
			write(t, filepath.Join(data, ".s.PGSQL.5432"), "")
			if err := Forget(data, data); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, left(t, data)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if err := Forget(filepath.Join(t.TempDir(), "none"), t.TempDir()); err != nil {
		t.Errorf("without data: %v", err)
	}
}
