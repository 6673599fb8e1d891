// SPDX-License-Identifier: Apache-2.0

// Package output has what a program writes, for tests that read it meanwhile.
package output

import (
	"bytes"
	"sync"
)

// A Buffer takes what several goroutines write, and shows all of it at any time. The zero value is empty and ready.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write more. It never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is all that was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
