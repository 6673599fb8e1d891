// SPDX-License-Identifier: Apache-2.0

package binlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/google/uuid"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

var errShort = errors.New("an event is shorter than what it has")

// previous transactions of a Previous_gtids event: a number of sources, each with its intervals. Since 8.3 sources may have tags, which the
// first and the last byte of that number show.
func previous(body []byte) (gtid.Set, error) {
	r := reader{rest: body}
	n := r.fixed(8)
	withTags := n>>56 == 1
	if withTags {
		n = n >> 8 & (1<<48 - 1)
	}
	var set gtid.Builder
	for ; n > 0 && r.err == nil; n-- {
		server, tag := r.uuid(), ""
		if withTags {
			tag = r.text()
		}
		for m := r.fixed(8); m > 0 && r.err == nil; m-- {
			first, end := r.fixed(8), r.fixed(8)
			if r.err == nil {
				r.err = set.Add(server, tag, int64(first), int64(end)-1) //nolint:gosec // Add refuses what is no number.
			}
		}
	}
	return set.Set(), r.err
}

// untagged transaction of a Gtid event.
func untagged(body []byte) (*Transaction, error) {
	r := reader{rest: body}
	r.bytes(1)                                                     // flags
	t := &Transaction{Server: r.uuid(), Number: int64(r.fixed(8))} //nolint:gosec // Set refuses what is no number.
	r.bytes(1 + 8 + 8)                                             // of the logical clock
	at := r.fixed(7)
	// The highest bit shows that the time of another server follows: the one that the client committed at.
	if at&(1<<55) != 0 {
		at &^= 1 << 55
		if original := r.fixed(7); original != 0 { // 0: unknown
			at = original
		}
	}
	t.Committed = moment(at)
	return t, r.err
}

// Fields of a tagged Gtid event, by their numbers.
const (
	fieldFlags = iota
	fieldServer
	fieldNumber
	fieldTag
	fieldLastCommitted
	fieldSequence
	fieldCommitted
	fieldOriginal
)

// tagged transaction of a Gtid_tagged event, whose fields come in order, each behind its number. Those at their default do not come.
func tagged(body []byte) (*Transaction, error) {
	r := reader{rest: body}
	if v := r.varint(); r.err == nil && v != 1 {
		return nil, fmt.Errorf("a transaction in the unknown form %d", v)
	}
	r.varint() // size
	r.varint() // last field that may not be ignored
	t := &Transaction{}
	var committed, original uint64
	for len(r.rest) > 0 && r.err == nil {
		switch field := r.varint(); field {
		case fieldFlags, fieldLastCommitted, fieldSequence:
			r.varint()
		case fieldServer:
			var id uuid.UUID
			for i := range id {
				id[i] = byte(r.varint())
			}
			t.Server = id.String()
		case fieldNumber:
			t.Number = int64(r.varint() >> 1) //nolint:gosec // The lowest bit is the sign.
		case fieldTag:
			t.Tag = r.text()
		case fieldCommitted:
			committed = r.varint()
		case fieldOriginal:
			original = r.varint()
		default:
			r.rest = nil // the rest is of no use here
		}
	}
	if original != 0 {
		committed = original
	}
	t.Committed = moment(committed)
	return t, r.err
}

// moment by its microseconds since 1970.
func moment(micro uint64) time.Time {
	return time.UnixMicro(int64(micro)).UTC() //nolint:gosec // A time beyond all clocks stays one.
}

// A reader takes values from the beginning of an event. After an error all are zero.
type reader struct {
	rest []byte
	err  error
}

// bytes as they are.
func (r *reader) bytes(n uint64) []byte {
	if r.err == nil && uint64(len(r.rest)) < n {
		r.err = errShort
	}
	if r.err != nil {
		return nil
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

// fixed number of n bytes, the lowest first.
func (r *reader) fixed(n uint64) uint64 {
	var raw [8]byte
	copy(raw[:], r.bytes(n))
	return binary.LittleEndian.Uint64(raw[:])
}

// varint is a number with as many bytes behind the first one as that has ones at its low end.
func (r *reader) varint() uint64 {
	first := r.bytes(1)
	if first == nil {
		return 0
	}
	more := bits.TrailingZeros8(^first[0])
	rest := r.fixed(uint64(more)) //nolint:gosec // It is at most 8.
	if more >= 7 {                // nothing of the first byte is left
		return rest
	}
	return uint64(first[0]>>(more+1)) | rest<<(7-more)
}

// text behind its length.
func (r *reader) text() string { return string(r.bytes(r.varint())) }

func (r *reader) uuid() string {
	var id uuid.UUID
	copy(id[:], r.bytes(16))
	return id.String()
}
