// SPDX-License-Identifier: Apache-2.0

// Package memo remembers what was made of bytes, so that most calls, which are about what has not changed, need not make it.
package memo

import (
	"crypto/sha256"
	"sync"
)

// A Memo of values by the content that they were made of. It holds no more than a number of bytes: with more it forgets some, whichever they
// are. Contents come in turns, and what is forgotten by age would always be what comes next. It may be used by several goroutines at once.
type Memo[V any] struct {
	limit int

	mutex sync.Mutex
	known map[[sha256.Size]byte]memory[V]
	bytes int
}

// A memory of a value, and its size in bytes.
type memory[V any] struct {
	value V
	size  int
}

// New memo without memories. The limit is in bytes.
func New[V any](limit int) *Memo[V] {
	return &Memo[V]{limit: limit, known: map[[sha256.Size]byte]memory[V]{}}
}

// Of is what create makes of some content: it must depend on nothing else. Size of the value is in bytes. A value is shared, so
// nothing may change it. One that comes with an error, or is larger than the memo, is not remembered.
func (m *Memo[V]) Of(content []byte, create func() (v V, size int, err error)) (V, error) {
	key := sha256.Sum256(content)
	m.mutex.Lock()
	known, ok := m.known[key]
	m.mutex.Unlock()
	if ok {
		return known.value, nil
	}
	v, size, err := create()
	if err != nil || size > m.limit {
		return v, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.forget(key)
	for other := range m.known { // Go begins somewhere.
		if m.bytes+size <= m.limit {
			break
		}
		m.forget(other)
	}
	m.known[key] = memory[V]{value: v, size: size}
	m.bytes += size
	return v, nil
}

// forget what was made of the content of a key, if it is known. The mutex must be held.
func (m *Memo[V]) forget(key [sha256.Size]byte) {
	m.bytes -= m.known[key].size
	delete(m.known, key)
}
