// SPDX-License-Identifier: Apache-2.0

package ranks

import (
	"bytes"
	"io"
	"os"
	"syscall"
)

const (
	// maxProgress is the longest line of a file of progress. A longer one is skipped.
	maxProgress = 64 << 10
	// maxLook is how much is read at once, so that a rank that writes without end does not hold up others.
	maxLook = 4 << 20
	// punchEvery is after how many bytes the space of what was read is given back.
	punchEvery = 8 << 20
)

// fallocPunch makes a hole in a file and keeps its size: FALLOC_FL_PUNCH_HOLE and FALLOC_FL_KEEP_SIZE of Linux.
const fallocPunch = 0x02 | 0x01

// A reading of the lines that a rank appends to its file of progress. The rank makes the file whenever it likes.
type reading struct {
	path    string
	file    *os.File
	line    []byte
	skip    bool
	read    int64
	punched int64
}

// follow reads what was added and calls a function for each whole line.
func (f *reading) follow(each func(line []byte)) {
	if f.file == nil {
		// Write access is only for the holes. A pipe or a device would never end.
		file, err := os.OpenFile(f.path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			return
		}
		if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
			_ = file.Close()
			return
		}
		f.file = file
	}
	if info, err := f.file.Stat(); err == nil && info.Size() < f.read {
		// The rank wrote it again from its beginning.
		if _, err := f.file.Seek(0, io.SeekStart); err != nil {
			return
		}
		f.read, f.punched, f.line, f.skip = 0, 0, f.line[:0], false
	}
	chunk := make([]byte, 32<<10)
	for look := 0; look < maxLook; look += len(chunk) {
		n, err := f.file.Read(chunk)
		f.read += int64(n)
		f.split(chunk[:n], each)
		if err != nil || n == 0 {
			break
		}
	}
	if f.read-f.punched >= punchEvery {
		// A file system that cannot do it keeps the space.
		_ = syscall.Fallocate(int(f.file.Fd()), fallocPunch, f.punched, f.read-f.punched)
		f.punched = f.read
	}
}

func (f *reading) split(chunk []byte, each func(line []byte)) {
	for len(chunk) > 0 {
		end := bytes.IndexByte(chunk, '\n')
		part := chunk
		if end >= 0 {
			part = chunk[:end]
		}
		if len(f.line)+len(part) > maxProgress {
			f.skip, part = true, nil
		}
		f.line = append(f.line, part...)
		if end < 0 {
			return
		}
		if !f.skip && len(f.line) > 0 {
			each(f.line)
		}
		f.line, f.skip = f.line[:0], false
		chunk = chunk[end+1:]
	}
}

func (f *reading) close() {
	if f.file != nil {
		_ = f.file.Close()
	}
	_ = os.Remove(f.path)
}
