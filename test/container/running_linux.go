// SPDX-License-Identifier: Apache-2.0

package container

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/images/member/process"
)

// A Running container.
type Running struct {
	t    *testing.T
	spec Spec
	env  []string
	cmd  *exec.Cmd
	done chan struct{}
}

// Start a container, whose output is appended to the file log. It ends with Terminate or Kill, and not with the test.
func (s Spec) Start(t *testing.T, log string, env []string) *Running {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // A file of the test.
	if err != nil {
		t.Fatal(err)
	}
	r := &Running{t: t, spec: s, env: env, done: make(chan struct{}), cmd: exec.CommandContext(context.WithoutCancel(t.Context()), "/proc/self/exe")}
	r.cmd.Env = append([]string{asContainer + "=" + string(raw)}, env...)
	r.cmd.Stdout, r.cmd.Stderr = f, f
	r.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS, Setpgid: true,
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatalf("cannot start a container: %v", err)
	}
	go func() {
		_ = r.cmd.Wait()
		_ = f.Close()
		close(r.done)
	}()
	return r
}

// Enter runs a program in the container, as a hook of the kubelet would, and returns what it prints.
func (r *Running) Enter(args ...string) (string, error) {
	all := append([]string{
		"--target", strconv.Itoa(r.PID()), "--mount", "--pid", "--ipc", "--uts", "--net", "--root", "--wd",
		"--setgid", strconv.Itoa(User), "--setuid", strconv.Itoa(User), "--",
	}, args...)
	cmd := exec.CommandContext(context.WithoutCancel(r.t.Context()), "nsenter", all...) //nolint:gosec // The tests give the arguments.
	cmd.Env = append([]string{"HOME=/tmp", "PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin"}, r.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err //nolint:wrapcheck // The test says what it was for.
}

// Terminate as a kubelet does: the hook, then the signal. It returns when the container has ended, and kills it after a minute.
func (r *Running) Terminate(hook bool) {
	r.t.Helper()
	if hook {
		if out, err := r.Enter(program, "handover"); err != nil {
			r.t.Errorf("the hook failed: %v: %s", err, out)
		}
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.done:
	case <-time.After(time.Minute):
		r.t.Errorf("%s did not stop within a minute", r.spec.Host)
		r.Kill()
	}
}

// Done is closed when the container has ended.
func (r *Running) Done() <-chan struct{} { return r.done }

// Ended reports whether the container has ended.
func (r *Running) Ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Kill everything in the container at once.
func (r *Running) Kill() {
	_ = r.cmd.Process.Kill()
	<-r.done
}

// PID is the number of the first process outside of the container.
func (r *Running) PID() int { return r.cmd.Process.Pid }

// Processes of the container, by their numbers outside of it.
func (r *Running) Processes() []process.Process {
	first, _ := process.Get(r.PID())
	return append(process.Descendants(r.PID()), first)
}

// Child is the number, outside of the container, of the process with a name that the program has started, or 0.
func (r *Running) Child(name string) int {
	for _, p := range r.Processes() {
		if p.Name == name && p.Parent == r.PID() {
			return p.PID
		}
	}
	return 0
}

// Signal the processes of the container that a test picks, or all of them with nil. It returns how many these were.
func (r *Running) Signal(s syscall.Signal, pick func(process.Process) bool) int {
	n := 0
	for _, p := range r.Processes() {
		if pick == nil || pick(p) {
			_ = syscall.Kill(p.PID, s)
			n++
		}
	}
	return n
}

// Root file system of the image of an engine, which is unpacked unless the variable CAPSTAN_<ENGINE>_ROOTFS names it.
func Root(t *testing.T, engine string) string {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("CAPSTAN_CI") != "" {
			t.Fatal("containers need root")
		}
		t.Skip("containers need root")
	}
	if dir := os.Getenv("CAPSTAN_" + strings.ToUpper(engine) + "_ROOTFS"); dir != "" {
		return dir
	}
	gomod, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("cannot find the module: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "-C", "hack", "run", "./member-image", "rootfs", engine)
	cmd.Dir = filepath.Dir(strings.TrimSpace(string(gomod)))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot unpack the image: %v", err)
	}
	return strings.TrimSpace(string(out))
}
