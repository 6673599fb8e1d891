// SPDX-License-Identifier: Apache-2.0

// Package container runs the program of a member image in a container as a kubelet would make it, for tests of the members of every engine:
// without a container runtime, from the root file system of the image.
//
//	func TestMain(m *testing.M) { os.Exit(container.Main(m)) }
//
//	r := container.Spec{Run: "mysqld", Root: container.Root(t, "mysql"), Program: container.Program, …, Args: []string{"run"}}.Start(t, log, env)
//	r.Terminate(true)
//
// The binary of the test itself is the first process of each container: it assembles the file systems, and then becomes the program.
// Containers need root.
package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// asContainer is the variable that makes the test's own binary the first process of a container: it holds the JSON of a Spec.
const asContainer = "CAPSTAN_TEST_CONTAINER"

// User is the number of the user and of the group of the containers, as the images have them.
const User = 999

// program of every member image.
const program = "/usr/local/bin/capstan-member"

// A Spec is a container as a kubelet would make it: the image's root file system, read-only, and what is mounted to it. It has namespaces
// of its own for mounts, processes, shared memory and its name.
type Spec struct {
	// Run is the folder of the server below /run, such as mysqld. It is a volume in memory.
	Run string `json:"run"`
	// Root is the file system of the image, and Scratch an empty folder for the layer above it.
	Root    string `json:"root"`
	Scratch string `json:"scratch"`
	// Network is the file of a network namespace. Without one the network is the machine's.
	Network string `json:"network"`
	// Program takes the place of the image's.
	Program string `json:"program"`
	// Mounts from a path in the container to a folder outside.
	Mounts map[string]string `json:"mounts"`
	// Hosts is the content of /etc/hosts, and DNS the address of the name server, or empty for the image's /etc/resolv.conf.
	Hosts string `json:"hosts"`
	DNS   string `json:"dns"`
	// Host is the name of the container.
	Host string `json:"host"`
	// Args of the program.
	Args []string `json:"args"`
}

// become the container's program. It returns only with an error.
func become(raw string) error {
	var s Spec
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return fmt.Errorf("cannot read the container: %w", err)
	}
	if s.Network != "" {
		runtime.LockOSThread()
		if err := EnterNetwork(s.Network); err != nil {
			return err
		}
	}
	if err := s.assemble(); err != nil {
		return err
	}
	if err := errors.Join(unix.Sethostname([]byte(s.Host)), unix.Setgroups(nil), unix.Setresgid(User, User, User),
		unix.Setresuid(User, User, User), unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); err != nil {
		return fmt.Errorf("cannot drop the rights of root: %w", err)
	}
	env := append([]string{"HOME=/data", "PATH=/usr/local/bin:/usr/bin:/usr/sbin", "LANG=C.UTF-8"}, inside(os.Environ())...)
	if err := syscall.Exec(program, append([]string{filepath.Base(program)}, s.Args...), env); err != nil { //nolint:gosec // The tests give the arguments.
		return fmt.Errorf("cannot run the program: %w", err)
	}
	return nil
}

// inside is what of an environment a container sees.
func inside(env []string) []string {
	var out []string
	for _, v := range env {
		for _, prefix := range []string{"POD_", "CAPSTAN_", "AWS_", "KUBERNETES_", "PATRONI_"} {
			if strings.HasPrefix(v, prefix) && !strings.HasPrefix(v, asContainer) {
				out = append(out, v)
			}
		}
	}
	return out
}

// EnterNetwork of a namespace with this thread.
func EnterNetwork(namespace string) error {
	f, err := os.Open(namespace) //nolint:gosec // A test made it.
	if err != nil {
		return fmt.Errorf("cannot open a network: %w", err)
	}
	if err := errors.Join(unix.Setns(int(f.Fd()), unix.CLONE_NEWNET), f.Close()); err != nil {
		return fmt.Errorf("cannot enter the network %s: %w", namespace, err)
	}
	return nil
}

