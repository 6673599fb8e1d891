// SPDX-License-Identifier: Apache-2.0

// Package logs turns the text that programs write into lines of JSON, in the form that the program of a member itself writes.
package logs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// An Entry is one line of JSON. Time, Level and Message are as package log/slog has them.
type Entry struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Message string    `json:"msg"`

	// Source is the program that wrote it. The program of a member leaves it out.
	Source string `json:"source"`

	// Severity as the source writes it, and Code of the message: an SQLSTATE, or a code of the source's own.
	Severity string `json:"severity,omitempty"`
	Code     string `json:"code,omitempty"`

	// PID of the process, or the number of the thread.
	PID int `json:"pid,omitempty"`

	// Database, User, Host and Application of the session.
	Database    string `json:"database,omitempty"`
	User        string `json:"user,omitempty"`
	Host        string `json:"host,omitempty"`
	Application string `json:"application,omitempty"`

	// Parts of the message by the source's words in lower case, such as detail, hint and statement.
	Parts map[string]string `json:"parts,omitempty"`

	// part that the next line without a beginning continues; "" for the message. more are such lines, size is how many bytes of them the entry
	// has, and cut that others are left out.
	part string
	more []byte
	size int
	cut  bool
	// until is the mark of an Unfinished line.
	until string
}

// Add a part to the entry, which further lines continue.
func (e *Entry) Add(part, text string) {
	e.settle()
	if e.Parts == nil {
		e.Parts = map[string]string{}
	}
	e.Parts[part], e.part = text, part
}

// Continue what was added last with another line. A statement of a client may have any number of lines: beyond the longest they are left out.
func (e *Entry) Continue(text string) {
	if e.cut {
		return
	}
	if room := longest - e.size; len(text) >= room {
		text, e.cut = text[:max(0, room-1)]+" …", true
	}
	e.size += len(text) + 1
	e.more = append(append(e.more, '\n'), text...)
}

// settle the lines that continue a part.
func (e *Entry) settle() {
	if e.part == "" {
		e.Message += string(e.more)
	} else {
		e.Parts[e.part] += string(e.more)
	}
	e.more = nil
}

// Levels of log/slog by severities of programs, in upper case. Any other is INFO.
var levels = map[string]string{
	"DEBUG": "DEBUG", "DEBUG1": "DEBUG", "DEBUG2": "DEBUG", "DEBUG3": "DEBUG", "DEBUG4": "DEBUG", "DEBUG5": "DEBUG", "NOISE": "DEBUG",
	"WARNING": "WARN", "ERROR": "ERROR", "FATAL": "ERROR", "PANIC": "ERROR", "CRITICAL": "ERROR",
}

// Level of a severity.
func Level(severity string) string {
	if l := levels[strings.ToUpper(severity)]; l != "" {
		return l
	}
	return "INFO"
}

// A Reader understands a line. It returns a new entry, or nil when the line continues the last one and was added to that. The last one is nil
// when there is none, and an unknown line is Raw then.
type Reader func(line string, last *Entry) *Entry

// Unfinished is what a Reader returns for a line that ends before it says all of where it is from. It is read again together with the lines
// that follow, up to one with a mark in it.
func Unfinished(mark string) *Entry { return &Entry{until: mark} }

// Raw is a line that no program is known to write in this form.
func Raw(line string) *Entry {
	return &Entry{Time: time.Now().UTC(), Level: "INFO", Message: line, Source: "output"}
}

// longest line, and longest sum of the lines that continue an entry, in bytes. What is beyond is left out: a program must not fill the memory of
// the member, nor wait for it.
const longest = 64 << 10

// A Writer writes what it gets as lines of JSON. Lines that are JSON already pass. It never fails: a log that no program takes must not stop a
// server.
type Writer struct {
	To   io.Writer
	Read Reader

	rest []byte
	// cut reports that the rest of this line is left out.
	cut  bool
	last *Entry
	// begun is what is Unfinished, until a line with a mark.
	begun []byte
	until string
}

// Write lines. A message of several lines is one entry as long as its program writes them at once.
func (w *Writer) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		line, rest, found := bytes.Cut(b, []byte("\n"))
		b = rest
		if room := longest - len(w.rest); len(line) > room {
			line, w.cut = line[:room], true
		}
		w.rest = append(w.rest, line...)
		if !found {
			return n, nil // The line has no end yet.
		}
		text := string(w.rest)
		if w.cut {
			text += " …"
		}
		w.rest, w.cut = w.rest[:0], false
		w.line(text)
	}
	w.flush()
	return n, nil
}

func (w *Writer) line(text string) {
	if len(w.begun) > 0 {
		w.begun = append(append(w.begun, '\n'), text...)
		if !strings.Contains(text, w.until) && len(w.begun) <= longest {
			return
		}
		text, w.begun = string(w.begun), nil
	} else if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		w.flush()
		_, _ = io.WriteString(w.To, text+"\n")
		return
	}
	if strings.TrimSpace(text) == "" && w.last == nil {
		return
	}
	next := w.Read(text, w.last)
	switch {
	case next == nil && w.last != nil:
		return
	case next != nil && next.until != "" && len(text) <= longest:
		w.begun, w.until = []byte(text), next.until
		return
	case next != nil && next.until != "":
		next = Raw(text)
	}
	w.flush()
	if next == nil {
		next = Raw(text)
	}
	w.last = next
}

func (w *Writer) flush() {
	if w.last == nil {
		return
	}
	w.last.settle()
	raw, err := json.Marshal(w.last)
	w.last = nil
	if err == nil {
		_, _ = w.To.Write(append(raw, '\n'))
	}
}

// Pipe returns a file for programs to write to. What they write comes out as lines of JSON, for as long as this program runs. A program may
// outlive the one that started it, and keeps the file.
func Pipe(to io.Writer, read Reader) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe for logs: %w", err)
	}
	go func() { _, _ = io.Copy(&Writer{To: to, Read: read}, r) }()
	return w, nil
}

// Format of logs.
type Format string

// JSON is the format of logs as lines of JSON. Any other is the text of each program.
const JSON Format = "JSON"
