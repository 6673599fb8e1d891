// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// What is needed of the format of binary logs: version 4, which has been the only one since MySQL 5.0.
const (
	magic = "\xfebin"
	// Each event has a header: a time in seconds, its type, a server, its size with the header, its end in the log, and flags.
	headerSize   = 19
	typeAt       = 4
	sizeAt       = 9
	mostEvent    = 2 << 30
	eventGTID    = 33
	eventTagged  = 42
	gtidServerAt = 1
	gtidNumberAt = gtidServerAt + 16
	// The numbers for parallel replay are in between.
	gtidCommitAt = gtidNumberAt + 8 + 17
	// commitSize is how many bytes a time of a commit has. Its highest bit says that another time follows.
	commitSize = 7
)

// errShort reports that an event ends before its end.
var errShort = errors.New("an event is too short")

// Transactions calls a function with each transaction of a binary log, in their order, and the time when its server committed it, to the
// microsecond. It ends when that returns an error.
func Transactions(file string, each func(one gtid.Set, at time.Time) error) error {
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReaderSize(f, 1<<20)
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(in, begin); err != nil || string(begin) != magic {
		return errors.New("it is no binary log")
	}
	header := make([]byte, headerSize)
	for {
		_, err := io.ReadFull(in, header)
		if errors.Is(err, io.EOF) {
			return nil
		}
		size := int64(binary.LittleEndian.Uint32(header[sizeAt:])) - headerSize
		if err != nil || size < 0 || size > mostEvent {
			return errShort
		}
		var read func([]byte) (gtid.Set, time.Time, error)
		switch header[typeAt] {
		case eventGTID:
			read = plainGTID
		case eventTagged:
			read = taggedGTID
		default:
			if _, err := in.Discard(int(size)); err != nil {
				return errShort
			}
			continue
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(in, body); err != nil {
			return errShort
		}
		one, at, err := read(body)
		if err != nil {
			return err
		}
		if err := each(one, at); err != nil {
			return err
		}
	}
}

func plainGTID(body []byte) (gtid.Set, time.Time, error) {
	if len(body) < gtidCommitAt+commitSize {
		return gtid.Set{}, time.Time{}, errShort
	}
	var raw [8]byte
	copy(raw[:], body[gtidCommitAt:gtidCommitAt+commitSize])
	at := binary.LittleEndian.Uint64(raw[:]) &^ (1 << (commitSize*8 - 1))
	return transaction(body[gtidServerAt:gtidNumberAt], "", int64(binary.LittleEndian.Uint64(body[gtidNumberAt:])), at) //nolint:gosec // It is below 1<<63.
}

// Fields of a transaction with a tag, by their numbers.
const (
	fieldServer = 1
	fieldNumber = 2
	fieldTag    = 3
	fieldCommit = 6
)

// taggedGTID reads a transaction with a tag. Its numbers take as many bytes as they need, and each field begins with its own number.
func taggedGTID(body []byte) (gtid.Set, time.Time, error) {
	r := fields{rest: body}
	r.number() // the version of the format
	r.number() // the size of all
	r.number() // the last field that must be understood
	var (
		server [16]byte
		tag    string
		no, at uint64
	)
	for r.err == nil && at == 0 {
		switch field := r.number(); field {
		case fieldServer:
			for i := range server {
				server[i] = byte(r.number()) //nolint:gosec // It is one byte.
			}
		case fieldTag:
			tag = string(r.text())
		case fieldNumber:
			no = r.number() >> 1 // the lowest bit is the sign
		case fieldCommit:
			at = r.number()
		default:
			r.number()
		}
	}
	if r.err != nil {
		return gtid.Set{}, time.Time{}, r.err
	}
	return transaction(server[:], tag, int64(no), at) //nolint:gosec // It is below 1<<63.
}

func transaction(server []byte, tag string, no int64, micros uint64) (gtid.Set, time.Time, error) {
	id, err := uuid.FromBytes(server)
	if err != nil {
		return gtid.Set{}, time.Time{}, err
	}
	if tag != "" {
		tag += ":"
	}
	one, err := gtid.Parse(fmt.Sprintf("%s:%s%d", id, tag, no))
	return one, time.UnixMicro(int64(micros)).UTC(), err //nolint:gosec // It is below 1<<56.
}

// fields that are left of an event.
type fields struct {
	rest []byte
	err  error
}

// number whose first byte begins, at its lowest bit, with as many ones as more bytes follow.
func (r *fields) number() uint64 {
	if len(r.rest) == 0 {
		r.err = errShort
		return 0
	}
	more := bits.TrailingZeros8(^r.rest[0])
	if len(r.rest) < 1+more {
		r.err = errShort
		return 0
	}
	var raw [8]byte
	copy(raw[:], r.rest[1:1+more])
	value := binary.LittleEndian.Uint64(raw[:])
	if more < 8 {
		value = value<<(7-more) | uint64(r.rest[0])>>(more+1)
	}
	r.rest = r.rest[1+more:]
	return value
}

// text of a length.
func (r *fields) text() []byte {
	n := r.number()
	if r.err != nil || n > uint64(len(r.rest)) {
		r.err = errShort
		return nil
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}
