// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"regexp"
	"strings"
)

// maxLine is how much of a line is parsed, in bytes. The rest passes through unread.
const maxLine = 8 << 10

// escapes of terminals: colours, moves of the cursor, titles.
var escapes = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\^_])")

// A Splitter makes lines of output in bounded memory. A carriage return ends a line, too, as progress bars use it.
type Splitter struct {
	line []byte
}

// Split calls a function for each line that ended, as clean text: without escapes, as valid UTF-8, at most 8 KiB. Empty lines are left
// out.
func (s *Splitter) Split(chunk []byte, each func(line string)) {
	for len(chunk) > 0 {
		end := bytes.IndexAny(chunk, "\n\r")
		part := chunk
		if end >= 0 {
			part = chunk[:end]
		}
		s.line = append(s.line, part[:min(len(part), maxLine-len(s.line))]...)
		if end < 0 {
			return
		}
		s.Flush(each)
		chunk = chunk[end+1:]
	}
}

// Flush ends the last line, which has no end of its own.
func (s *Splitter) Flush(each func(line string)) {
	if text := clean(s.line); text != "" {
		each(text)
	}
	s.line = s.line[:0]
}

func clean(line []byte) string {
	text := string(line)
	if bytes.IndexByte(line, 0x1b) >= 0 {
		text = escapes.ReplaceAllString(text, "")
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text))
}

// Limits of a Tail.
const (
	tailLines = 20
	tailWidth = 400
)

// A Tail keeps the last lines of an output.
type Tail struct {
	lines []string
}

// Add a line.
func (t *Tail) Add(line string) {
	if len(line) > tailWidth {
		line = strings.ToValidUTF8(line[:tailWidth], "") + " …"
	}
	if len(t.lines) == tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, line)
}

// String is the last lines, at most so many bytes of them, whole lines only unless the last one alone is longer.
func (t *Tail) String(most int) string {
	size, from := 0, len(t.lines)
	for from > 0 && size+len(t.lines[from-1])+1 <= most {
		from--
		size += len(t.lines[from]) + 1
	}
	if from == len(t.lines) && from > 0 {
		last := t.lines[from-1]
		return strings.ToValidUTF8(last[:min(len(last), most)], "")
	}
	return strings.Join(t.lines[from:], "\n")
}
