// SPDX-License-Identifier: Apache-2.0

package ranks

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
	"github.com/capstan-dev/capstan/images/companion/internal/crew/watch"
	"github.com/capstan-dev/capstan/images/companion/internal/process"
)

// keeper of this process, which has one only.
var keeper = sync.OnceValues(process.NewKeeper)

func start(t *testing.T, processes int, out io.Writer, command ...string) *Group {
	t.Helper()
	k, err := keeper()
	if err != nil {
		t.Fatal(err)
	}
	w, err := watch.New(crew.Watch{})
	if err != nil {
		t.Fatal(err)
	}
	g := Start(k, Launch{
		Command: command, Processes: processes, Scratch: t.TempDir(), Out: out, Watcher: w,
		Environment: func(int, string) []string { return nil },
	})
	t.Cleanup(func() {
		g.Halt(protocol.Kill, 0)
		stopped(t, g, time.Minute)
	})
	return g
}

func stopped(t *testing.T, g *Group, within time.Duration) {
	t.Helper()
	select {
	case <-g.Stopped():
	case <-time.After(within):
		t.Fatalf("not stopped within %s", within)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never: %s", what)
		}
	}
}

// alive reports whether a process lives. One that has ended and is not buried does not.
func alive(pid int) bool {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(raw[bytes.LastIndexByte(raw, ')'):]), " Z ")
}

func number(t *testing.T, file string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// blocked is an output that takes nothing until it is closed.
type blocked chan struct{}

func (b blocked) Write(p []byte) (int, error) {
	<-b
	return len(p), nil
}

func TestAnOutputThatTakesNothing(t *testing.T) {
	out := make(blocked)
	g := start(t, 2, out, "sh", "-c", "yes")
	time.Sleep(300 * time.Millisecond) // The pipes are full.
	g.Halt(protocol.Kill, 0)
	stopped(t, g, 20*time.Second)
	close(out)
}

func TestOrphansEndWithTheAttempt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	// Its own session, its own group, and a parent that has ended.
	g := start(t, 1, io.Discard, "sh", "-c", "setsid sh -c 'trap \"\" TERM; echo $$ > "+file+".next; mv "+file+".next "+file+"; while :; do sleep 1; done' & exit 0")
	eventually(t, "the orphan runs", func() bool { _, err := os.Stat(file); return err == nil })
	if e := <-g.Ended; e.Exit != (process.Exit{}) {
		t.Fatalf("the rank ended with %+v", e)
	}
	orphan := number(t, file)
	if !alive(orphan) {
		t.Fatal("there is no orphan to end")
	}
	g.Halt(protocol.Terminate, time.Second)
	stopped(t, g, 20*time.Second)
	if alive(orphan) || g.Unfit() {
		t.Errorf("the orphan lives: %t, unfit: %t", alive(orphan), g.Unfit())
	}
}

func TestARankThatIgnoresSIGTERM(t *testing.T) {
	g := start(t, 1, io.Discard, "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
	time.Sleep(200 * time.Millisecond)
	begun := time.Now()
	g.Halt(protocol.Terminate, time.Second)
	stopped(t, g, 20*time.Second)
	if took := time.Since(begun); took < time.Second {
		t.Errorf("it was killed after %s, and the grace period is 1s", took)
	}
	if e := <-g.Ended; e.Exit.Signal != syscall.SIGKILL {
		t.Errorf("it ended with %+v, want SIGKILL", e.Exit)
	}
}

func TestTheGracePeriodCanBeCutShort(t *testing.T) {
	g := start(t, 1, io.Discard, "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
	begun := time.Now()
	g.Halt(protocol.Terminate, time.Minute)
	g.Halt(protocol.Kill, 0)
	stopped(t, g, 20*time.Second)
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestFilesOfProgress(t *testing.T) {
	lines := func(r *reading) []string {
		var all []string
		r.follow(func(line []byte) { all = append(all, string(line)) })
		return all
	}
	file := filepath.Join(t.TempDir(), "progress")
	write := func(content string, flags int) {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|flags, 0o600)
		if err == nil {
			_, err = f.WriteString(content)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	r := &reading{path: file}
	defer r.close()
	if got := lines(r); got != nil {
		t.Errorf("%q of no file", got)
	}
	write("one\ntw", os.O_APPEND)
	got := lines(r)
	write("o\n"+strings.Repeat("x", 2*maxProgress)+"\nthree\n", os.O_APPEND)
	got = append(got, lines(r)...)
	write("four\n", os.O_TRUNC)
	got = append(got, lines(r)...)
	if diff := cmp.Diff([]string{"one", "two", "three", "four"}, got); diff != "" {
		t.Errorf("lines that are appended, too long, and of a file that begins again: -want, +got:\n%s", diff)
	}
	for name, create := range map[string]func(string) error{
		"A pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"A device": func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		t.Run(name, func(t *testing.T) {
			odd := filepath.Join(t.TempDir(), "odd")
			if err := create(odd); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				(&reading{path: odd}).follow(func([]byte) {})
				close(done)
			}()
			select {
			case <-done:
			case <-time.After(5 * time.Second):
				t.Fatal("it is read for ever")
			}
		})
	}
}

func TestWhatARankSaysIsBounded(t *testing.T) {
	w, err := watch.New(crew.Watch{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rank{watcher: w, seen: seen{step: -1}, found: func(watch.Fault) {}}
	r.line("loaded checkpoint=/c/80")
	if got := r.seen.checkpoints; got != nil {
		t.Errorf("a checkpoint before the first step is %+v: it was loaded, not written", got)
	}
	r.line("step=1")
	for range 300 {
		r.line("checkpoint=/c/" + strings.Repeat("<", 1000))
		r.line("checkpoint=/c/" + strings.Repeat("<", 7000))
	}
	g := &Group{}
	for range 64 {
		g.ranks = append(g.ranks, &rank{seen: r.seen})
	}
	p, _ := g.Progress(time.Now())
	if err := protocol.Write(io.Discard, protocol.Message{Kind: protocol.Advanced, Progress: &p}); err != nil {
		t.Error(err)
	}
	if len(p.Checkpoints) == 0 {
		t.Error("no checkpoint is reported")
	}
}
