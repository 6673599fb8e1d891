// SPDX-License-Identifier: Apache-2.0

//go:build integration

package outside

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// dieIn names a directory for a copy of this test binary, which starts servers there and panics.
const dieIn = "CAPSTAN_TEST_DIE_IN"

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	if dir := os.Getenv(dieIn); dir != "" {
		die(dir)
	}
	os.Exit(Main(m))
}

// doomed is a test that never reaches its clean-up.
type doomed struct {
	testing.TB

	dir string
}

func (doomed) Helper()                           {}
func (doomed) Cleanup(func())                    {}
func (doomed) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (doomed) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (d doomed) TempDir() string {
	dir, err := os.MkdirTemp(d.dir, "")
	if err != nil {
		panic(err)
	}
	return dir
}

// die starts servers, waits until the parent has inspected them, and panics.
func die(dir string) {
	t := doomed{dir: dir}
	S3(t)
	MLflowOpen(t)
	APIServer(t)
	_, _ = fmt.Fprintln(os.Stdout, "started")
	_, _ = io.ReadAll(os.Stdin)
	panic("a test panics")
}

// processes returns the programs whose command line contains a directory.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range lines {
		// A process that has ended in between cannot be read.
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), dir) {
			program, _, _ := strings.Cut(string(data), "\x00")
			found = append(found, filepath.Base(program))
		}
	}
	return found
}

func TestPanicLeavesNoProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), dieIn+"="+dir, "TMPDIR="+dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("the servers of a test that will panic do not start: %v: %s", err, line)
	}
	if got := processes(t, dir); len(got) != 4 {
		t.Errorf("want an S3 server, MLflow, etcd and an API server, found %v", got)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("a test that panics ends well")
	}
	deadline := time.Now().Add(10 * time.Second)
	for left := processes(t, dir); len(left) > 0; left = processes(t, dir) {
		if time.Now().After(deadline) {
			t.Fatalf("10 seconds after a test has panicked, %v still run", left)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestCleanupStopsServers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Run("Servers", func(t *testing.T) {
		S3(t)
		APIServer(t)
		if got := processes(t, dir); len(got) < 2 {
			t.Errorf("want an S3 server, etcd and an API server, found %v", got)
		}
	})
	if left := processes(t, dir); len(left) > 0 {
		t.Errorf("after a test, %v still run", left)
	}
}
