// SPDX-License-Identifier: Apache-2.0

// Package binlog reads which transactions a binary log has and when they were committed. It understands the events that have this and
// skips all others, so a log of any size takes one pass and little memory.
//
// mysqlbinlog would decode each row of each transaction for it, and writes it for people, in another form in each series. The events that
// are read here are the interface of replication between series.
package binlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// ErrDamaged says that a log is not as a server wrote it. What was read before counts.
var ErrDamaged = errors.New("it is damaged")

// ErrTorn says that a log ends within an event. It is an ErrDamaged.
var ErrTorn = fmt.Errorf("%w: it ends within an event", ErrDamaged)

// A Transaction of a log.
type Transaction struct {
	// Server or group that numbered the transaction, with a Tag if it has one, and its Number.
	Server, Tag string
	Number      int64
	// Committed is when the client's server committed it, to the microsecond. It is the same in the logs of all members.
	Committed time.Time
}

// String is how MySQL writes it.
func (t Transaction) String() string {
	if t.Tag == "" {
		return fmt.Sprintf("%s:%d", t.Server, t.Number)
	}
	return fmt.Sprintf("%s:%s:%d", t.Server, t.Tag, t.Number)
}

// Set with only this transaction.
func (t Transaction) Set() (gtid.Set, error) {
	var b gtid.Builder
	err := b.Add(t.Server, t.Tag, t.Number, t.Number)
	return b.Set(), err
}

// Info is what a log has.
type Info struct {
	// Previous has the transactions that its server had executed before it, and Set its own.
	Previous, Set gtid.Set
	// First and Last are when the earliest and the latest of its transactions were committed; zero when it has none.
	First, Last time.Time
	// Began is when the server began the log, to the second.
	Began time.Time
	// Closed reports that the server wrote the end of the log. It does not after a crash.
	Closed bool
}

// ReadFile reads what the log at a path has. With ErrDamaged it has what came before.
func ReadFile(path string) (Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return Info{}, fmt.Errorf("cannot read a binary log: %w", err)
	}
	defer func() { _ = f.Close() }()
	return Read(f)
}

// Head reads only what had been executed before the log at a path, and when it began.
func Head(path string) (Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return Info{}, fmt.Errorf("cannot read a binary log: %w", err)
	}
	defer func() { _ = f.Close() }()
	s := scanner{from: bufio.NewReader(f)}
	if err := s.scan(func() bool { return false }); err != nil {
		return Info{}, fmt.Errorf("cannot read a binary log: %w", err)
	}
	return s.info, nil
}

// Read what a log has. With ErrDamaged it has what came before.
func Read(from io.Reader) (Info, error) {
	var set gtid.Builder
	s := scanner{from: bufio.NewReaderSize(from, 1<<20)}
	err := s.scan(func() bool {
		if t := s.at; t != nil {
			s.bad = set.Add(t.Server, t.Tag, t.Number, t.Number)
			if s.info.First.IsZero() || t.Committed.Before(s.info.First) {
				s.info.First = t.Committed
			}
			if t.Committed.After(s.info.Last) {
				s.info.Last = t.Committed
			}
		}
		return true
	})
	s.info.Set = set.Set()
	if err != nil {
		return s.info, fmt.Errorf("cannot read a binary log: %w", err)
	}
	return s.info, nil
}

// Each transaction of the log at a path, in the order of the log, until a function returns false.
func Each(path string, each func(Transaction) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read a binary log: %w", err)
	}
	defer func() { _ = f.Close() }()
	s := scanner{from: bufio.NewReaderSize(f, 1<<20)}
	if err := s.scan(func() bool { return s.at == nil || each(*s.at) }); err != nil {
		return fmt.Errorf("cannot read a binary log: %w", err)
	}
	return nil
}

// UntilFile reads what had been executed with and before a transaction of the log at a path. It is all of the log if the log has no such.
func UntilFile(path string, mark gtid.Set) (gtid.Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return gtid.Set{}, fmt.Errorf("cannot read a binary log: %w", err)
	}
	defer func() { _ = f.Close() }()
	var set gtid.Builder
	s := scanner{from: bufio.NewReaderSize(f, 1<<20)}
	err = s.scan(func() bool {
		if s.at == nil {
			return true
		}
		s.bad = set.Add(s.at.Server, s.at.Tag, s.at.Number, s.at.Number)
		one, err := s.at.Set()
		return err == nil && !mark.Contains(one)
	})
	if err != nil {
		return gtid.Set{}, fmt.Errorf("cannot read a binary log: %w", err)
	}
	return s.info.Previous.Union(set.Set()), nil
}

