// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"net"
	"testing"
	"time"
)

// TestDial: a pod that was just started is let through only after a while.
func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil { // From here on it refuses.
		t.Fatal(err)
	}
	again := time.AfterFunc(pause+pause/2, func() {
		if l, err := net.Listen("tcp", address); err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
	})
	defer again.Stop()
	conn, err := Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("it was not tried again: %v", err)
	}
	_ = conn.Close()
}
