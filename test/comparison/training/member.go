// SPDX-License-Identifier: Apache-2.0

//go:build comparison && linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// asMember makes this program the first process of a member. It holds the JSON of a member.
const asMember = "CAPSTAN_COMPARISON_MEMBER"

// asLauncher makes this program the one that starts the ranks of a member without a launcher. It holds the index of the member.
const asLauncher = "CAPSTAN_COMPARISON_LAUNCHER"

// Where things are in a member.
const (
	sharedDir   = "/shared"
	scriptsDir  = "/scripts"
	programsDir = "/programs"
	scratchDir  = "/scratch"
	self        = programsDir + "/training"
	members     = 2
	processes   = 2
)

// A member is what would be a pod: namespaces of its own, the root file system of the image, and a folder that all members share.
type member struct {
	Index int `json:"index"`
	// Scratch is an empty folder, over which the layer in memory is mounted.
	Scratch  string   `json:"scratch"`
	Rootfs   string   `json:"rootfs"`
	Shared   string   `json:"shared"`
	Scripts  string   `json:"scripts"`
	Programs string   `json:"programs"`
	Env      []string `json:"env"`
	Command  []string `json:"command"`
}

func host(index int) string    { return "member-" + strconv.Itoa(index) }
func address(index int) string { return "10.213.0." + strconv.Itoa(index+1) }
func network(index int) string { return fmt.Sprintf("capstan-%d-%d", os.Getpid(), index) }

// connect makes a network for each member, and a cable between them. The function that it returns removes both.
func connect(ctx context.Context) (func(), error) {
	ip := func(args ...string) error {
		if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("cannot run ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	remove := func() {
		for index := range members {
			_ = exec.CommandContext(context.WithoutCancel(ctx), "ip", "netns", "delete", network(index)).Run() //nolint:gosec // The same.
		}
	}
	var err error
	for index := range members {
		err = errors.Join(err, ip("netns", "add", network(index)))
	}
	err = errors.Join(err, ip("-n", network(0), "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", network(1)))
	for index := range members {
		err = errors.Join(err, ip("-n", network(index), "link", "set", "lo", "up"), ip("-n", network(index), "link", "set", "eth0", "up"),
			ip("-n", network(index), "address", "add", address(index)+"/24", "dev", "eth0"))
	}
	if err != nil {
		remove()
	}
	return remove, err
}

// start a member. Everything in it ends with its first process.
func (m member) start(log string) (*exec.Cmd, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // A file of this run.
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	c := exec.CommandContext(context.Background(), "/proc/self/exe")
	c.Env = []string{asMember + "=" + string(raw), "NETWORK=" + network(m.Index)}
	c.Stdout, c.Stderr = f, f
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS, Pdeathsig: syscall.SIGKILL,
	}
	return c, c.Start()
}

