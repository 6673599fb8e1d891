// SPDX-License-Identifier: Apache-2.0

package pgbackrest

import (
	"fmt"
	"strconv"
	"strings"
)

// An LSN is a place in the write-ahead log, in bytes from its begin.
type LSN uint64

// ParseLSN as PostgreSQL writes it, for instance 0/3000148.
func ParseLSN(text string) (LSN, error) {
	high, low, ok := strings.Cut(text, "/")
	h, errH := strconv.ParseUint(high, 16, 32)
	l, errL := strconv.ParseUint(low, 16, 32)
	if !ok || errH != nil || errL != nil {
		return 0, fmt.Errorf("cannot understand the place %q in the write-ahead log", text)
	}
	return LSN(h<<32 | l), nil
}

// String is how PostgreSQL writes it.
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint64(l)&0xffffffff) }

// segment is where a segment of the write-ahead log begins, by its name: timeline, file and part, of eight digits each.
func segment(name string) (LSN, bool) {
	if len(name) != 24 {
		return 0, false
	}
	file, errF := strconv.ParseUint(name[8:16], 16, 32)
	part, errP := strconv.ParseUint(name[16:], 16, 32)
	return LSN(file<<32 + part*SegmentSize), errF == nil && errP == nil
}

// Before is the last backup that is consistent by a place in the write-ahead log.
func (s Stanza) Before(at LSN) (Backup, bool) {
	for i := len(s.Backups) - 1; i >= 0; i-- {
		if stop, err := ParseLSN(s.Backups[i].LSN.Stop); err == nil && stop <= at && !s.Backups[i].Error {
			return s.Backups[i], true
		}
	}
	return Backup{}, false
}
