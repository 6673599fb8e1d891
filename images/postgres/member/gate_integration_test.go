// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A gate stands before a server and lets connections through until it is shut.
type gate struct {
	address, behind string

	mu    sync.Mutex
	shut  bool
	conns map[net.Conn]bool
}

func newGate(t *testing.T, behind string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	g := &gate{address: l.Addr().String(), behind: behind, conns: map[net.Conn]bool{}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go g.pass(conn)
		}
	}()
	return g
}

// pass a connection on.
func (g *gate) pass(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	g.mu.Lock()
	shut := g.shut
	if !shut {
		g.conns[conn] = true
	}
	g.mu.Unlock()
	if shut {
		return
	}
	defer func() {
		g.mu.Lock()
		delete(g.conns, conn)
		g.mu.Unlock()
	}()
	behind, err := net.Dial("tcp", g.behind)
	if err != nil {
		return
	}
	defer func() { _ = behind.Close() }()
	go func() {
		_, _ = io.Copy(behind, conn)
		_ = behind.Close()
	}()
	_, _ = io.Copy(conn, behind)
}

// set whether the gate is shut. That ends the connections that there are.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for c := range g.conns {
			_ = c.Close()
		}
	}
}
