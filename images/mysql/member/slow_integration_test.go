// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// slowPort takes what a member's server sends to other members.
const slowPort = "15062"

// slow lets the server of a member send to other members at no more than some bytes per second. What it sends passes through a program
// that takes its time, because the kernel may not be able to.
func (c *cluster) slow(letter string, perSecond int) {
	c.t.Helper()
	name := c.link() + letter
	args := []string{"netns", "exec", name, "iptables", "-t", "nat", "-A", "OUTPUT", "-p", "tcp", "--dport", strconv.Itoa(mysqlmember.PortMembers),
		"-m", "owner", "--uid-owner", strconv.Itoa(user), "-j", "REDIRECT", "--to-ports", slowPort}
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		c.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
	l, err := listenIn(c.netns(letter), ":"+slowPort)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = l.Close() })
	p := &pace{perSecond: perSecond}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go c.pass(letter, from.(*net.TCPConn), p)
		}
	}()
}

// pass a connection on to where it was made to.
func (c *cluster) pass(letter string, from *net.TCPConn, p *pace) {
	defer func() { _ = from.Close() }()
	address, err := madeTo(from)
	if err != nil {
		return
	}
	to, err := dialIn(c.netns(letter), address)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	// A long queue would be in the kernel otherwise.
	_, _ = from.SetReadBuffer(256<<10), to.(*net.TCPConn).SetWriteBuffer(256<<10)
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(from, to); done <- struct{}{} }()
	go func() {
		block := make([]byte, 16<<10)
		for {
			n, err := from.Read(block)
			p.wait(n)
			if _, werr := to.Write(block[:n]); err != nil || werr != nil {
				break
			}
		}
		done <- struct{}{}
	}()
	<-done
}

// A pace that all connections of a member share.
type pace struct {
	mu        sync.Mutex
	perSecond int
	free      time.Time
}

func (p *pace) wait(bytes int) {
	p.mu.Lock()
	if now := time.Now(); p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(bytes) * time.Second / time.Duration(p.perSecond))
	until := p.free
	p.mu.Unlock()
	time.Sleep(time.Until(until))
}

// madeTo is the address that a connection was made to before it was redirected.
func madeTo(c *net.TCPConn) (string, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return "", err
	}
	var a unix.RawSockaddrInet4
	var failed error
	err = raw.Control(func(fd uintptr) {
		size := uint32(unsafe.Sizeof(a))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_IP, unix.SO_ORIGINAL_DST, uintptr(unsafe.Pointer(&a)), uintptr(unsafe.Pointer(&size)), 0)
		if errno != 0 {
			failed = errno
		}
	})
	if err != nil || failed != nil {
		return "", fmt.Errorf("cannot find out where a connection was made to: %w %w", err, failed)
	}
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&a.Port))[:])
	return net.JoinHostPort(net.IP(a.Addr[:]).String(), strconv.Itoa(int(port))), nil
}

// dialIn a network namespace.
func dialIn(netns, address string) (net.Conn, error) {
	type result struct {
		c   net.Conn
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		err := enterNetwork(netns)
		var c net.Conn
		if err == nil {
			c, err = net.Dial("tcp4", address)
		}
		done <- result{c, err}
	}()
	r := <-done
	return r.c, r.err
}

// TestLargeTransaction on a slow network: it is committed, and no client loses its session meanwhile.
func TestLargeTransaction(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	for _, l := range c.letters {
		c.volume(l, 2500)
	}
	begin(t, c, "a", "b", "c")
	leader := c.leader()
	before := len(c.events)
	c.slow(leader, 10<<20)
	conn := c.connect(leader, consumer, "shop")
	defer func() { _ = conn.Close() }()
	reader := c.connect(leader, consumer, "shop")
	defer func() { _ = reader.Close() }()
	ctx, stop := context.WithCancel(t.Context())
	var reads, failed int
	var all sync.WaitGroup
	all.Go(func() {
		// One session, as a client with a pool has it.
		one, err := reader.Conn(ctx)
		for err == nil && ctx.Err() == nil {
			var n int
			if err = one.QueryRowContext(ctx, "SELECT 1").Scan(&n); err == nil {
				reads++
			} else if ctx.Err() == nil {
				failed++
				t.Errorf("a client lost its session: %v", err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	if _, err := conn.ExecContext(t.Context(), "CREATE TABLE large (id INT PRIMARY KEY, data LONGBLOB)"); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	patient := c.inside(leader, "SET SESSION cte_max_recursion_depth = 200000; SET SESSION sql_mode = ''; INSERT INTO shop.large WITH RECURSIVE s (n) AS "+
		"(SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 110000) SELECT n, RANDOM_BYTES(1024) FROM s; SELECT 'committed'")
	t.Logf("%s after %s", patient, time.Since(begun).Round(100*time.Millisecond))
	stop()
	all.Wait()
	t.Logf("%d reads, %d failed", reads, failed)
	if patient != "committed" {
		t.Errorf("a transaction of 110 MB ended with %q", patient)
	}
	raw, _ := exec.Command("grep", "-c", "a majority hears from this member", c.logs+"/log-"+leader).CombinedOutput()
	t.Logf("the leader was witnessed %s times", strings.TrimSpace(string(raw)))
	if l := c.leader(); l != leader || len(c.events) != before {
		t.Errorf("%s was the leader, and now %s is: %v", leader, l, c.events[before:])
	}
}
