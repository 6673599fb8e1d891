// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/capstan-dev/capstan/images/member/process"
)

// asContainer makes the test's own binary the first process of a container that then becomes the program: it holds the JSON of a
// container.
const asContainer = "CAPSTAN_TEST_CONTAINER"

// user of the containers, as the image has it.
const user = 999

// A container as a kubelet would make it: the image's root file system, read-only, and what is mounted to it. It has namespaces
// of its own for mounts, processes, shared memory, its name, and its network.
type container struct {
	Root    string            `json:"root"`    // of the image
	Scratch string            `json:"scratch"` // an empty folder for the layer above it
	Network string            `json:"network"` // file of its namespace
	Program string            `json:"program"` // takes the place of the image's
	Mounts  map[string]string `json:"mounts"`  // from a path in the container to a folder outside
	Hosts   string            `json:"hosts"`   // content of /etc/hosts
	DNS     string            `json:"dns"`     // address of the name server
	Host    string            `json:"host"`    // name
	Args    []string          `json:"args"`    // of the program
}

// become the container's program. It returns only with an error.
func become(raw string) error {
	var c container
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := enterNetwork(c.Network); err != nil {
		return err
	}
	if err := c.assemble(); err != nil {
		return err
	}
	if err := errors.Join(unix.Sethostname([]byte(c.Host)), unix.Setgroups(nil), unix.Setresgid(user, user, user),
		unix.Setresuid(user, user, user)); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	env := append([]string{"HOME=/data", "PATH=/usr/local/bin:/usr/bin:/usr/sbin", "LANG=C.UTF-8"}, inside(os.Environ())...)
	return syscall.Exec("/usr/local/bin/capstan-member", append([]string{"capstan-member"}, c.Args...), env)
}

// inside is what of an environment a container sees.
func inside(env []string) []string {
	var out []string
	for _, v := range env {
		for _, prefix := range []string{"POD_", "CAPSTAN_", "KUBERNETES_"} {
			if strings.HasPrefix(v, prefix) && !strings.HasPrefix(v, asContainer) {
				out = append(out, v)
			}
		}
	}
	return out
}

// assemble the file systems, and make them the root.
func (c container) assemble() error {
	root := filepath.Join(c.Scratch, "root")
	if err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("tmpfs", c.Scratch, "tmpfs", 0, "size=64m,mode=0755"),
	); err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	for _, d := range []string{root, filepath.Join(c.Scratch, "upper"), filepath.Join(c.Scratch, "work")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", c.Root, c.Scratch, c.Scratch)
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	in := func(path string) string { return filepath.Join(root, path) }
	for _, d := range []string{"/proc", "/dev", "/dev/shm", "/run", "/tmp", "/usr/local/bin"} {
		if err := os.MkdirAll(in(d), 0o755); err != nil {
			return err
		}
	}
	for path, options := range map[string]string{"/run": "mode=0755", "/tmp": "mode=1777", "/dev": "mode=0755"} {
		if err := unix.Mount("tmpfs", in(path), "tmpfs", unix.MS_NOSUID, "size=64m,"+options); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	for name, device := range map[string][2]uint32{"null": {1, 3}, "zero": {1, 5}, "random": {1, 8}, "urandom": {1, 9}} {
		path := in("/dev/" + name)
		err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(device[0], device[1])))
		if err := errors.Join(err, os.Chmod(path, 0o666)); err != nil {
			return err
		}
	}
	for _, d := range []string{"/dev/shm", "/run/capstan", "/run/mysqld"} {
		if err := errors.Join(os.MkdirAll(in(d), 0o755), unix.Mount("tmpfs", in(d), "tmpfs", unix.MS_NOSUID, "size=128m,mode=0770,uid=999,gid=999")); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
	}
	if err := unix.Mount("proc", in("/proc"), "proc", 0, ""); err != nil {
		return fmt.Errorf("proc: %w", err)
	}
	for name, content := range map[string]string{"hosts": c.Hosts, "resolv.conf": "nameserver " + c.DNS + "\n"} {
		if err := os.WriteFile(in("/etc/"+name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	program := in("/usr/local/bin/capstan-member")
	if f, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755); err != nil {
		return err
	} else if err := errors.Join(f.Close(), unix.Mount(c.Program, program, "", unix.MS_BIND, "")); err != nil {
		return fmt.Errorf("program: %w", err)
	}
	for to, from := range c.Mounts {
		if err := errors.Join(os.MkdirAll(in(to), 0o755), unix.Mount(from, in(to), "", unix.MS_BIND, "")); err != nil {
			return fmt.Errorf("%s: %w", to, err)
		}
	}
	if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, options); err != nil {
		return fmt.Errorf("read-only: %w", err)
	}
	old := in("/tmp/old")
	if err := os.Mkdir(old, 0o700); err != nil {
		return err
	}
	if err := errors.Join(unix.PivotRoot(root, old), os.Chdir("/"), unix.Unmount("/tmp/old", unix.MNT_DETACH)); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	return nil
}

