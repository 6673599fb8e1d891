// SPDX-License-Identifier: Apache-2.0

// Package netns runs code inside the network namespace of another process.
package netns

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Of returns the path of the network namespace of a process.
func Of(pid int) string {
	return fmt.Sprintf("/proc/%d/ns/net", pid)
}

// Do runs fn on a thread of its own inside the namespace at path. Sockets that fn opens and processes that it starts
// belong to that namespace for good; goroutines that it starts do not.
func Do(path string, fn func() error) error {
	return onThread(func() error {
		if err := Enter(path); err != nil {
			return err
		}
		return fn()
	})
}

// DoNew runs fn inside a new, empty network namespace that ends with it.
func DoNew(fn func() error) error {
	return onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("cannot create a network namespace: %w", err)
		}
		return fn()
	})
}

// Enter moves the calling thread, which must be locked, into the namespace at path.
func Enter(path string) error {
	ns, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot open network namespace: %w", err)
	}
	defer func() { _ = ns.Close() }()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("cannot enter network namespace %q: %w", path, err)
	}
	return nil
}

// Dialer returns a dial function for HTTP transports that connects to addr inside the namespace at path, for
// any requested address. The addr must be an IP address and a port: names would be resolved outside.
func Dialer(path, addr string) func(ctx context.Context, network, _ string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		var conn net.Conn
		err := Do(path, func() error {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			conn = c
			return err
		})
		return conn, err
	}
}

// onThread never unlocks its thread, so the runtime ends the thread with the goroutine and no other code can inherit
// the namespace.
func onThread(fn func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		result <- fn()
	}()
	return <-result
}
