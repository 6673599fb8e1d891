// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/test/output"
)

// TestWarmUpSmall measures what the sidecar costs each replica.
func TestWarmUpSmall(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 1<<20))
	}))
	defer srv.Close()
	cmd := exec.CommandContext(t.Context(), program, "warm-up", "--url="+srv.URL+"/predict", "--requests=200", "--listen="+freeAddress(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr output.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "a warm server", func() bool { return strings.Contains(stderr.String(), `"msg":"warm"`) })

	// At rest it looks once a second.
	before := ticks(t, cmd.Process.Pid)
	time.Sleep(5 * time.Second)
	spent := ticks(t, cmd.Process.Pid) - before
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib := 0
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MiB at most, %d ms of CPU in 5 s at rest", float64(kib)/1024, 10*spent)
	if kib > 20<<10 || spent > 5 {
		t.Errorf("want at most 20 MiB and 50 ms of CPU in 5 s at rest, got %d KiB and %d ms", kib, 10*spent)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("want it to end well with a signal, got %v", err)
	}
}

// ticks of CPU, each 10 ms, that a process has used.
func ticks(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// Fields 14 and 15; the second may hold spaces and ends with a bracket.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	var user, system int
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatal(err)
	}
	return user + system
}