const (
	magic      = "\xfebin"
	encrypted  = "\xfdbin"
	headerSize = 19
	// longest event that is read. Previous_gtids may be large; others that are read are short.
	longest = 64 << 20
)

// Types of events.
const (
	typeStop     = 3
	typeRotate   = 4
	typeFormat   = 15
	typeGTID     = 33
	typePrevious = 35
	typeTagged   = 42
)

// A scanner goes through the events of a log.
type scanner struct {
	from *bufio.Reader
	info Info
	// at is the transaction that begins here; nil at the head of the log.
	at *Transaction
	// bad is what was wrong with it.
	bad error
	// sums reports whether events end with a checksum.
	sums bool
}

// begin at the beginning, which says whether this is a log that can be read.
func (s *scanner) begin() error {
	start := make([]byte, len(magic))
	if _, err := io.ReadFull(s.from, start); err != nil {
		return fmt.Errorf("it has no beginning: %w", torn(err))
	}
	switch string(start) {
	case magic:
	case encrypted:
		return errors.New("the server encrypts it, which is not supported: set binlog_encryption to OFF")
	default:
		return fmt.Errorf("%w: it is no binary log", ErrDamaged)
	}
	return nil
}

// scan the log. each is called behind the head, and at each transaction; scanning ends when it returns false.
func (s *scanner) scan(each func() bool) error {
	if err := s.begin(); err != nil {
		return err
	}
	header := make([]byte, headerSize)
	for first := true; ; first = false {
		_, err := io.ReadFull(s.from, header)
		if errors.Is(err, io.EOF) && !first {
			return nil
		}
		if err != nil {
			return torn(err)
		}
		kind, size := header[4], int64(binary.LittleEndian.Uint32(header[9:]))-headerSize
		switch {
		case size < 0, first != (kind == typeFormat):
			return fmt.Errorf("%w: an event cannot be what it says", ErrDamaged)
		case first:
			s.info.Began = time.Unix(int64(binary.LittleEndian.Uint32(header)), 0).UTC()
		case kind == typeStop, kind == typeRotate:
			s.info.Closed = true
		case kind != typeGTID && kind != typeTagged && kind != typePrevious:
			if _, err := io.CopyN(io.Discard, s.from, size); err != nil {
				return torn(err)
			}
			continue
		}
		body, err := s.body(header, size)
		if err != nil {
			return err
		}
		more, err := s.event(kind, body, each)
		if err != nil || !more {
			return err
		}
	}
}

// event of a type that is read. It reports whether scanning continues.
func (s *scanner) event(kind byte, body []byte, each func() bool) (bool, error) {
	var err error
	switch kind {
	case typePrevious:
		if s.info.Previous, err = previous(body); err != nil {
			return false, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return each(), nil
	case typeGTID:
		s.at, err = untagged(body)
	case typeTagged:
		s.at, err = tagged(body)
	default:
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	more := each()
	if s.bad != nil {
		return false, fmt.Errorf("%w: %w", ErrDamaged, s.bad)
	}
	return more, nil
}

// body of an event behind its header, without its checksum, which must be right.
func (s *scanner) body(header []byte, size int64) ([]byte, error) {
	if size > longest {
		return nil, fmt.Errorf("%w: an event of %d bytes", ErrDamaged, size)
	}
	body := make([]byte, min(size, 4<<10))
	if _, err := io.ReadFull(s.from, body); err != nil {
		return nil, torn(err)
	}
	if rest := size - int64(len(body)); rest > 0 { // it is there before room is made for it
		more, err := io.ReadAll(io.LimitReader(s.from, rest))
		if err != nil || int64(len(more)) < rest {
			return nil, torn(errors.Join(err, io.ErrUnexpectedEOF))
		}
		body = slices.Concat(body, more)
	}
	if header[4] == typeFormat {
		// The algorithm is in front of the checksum, which this event has even if it is none.
		if len(body) < 5 || body[len(body)-5] > 1 {
			return nil, fmt.Errorf("%w: its format cannot be understood", ErrDamaged)
		}
		s.sums = body[len(body)-5] == 1
	}
	if !s.sums {
		return body, nil
	}
	end := len(body) - crc32.Size
	if end < 0 {
		return nil, fmt.Errorf("%w: an event without its checksum", ErrDamaged)
	}
	head := header
	if header[4] == typeFormat {
		// The server marks a log that is in use, outside of the checksum.
		head = append([]byte{}, header...)
		head[17] &^= 1
	}
	if crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, body[:end]) != binary.LittleEndian.Uint32(body[end:]) {
		return nil, fmt.Errorf("%w: the checksum of an event is wrong", ErrDamaged)
	}
	return body[:end], nil
}

// torn is the error for an end in the wrong place.
func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTorn
	}
	return err
}