// become the first process of a member. It returns only with an error.
func become(raw string) error {
	var m member
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		return err
	}
	runtime.LockOSThread()
	ns, err := os.Open("/run/netns/" + os.Getenv("NETWORK"))
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET), ns.Close(), unix.Sethostname([]byte(host(m.Index))), m.assemble()); err != nil {
		return err
	}
	env := append([]string{"PATH=/usr/local/bin:/usr/bin:/usr/sbin", "HOME=/scratch", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1", "USE_LIBUV=0", "OMP_NUM_THREADS=1"}, m.Env...)
	return syscall.Exec(m.Command[0], m.Command, env) //nolint:gosec // The command is from here.
}

// assemble the file systems: the image's, below a layer in memory, and what a pod mounts.
func (m member) assemble() error {
	root := filepath.Join(m.Scratch, "root")
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("tmpfs", m.Scratch, "tmpfs", 0, "mode=0755"),
	)
	for _, dir := range []string{"root", "upper", "work"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(m.Scratch, dir), 0o755)) //nolint:gosec // As in an image.
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%[2]s/upper,workdir=%[2]s/work", m.Rootfs, m.Scratch)
	if err := errors.Join(err, unix.Mount("overlay", root, "overlay", 0, layers)); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	var hosts strings.Builder
	hosts.WriteString("127.0.0.1 localhost\n")
	for index := range members {
		fmt.Fprintf(&hosts, "%s %[2]s.crew %[2]s\n", address(index), host(index))
	}
	for _, at := range []struct{ to, from, kind string }{
		{"proc", "proc", "proc"},
		{"dev", "/dev", ""},
		{sharedDir, m.Shared, ""},
		{scriptsDir, m.Scripts, ""},
		{programsDir, m.Programs, ""},
		{scratchDir, "tmpfs", "tmpfs"},
	} {
		to := filepath.Join(root, at.to)
		flags := uintptr(0)
		if at.kind == "" {
			flags = unix.MS_BIND | unix.MS_REC
		}
		if err := errors.Join(os.MkdirAll(to, 0o755), unix.Mount(at.from, to, at.kind, flags, "")); err != nil { //nolint:gosec // The same.
			return fmt.Errorf("%s: %w", at.to, err)
		}
	}
	return errors.Join(os.WriteFile(filepath.Join(root, "etc/hosts"), []byte(hosts.String()), 0o600), unix.Chroot(root), os.Chdir("/"))
}

// launch the ranks of a member without a launcher: as soon as one of them ends, it ends the others, and itself with the same code.
func launch(index int, command []string) int {
	type ended struct{ code int }
	ends := make(chan ended, processes)
	var all []*exec.Cmd
	for local := range processes {
		c := exec.CommandContext(context.Background(), command[0], command[1:]...) //nolint:gosec // The command is from here.
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		c.Env = append(os.Environ(), "RANK="+strconv.Itoa(index*processes+local), "LOCAL_RANK="+strconv.Itoa(local),
			"WORLD_SIZE="+strconv.Itoa(members*processes), "LOCAL_WORLD_SIZE="+strconv.Itoa(processes), "MASTER_ADDR="+host(0), "MASTER_PORT=29400")
		if err := c.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		all = append(all, c)
		go func() {
			_ = c.Wait()
			ends <- ended{c.ProcessState.ExitCode()}
		}()
	}
	for range processes {
		if end := <-ends; end.code != 0 {
			for _, c := range all {
				_ = c.Process.Kill()
			}
			return 1
		}
	}
	return 0
}

// A keeper starts members again when they end, as a Job makes pods again: after a pause that doubles.
type keeper struct {
	mu      sync.Mutex
	over    bool
	running [members]*exec.Cmd
	starts  [members]int
	done    sync.WaitGroup
}

// keep a member until it ends with 0 or the run is over.
func (k *keeper) keep(m member, log string, pauses []time.Duration, over <-chan struct{}) {
	k.done.Go(func() {
		runtime.LockOSThread() // Members end with the thread that has started them.
		for n := 0; ; n++ {
			k.mu.Lock()
			if k.over {
				k.mu.Unlock()
				return
			}
			c, err := m.start(log)
			if err != nil {
				fmt.Fprintln(os.Stderr, "cannot start a member:", err)
				k.mu.Unlock()
				return
			}
			k.running[m.Index] = c
			k.starts[m.Index]++
			k.mu.Unlock()
			if c.Wait() == nil {
				return
			}
			select {
			case <-time.After(pauses[min(n, len(pauses)-1)]):
			case <-over:
				return
			}
		}
	})
}

// count how often each member was started.
func (k *keeper) count() [members]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.starts
}

// kill a member.
func (k *keeper) kill(index int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.running[index].Process.Kill()
}

// end all members.
func (k *keeper) end() {
	k.mu.Lock()
	k.over = true
	for _, c := range k.running {
		if c != nil {
			_ = c.Process.Kill()
		}
	}
	k.mu.Unlock()
	k.done.Wait()
}