// A running container.
type running struct {
	t    *testing.T
	c    container
	env  []string
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
}

// start a container.
func (c container) start(t *testing.T, log string, env []string) *running {
	t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, c: c, env: env, log: f, done: make(chan struct{})}
	r.cmd = exec.Command("/proc/self/exe")
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

// enter runs a program in the container, as a hook of the kubelet would.
func (r *running) enter(args ...string) (string, error) {
	all := append([]string{
		"--target", strconv.Itoa(r.cmd.Process.Pid), "--mount", "--pid", "--ipc", "--uts", "--net", "--root", "--wd",
		"--setgid", strconv.Itoa(user), "--setuid", strconv.Itoa(user), "--",
	}, args...)
	cmd := exec.Command("nsenter", all...)
	cmd.Env = append([]string{"HOME=/tmp", "PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin"}, r.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// terminate as a kubelet does: the hook, then the signal; it returns when the container has stopped.
func (r *running) terminate(hook bool) {
	r.t.Helper()
	if hook {
		if out, err := r.enter("/usr/local/bin/capstan-member", "handover"); err != nil {
			r.t.Errorf("the hook failed: %v: %s", err, out)
		}
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.done:
	case <-time.After(60 * time.Second):
		r.t.Errorf("%s did not stop within a minute", r.c.Host)
		r.kill()
	}
}

// ended reports whether the container has.
func (r *running) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// kill everything in the container at once.
func (r *running) kill() {
	_ = r.cmd.Process.Kill()
	<-r.done
}

// processes of the container, by their numbers outside of it.
func (r *running) processes() []process.Process {
	first, _ := process.Get(r.cmd.Process.Pid)
	return append(process.Descendants(r.cmd.Process.Pid), first)
}

// signal processes of the container that a test picks.
func (r *running) signal(s syscall.Signal, pick func(process.Process) bool) int {
	n := 0
	for _, p := range r.processes() {
		if pick == nil || pick(p) {
			_ = syscall.Kill(p.PID, s)
			n++
		}
	}
	return n
}

// server's number outside of the container.
func (r *running) server() int {
	for _, p := range r.processes() {
		if p.Name == "mysqld" && p.Parent == r.cmd.Process.Pid {
			return p.PID
		}
	}
	return 0
}

// rootfs of the image.
func rootfs(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("CAPSTAN_CI") != "" {
			t.Fatal("containers need root")
		}
		t.Skip("containers need root")
	}
	if dir := os.Getenv("CAPSTAN_MYSQL_ROOTFS"); dir != "" {
		return dir
	}
	cmd := exec.Command("go", "-C", "hack", "run", "./member-image", "rootfs", "mysql")
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot unpack the image: %v", err)
	}
	return strings.TrimSpace(string(out))
}
