// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/test/output"
	"github.com/capstan-dev/capstan/test/outside"
)

// maxMemory is what the program may have in memory at most, in bytes, whatever it downloads.
const maxMemory = 64 << 20

// program is the companion as it is built for its image.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "capstan-companion-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "companion")
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot build the companion: %v: %s\n", err, out)
		os.Exit(1)
	}
	code := outside.Main(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// A process of the companion, fetching.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	words  string
	stderr output.Buffer
	memory chan int64
}

// watch how much memory a process has at most. What the kernel tells of one that has ended is at least what its parent had.
func watch(pid int, most chan<- int64) {
	high := int64(0)
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		exe, xerr := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil || xerr != nil || exe != program && high > 0 {
			most <- high
			return
		}
		if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok && exe == program {
			var now int64
			if _, err := fmt.Sscan(rest, &now); err == nil {
				high = max(high, now<<10)
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// start fetching. Credentials are written into a folder, as a Secret is mounted.
func start(t *testing.T, credentials map[string]string, args ...string) *process {
	t.Helper()
	p := &process{t: t, words: filepath.Join(t.TempDir(), "termination-log"), memory: make(chan int64, 1)}
	if err := os.WriteFile(p.words, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"fetch", "--termination-log=" + p.words, "--patience=20s"}, args...)
	if credentials != nil {
		args = append(args, "--credentials="+folder(t, credentials))
	}
	p.cmd = exec.CommandContext(t.Context(), program, args...)
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "AWS_EC2_METADATA_DISABLED=true"}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go watch(p.cmd.Process.Pid, p.memory)
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

// wait for its end, and return its exit code and last words.
func (p *process) wait() (int, string) {
	p.t.Helper()
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	words, err := os.ReadFile(p.words)
	if err != nil {
		p.t.Fatal(err)
	}
	memory := <-p.memory
	p.t.Logf("exit code %d, %.1f MiB at most, %s", p.cmd.ProcessState.ExitCode(), float64(memory)/(1<<20), words)
	if memory > maxMemory {
		p.t.Errorf("want at most %d MiB of memory, got %d", maxMemory>>20, memory>>20)
	}
	return p.cmd.ProcessState.ExitCode(), string(words)
}

// succeed waits for an end without last words.
func (p *process) succeed() {
	p.t.Helper()
	if code, words := p.wait(); code != 0 || words != "" {
		p.t.Fatalf("want success, got exit code %d: %s\n%s", code, words, p.stderr.String())
	}
}

// fail waits for an end with last words that begin like this and hold all of the others.
func (p *process) fail(begin string, holds ...string) {
	p.t.Helper()
	code, words := p.wait()
	if code != 1 || !strings.HasPrefix(words, begin) {
		p.t.Errorf("want exit code 1 and %q, got %d and %q", begin, code, words)
	}
	for _, h := range holds {
		if !strings.Contains(words, h) {
			p.t.Errorf("want %q in the last words, got %q", h, words)
		}
	}
	if strings.Count(words, ": ") < 2 {
		p.t.Errorf("want reason, cause and remedy, got %q", words)
	}
}

// folder with a file for each key.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// digestOf returns what the companion says of a folder.
func digestOf(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, "digest", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// holds compares the model on a volume with the files it should have.
func holds(t *testing.T, cache, key string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	root := filepath.Join(cache, key)
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if mode := fs.FileMode(0o775); entry.IsDir() {
			if info.Mode().Perm() != mode {
				t.Errorf("want folder %q to have mode %s, got %s", name, mode, info.Mode())
			}
			return nil
		}
		if mode := fs.FileMode(0o644); info.Mode() != mode {
			t.Errorf("want file %q to have mode %s, got %s", name, mode, info.Mode())
		}
		content, err := os.ReadFile(name)
		rel, rerr := filepath.Rel(root, name)
		got[rel] = string(content)
		return errors.Join(err, rerr)
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Fatalf("files of the model: -want, +got:\n%s", diff)
	}
	for name := range want {
		if want[name] != got[name] {
			t.Errorf("file %q has other content, of %d bytes instead of %d", name, len(got[name]), len(want[name]))
		}
	}
	clean(t, cache)
}

// clean shows that nothing is left of downloads.
func clean(t *testing.T, cache string) {
	t.Helper()
	for _, pattern := range []string{"*.partial", "*.lock*"} {
		if left, err := filepath.Glob(filepath.Join(cache, ".capstan", pattern)); err != nil || len(left) > 0 {
			t.Errorf("want nothing left of downloads, got %v, %v", left, err)
		}
	}
}

// await a condition.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("waited 30 s in vain for %s", what)
}