// assemble the file systems, and make them the root.
func (s Spec) assemble() error {
	root := filepath.Join(s.Scratch, "root")
	if err := s.layers(root); err != nil {
		return err
	}
	for _, step := range []func(string) error{s.memory, devices, s.names, s.binary, s.mounts, enter} {
		if err := step(root); err != nil {
			return err
		}
	}
	return nil
}

// layers of the root: the image, and a scratch layer in memory.
func (s Spec) layers(root string) error {
	if err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("tmpfs", s.Scratch, "tmpfs", 0, "size=64m,mode=0755"),
	); err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	for _, d := range []string{root, filepath.Join(s.Scratch, "upper"), filepath.Join(s.Scratch, "work")} {
		if err := os.Mkdir(d, 0o755); err != nil { //nolint:gosec // The user of the container reads it.
			return fmt.Errorf("scratch: %w", err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", s.Root, s.Scratch, s.Scratch)
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	return nil
}

// memory has the file systems that are volumes of a pod or made by the kubelet, and the file systems of the kernel.
func (s Spec) memory(root string) error {
	const own = "size=128m,mode=0770,uid=999,gid=999"
	for _, m := range []struct{ path, options string }{
		{"/run", "size=64m,mode=0755"},
		{"/tmp", "size=64m,mode=1777"},
		{"/dev", "size=64m,mode=0755"},
		{"/dev/shm", own},
		{"/run/capstan", own},
		{"/run/" + s.Run, own},
	} {
		at := filepath.Join(root, m.path)
		if err := errors.Join(os.MkdirAll(at, 0o755), unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID, m.options)); err != nil { //nolint:gosec // As in an image.
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	proc := filepath.Join(root, "proc")
	if err := errors.Join(os.MkdirAll(proc, 0o755), unix.Mount("proc", proc, "proc", 0, "")); err != nil { //nolint:gosec // As in an image.
		return fmt.Errorf("proc: %w", err)
	}
	return nil
}

// devices that a container has.
func devices(root string) error {
	for name, device := range map[string][2]uint32{"null": {1, 3}, "zero": {1, 5}, "random": {1, 8}, "urandom": {1, 9}} {
		at := filepath.Join(root, "dev", name)
		err := unix.Mknod(at, unix.S_IFCHR|0o666, int(unix.Mkdev(device[0], device[1]))) //nolint:gosec // Small numbers.
		if err := errors.Join(err, os.Chmod(at, 0o666)); err != nil {                    //nolint:gosec // Everybody writes to /dev/null.
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// names that a container finds others by.
func (s Spec) names(root string) error {
	files := map[string]string{"hosts": s.Hosts}
	if s.DNS != "" {
		files["resolv.conf"] = "nameserver " + s.DNS + "\n"
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(content), 0o644); err != nil { //nolint:gosec // The user of the container reads it.
			return fmt.Errorf("cannot write names: %w", err)
		}
	}
	return nil
}

// binary of the program in place of the image's.
func (s Spec) binary(root string) error {
	at := filepath.Join(root, program)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // As in an image.
		return fmt.Errorf("program: %w", err)
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // The same.
	if err != nil {
		return fmt.Errorf("program: %w", err)
	}
	if err := errors.Join(f.Close(), unix.Mount(s.Program, at, "", unix.MS_BIND, "")); err != nil {
		return fmt.Errorf("program: %w", err)
	}
	return nil
}

// mounts of folders outside. The root is read-only from then on.
func (s Spec) mounts(root string) error {
	for to, from := range s.Mounts {
		at := filepath.Join(root, to)
		if err := errors.Join(os.MkdirAll(at, 0o755), unix.Mount(from, at, "", unix.MS_BIND, "")); err != nil { //nolint:gosec // As in an image.
			return fmt.Errorf("%s: %w", to, err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", s.Root, s.Scratch, s.Scratch)
	if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, options); err != nil {
		return fmt.Errorf("read-only: %w", err)
	}
	return nil
}

// enter the root, and leave the machine's.
func enter(root string) error {
	old := filepath.Join(root, "tmp", "old")
	if err := os.Mkdir(old, 0o700); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	if err := errors.Join(unix.PivotRoot(root, old), os.Chdir("/"), unix.Unmount("/tmp/old", unix.MNT_DETACH)); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	return nil
}
