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

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
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

// cutOff ends the connections of the provider at messages that it sends, before the server has it or before its answer is back, in every
// phase of a turn: with what the Secret says a client logs in all the time, and the next look goes on.
func (s *turnstile) cutOff(logIn func(user, password string) error) {
	s.t.Helper()
	direct := s.cr.Spec.ForProvider.Server.Port
	c := newCutter(s.t, *direct)
	works := func(what string) {
		s.t.Helper()
		o := &corev1.Secret{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: "shop", Name: consumerSecret}, o); err != nil {
			s.t.Fatal(err)
		}
		s.cr.Spec.ForProvider.Server.Port = direct
		if err := logIn(string(o.Data["username"]), string(o.Data["password"])); err != nil {
			s.t.Fatalf("%s: %v", what, err)
		}
	}

	// Every message that is cut off takes a turn, so it is every fourth, and of those that arrive others than of those that do
	// not.
	for first, answered := range []bool{false, true} {
		for at := 1 + 2*first; ; at += 4 {
			cut := false
			for _, phase := range []struct {
				name   string
				change func()
				done   func(v1alpha1.AlternatingLogin) bool
			}{
				{"Stage", s.stage, func(a v1alpha1.AlternatingLogin) bool { return a.Accepted == s.token() }},
				{"Flip", func() { s.flip(time.Minute) }, func(a v1alpha1.AlternatingLogin) bool { return a.Retiring != "" }},
				{"End", func() { s.pass(2 * time.Minute) }, func(a v1alpha1.AlternatingLogin) bool { return a.Retiring == "" }},
			} {
				what := fmt.Sprintf("%s, message %d, sent %t", phase.name, at, answered)
				phase.change()
				c.arm(at, answered)
				s.cr.Spec.ForProvider.Server.Port = &c.port
				// The provider was started again.
				s.c.proofs, s.c.idle = newProofs(s.clock), newIdleness(s.clock)
				_, _ = s.reconcile()
				cut = c.fired() || cut
				works(what)
				for n := 0; ; n++ {
					if _, err := s.reconcile(); err != nil {
						s.t.Fatalf("%s: %v", what, err)
					}
					if phase.done(s.told()) {
						break
					}
					if n > 5 {
						s.t.Fatalf("%s: it does not go on: %+v", what, s.told())
					}
				}
				works(what)
			}
			if !cut {
				s.t.Logf("%d messages, cut off when the server had them: %t", at-1, answered)
				break
			}
			if at > 160 {
				s.t.Fatal("no end of messages")
			}
		}
	}
}
