// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestAProcessThatIsNotBuriedIsLeft(t *testing.T) {
	k, err := NewKeeper()
	if err != nil {
		t.Fatal(err)
	}
	status, err := k.Start(exec.Command("sleep", "0.2"))
	if err != nil {
		t.Fatal(err)
	}
	k.mu.Lock() // Nothing is buried now. Its children would be handed over to this process.
	for limit := time.Now().Add(20 * time.Second); living(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("it never ended")
		}
	}
	swept := make(chan bool, 1)
	go func() { swept <- k.Sweep() }()
	select {
	case clean := <-swept:
		if clean {
			t.Error("a process whose children may not be listed yet counts as none")
		}
	case <-time.After(200 * time.Millisecond): // It waits for the burial.
	}
	k.mu.Unlock()
	<-status
}

// living reports whether a child lives. One that has ended and is not buried does not.
func living() bool {
	for _, pid := range candidates() {
		raw, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err == nil && !bytes.Contains(raw[bytes.LastIndexByte(raw, ')'):], []byte(" Z ")) {
			return true
		}
	}
	return false
}
