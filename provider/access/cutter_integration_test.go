// SPDX-License-Identifier: Apache-2.0

//go:build integration

package access

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A cutter passes connections on, until it has seen so many messages of the client.
type cutter struct {
	port int32

	mu       sync.Mutex
	left     int
	answered bool
	cut      bool
}

func newCutter(t *testing.T, to int32) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := &cutter{port: int32(l.Addr().(*net.TCPAddr).Port)}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go c.pass(in, fmt.Sprintf("127.0.0.1:%d", to))
		}
	}()
	return c
}

// arm to cut at a message: before the server has it, or before the client has the answer.
func (c *cutter) arm(at int, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.answered, c.cut = at, answered, false
}

func (c *cutter) fired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

func (c *cutter) pass(in net.Conn, to string) {
	defer func() { _ = in.Close() }()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	go func() {
		_, _ = io.Copy(in, out)
		_ = in.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if err != nil {
			return
		}
		c.mu.Lock()
		c.left--
		now, answered := c.left == 0, c.answered
		c.cut = c.cut || now
		c.mu.Unlock()
		if now && answered {
			_ = in.Close()
			_, _ = out.Write(buf[:n])
			time.Sleep(20 * time.Millisecond) // the server does it
			return
		}
		if now {
			return
		}
		if _, err := out.Write(buf[:n]); err != nil {
			return
		}
	}
}
