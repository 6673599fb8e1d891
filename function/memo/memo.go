// SPDX-License-Identifier: Apache-2.0

// Package memo remembers what was made of bytes, so that most calls, which are about what has not changed, need not make it.
package memo

import (
	"crypto/sha256"
	"sync"
)

// A Memo of values by the content that they were made of. It holds no more than a number of bytes: with more it begins from nothing.
// It may be used by several goroutines at once.
type Memo[V any] struct {
	limit int

	mutex sync.Mutex
	known map[[sha256.Size]byte]V
	bytes int
}

// New memo without memories. The limit is in bytes.
func New[V any](limit int) *Memo[V] {
	return &Memo[V]{limit: limit, known: map[[sha256.Size]byte]V{}}
}

// Of is what create makes of some content: it must depend on nothing else. Size of the value is in bytes. A value is shared, so
// nothing may change it. One that comes with an error, or is larger than the memo, is not remembered.
func (m *Memo[V]) Of(content []byte, create func() (v V, size int, err error)) (V, error) {
	key := sha256.Sum256(content)
	m.mutex.Lock()
	v, ok := m.known[key]
	m.mutex.Unlock()
	if ok {
		return v, nil
	}
	v, size, err := create()
	if err != nil || size > m.limit {
		return v, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if _, twice := m.known[key]; !twice {
		m.bytes += size
	}
	if m.bytes > m.limit {
		clear(m.known)
		m.bytes = size
	}
	m.known[key] = v
	return v, nil
}
