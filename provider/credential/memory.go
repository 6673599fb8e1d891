// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// most traces that are remembered: 1.3 MB with what a map needs around them.
const most = 16384

// A trace is a keyed hash, which reveals nothing of what it was made from.
type trace [sha256.Size]byte

// A memory of what was found to fit. To check a hash costs as much as to make it, which is much by design (bcrypt of cost 10: 60
// ms), and an unchanged Credential is reconciled every ten minutes. It is forgotten with the process.
type memory struct {
	key [sha256.Size]byte

	mu   sync.Mutex
	seen map[trace]struct{}
}

func newMemory() *memory {
	m := &memory{seen: map[trace]struct{}{}}
	_, _ = rand.Read(m.key[:])
	return m
}

// trace of what belongs together.
func (m *memory) trace(parts ...[]byte) trace {
	h := hmac.New(sha256.New, m.key[:])
	for _, p := range parts {
		// With its length before it no part can pass for the end of another.
		_ = binary.Write(h, binary.BigEndian, uint64(len(p)))
		_, _ = h.Write(p)
	}
	return trace(h.Sum(nil))
}

func (m *memory) knows(t trace) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.seen[t]
	return ok
}

func (m *memory) learn(t trace) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.seen) >= most {
		clear(m.seen)
	}
	m.seen[t] = struct{}{}
}
