// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// InitCommand is the hidden command under which this program is the first process of a machine.
const InitCommand = "machine-init"

// Start boots a machine. Once its namespaces exist, wire is called with its pid to connect the network, and only then
// the machine starts its components. If the starting program dies before that, the machine ends by itself.
func Start(spec Spec, wire func(pid int) error) error {
	if err := spec.write(); err != nil {
		return err
	}
	// Groups of an earlier life would cost the kubelet three seconds each.
	if err := retry(2*time.Second, func() error { return removeGroups(spec.Name) }); err != nil {
		return err
	}
	if err := createGroups(spec.Name); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	log, err := os.OpenFile(spec.LogFile("init"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open the log of machine %q: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }()

	cmd := exec.Command(self, InitCommand, spec.file())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true,
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	permission, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("cannot talk to machine %q: %w", spec.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start machine %q: %w", spec.Name, err)
	}
	// The starting program may live on for a while; then it is the one to take note of the end.
	defer func() { go func() { _ = cmd.Wait() }() }()

	err = func() error {
		proc, err := identify(cmd.Process.Pid)
		if err != nil {
			return err
		}
		if err := proc.write(spec.Dir); err != nil {
			return err
		}
		if err := wire(proc.PID); err != nil {
			return err
		}
		if _, err := permission.Write([]byte{'\n'}); err != nil {
			return fmt.Errorf("cannot start machine %q: %w: see %s", spec.Name, err, spec.LogFile("init"))
		}
		return permission.Close()
	}()
	if err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	return nil
}

// Stop shuts the machine in dir down and waits for its end: gracefully, or like a pulled plug when grace is zero.
func Stop(dir, name string, grace time.Duration) error {
	if proc := recorded(dir); proc.Alive() {
		if grace > 0 {
			if err := proc.Signal(syscall.SIGTERM); err != nil {
				return err
			}
		}
		if grace == 0 || !proc.wait(grace) {
			if err := proc.Signal(syscall.SIGKILL); err != nil {
				return err
			}
			if !proc.wait(10 * time.Second) {
				return fmt.Errorf("cannot end machine %q: process %d does not die", name, proc.PID)
			}
		}
	}
	if err := os.Remove(filepath.Join(dir, "process.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot forget the process of machine %q: %w", name, err)
	}
	// The kernel takes a moment to empty the groups of processes that it has just killed.
	return retry(5*time.Second, func() error { return removeGroups(name) })
}

func retry(timeout time.Duration, fn func() error) error {
	end := time.Now().Add(timeout)
	for {
		err := fn()
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Load returns the description of the machine in dir, as it was last started.
func Load(dir string) (Spec, error) { return readSpec(Spec{Dir: dir}.file()) }
