// SPDX-License-Identifier: Apache-2.0

package dumpfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxStatement is how long a statement may be, in bytes. Rows of COPY are not part of one.
const maxStatement = 64 << 20

// maxWords is how many words at the beginning of a statement are known.
const maxWords = 8

// A Script is SQL that pg_dump wrote, read statement by statement. psql is not used for it: it would carry out commands that are in the
// script, such as one that runs a shell.
type Script struct {
	from *bufio.Reader
	line int
	// escapes: a backslash in a constant is an escape, because the script sets standard_conforming_strings to off.
	escapes bool

	text  []byte
	begun int
	first []string
	last  []string
	word  []byte
	// parens and blocks that are open. A block is a body that begins with BEGIN ATOMIC, or a CASE in one.
	parens, blocks int
}

// A Statement of a script.
type Statement struct {
	// SQL without comments and the semicolon, and the Line that it begins in.
	SQL  string
	Line int
	// Rows reports that rows follow, which Script.Rows reads.
	Rows bool

	first, last []string
}

// NewScript reads a script.
func NewScript(from io.Reader) *Script {
	s := &Script{from: bufio.NewReaderSize(from, 64<<10), line: 1}
	if mark, err := s.from.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
		_, _ = s.from.Discard(3)
	}
	return s
}

// Next statement. The error is io.EOF at the end. Rows of the statement before have to be read first.
func (s *Script) Next() (Statement, error) {
	s.text, s.begun, s.first, s.last, s.word, s.parens, s.blocks = s.text[:0], 0, nil, nil, nil, 0, 0
	for {
		c, err := s.from.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			s.ends()
			if len(s.text) > 0 {
				return Statement{}, fmt.Errorf("line %d: a statement has no end, so the file is cut off: copy or dump it again", s.begun)
			}
			return Statement{}, io.EOF
		case err != nil:
			return Statement{}, err
		}
		ended, err := s.take(c)
		if err != nil {
			return Statement{}, err
		}
		if len(s.text) > maxStatement {
			return Statement{}, fmt.Errorf("line %d: a statement is longer than %d MiB: dump again in the format Custom, or without --inserts", s.begun, maxStatement>>20)
		}
		if ended && len(s.text) > 0 {
			return s.statement()
		}
	}
}

// statement that has ended.
func (s *Script) statement() (Statement, error) {
	st := Statement{SQL: strings.TrimSpace(string(s.text)), Line: s.begun, first: s.first, last: s.last}
	if st.begins("SET", "STANDARD_CONFORMING_STRINGS") {
		s.escapes = slices.Contains(st.last, "OFF") || strings.HasSuffix(strings.ToLower(st.SQL), "'off'")
	}
	if st.begins("COPY") {
		n := len(st.last)
		// The server takes both words for the same.
		if n < 2 || st.last[n-2] != "FROM" || st.last[n-1] != "STDIN" && st.last[n-1] != "STDOUT" {
			return st, fmt.Errorf("line %d: COPY is used in a way that pg_dump does not: dump again", st.Line)
		}
		st.Rows = true
		return st, s.restOfLine()
	}
	return st, nil
}

// restOfLine behind a COPY, after which rows begin.
func (s *Script) restOfLine() error {
	rest, err := s.from.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("line %d: rows are missing, so the file is cut off: copy or dump it again", s.line)
	}
	s.line++
	if strings.TrimSpace(string(rest)) != "" {
		return fmt.Errorf("line %d: rows do not begin in a line of their own: dump again", s.line-1)
	}
	return nil
}

// take a byte, and report whether a statement has ended with it.
func (s *Script) take(c byte) (ended bool, err error) {
	if taken, err := s.takeWhole(c); taken || err != nil {
		return false, err
	}
	if isWord(c) {
		s.word = append(s.word, c)
		s.put(c)
		return false, nil
	}
	s.ends()
	switch c {
	case '\n':
		s.line++
	case ';':
		if s.parens == 0 && s.blocks == 0 {
			return true, nil
		}
	case '(':
		s.parens++
	case ')':
		s.parens = max(0, s.parens-1)
	}
	s.put(c)
	return false, nil
}

// takeWhole takes what begins with a byte and has an end of its own: a comment, a command, a constant or an identifier in quotes. It reports
// whether something of that kind begins.
func (s *Script) takeWhole(c byte) (taken bool, err error) {
	switch {
	case c == '-' && s.next('-'):
		s.ends()
		s.put(' ')
		return true, s.lineComment()
	case c == '/' && s.next('*'):
		s.ends()
		s.put(' ')
		return true, s.comment()
	case c == '\\':
		s.ends()
		return true, s.command()
	case c == '\'':
		prefix := len(s.word) == 1 // of another kind of constant, such as E'…'
		escapes := s.escapes || prefix && (s.word[0] == 'e' || s.word[0] == 'E')
		if prefix {
			s.word = nil
		}
		s.ends()
		return true, s.quoted('\'', escapes)
	case c == '"':
		s.ends()
		return true, s.identifier()
	case c == '$' && len(s.word) == 0:
		return true, s.dollar()
	default:
		return false, nil
	}
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80 || c == '$'
}

// put a byte into the statement, if it has begun or begins now.
func (s *Script) put(c byte) {
	if len(s.text) == 0 {
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			return
		}
		s.begun = s.line
	}
	s.text = append(s.text, c)
}

// ends a word, if there is one.
func (s *Script) ends() {
	if len(s.word) == 0 {
		return
	}
	word := strings.ToUpper(string(s.word))
	s.word = nil
	s.noted(word)
	if s.parens > 0 || !s.routine() {
		return
	}
	switch {
	case word == "BEGIN", word == "CASE" && s.blocks > 0:
		s.blocks++
	case word == "END" && s.blocks > 0:
		s.blocks--
	}
}

// routine reports whether the statement makes a function or a procedure, whose body may have statements.
func (s *Script) routine() bool {
	w := s.first
	if len(w) > 3 && w[1] == "OR" && w[2] == "REPLACE" {
		w = append([]string{w[0]}, w[3:]...)
	}
	return len(w) > 1 && w[0] == "CREATE" && (w[1] == "FUNCTION" || w[1] == "PROCEDURE")
}

func (s *Script) noted(word string) {
	if len(s.first) < maxWords {
		s.first = append(s.first, word)
	}
	s.last = append(s.last, word)
	if len(s.last) > maxWords {
		s.last = s.last[1:]
	}
}

// next byte, if it is the one that is wanted.
func (s *Script) next(want byte) bool {
	c, err := s.from.Peek(1)
	if err != nil || c[0] != want {
		return false
	}
	_, _ = s.from.Discard(1)
	return true
}

func (s *Script) lineComment() error {
	for {
		c, err := s.from.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if c == '\n' {
			s.line++
			s.put('\n')
			return nil
		}
	}
}

func (s *Script) comment() error {
	for depth := 1; depth > 0; {
		c, err := s.inner("a comment")
		if err != nil {
			return err
		}
		switch {
		case c == '*' && s.next('/'):
			depth--
		case c == '/' && s.next('*'):
			depth++
		}
	}
	return nil
}

// inner byte of something that has to end.
func (s *Script) inner(what string) (byte, error) {
	c, err := s.from.ReadByte()
	if errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("line %d: %s has no end, so the file is cut off: copy or dump it again", max(s.begun, 1), what)
	}
	if c == '\n' {
		s.line++
	}
	return c, err
}

func (s *Script) quoted(end byte, escapes bool) error {
	s.put(end)
	for {
		c, err := s.inner("a constant")
		if err != nil {
			return err
		}
		if err := s.room(c); err != nil {
			return err
		}
		switch {
		case c == '\\' && escapes:
			if c, err = s.inner("a constant"); err != nil {
				return err
			}
			s.put(c)
		case c == end && s.next(end):
			s.put(end)
		case c == end:
			return nil
		}
	}
}

// room for a byte of a constant.
func (s *Script) room(c byte) error {
	if len(s.text) > maxStatement {
		return fmt.Errorf("line %d: a statement is longer than %d MiB: dump again in the format Custom", s.begun, maxStatement>>20)
	}
	s.put(c)
	return nil
}

// identifier in quotes: a word that is no keyword.
func (s *Script) identifier() error {
	at := len(s.text)
	if err := s.quoted('"', false); err != nil {
		return err
	}
	s.noted(string(s.text[min(at, len(s.text)):]))
	return nil
}

// dollar begins a constant in dollar quotes, or a parameter.
func (s *Script) dollar() error {
	tag := []byte{'$'}
	s.put('$')
	for {
		c, _ := s.from.Peek(1)
		if len(c) == 0 || c[0] != '$' && (!isWord(c[0]) || len(tag) == 1 && c[0] >= '0' && c[0] <= '9') {
			return nil // no constant
		}
		_, _ = s.from.Discard(1)
		tag = append(tag, c[0])
		if err := s.room(c[0]); err != nil {
			return err
		}
		if c[0] == '$' {
			break
		}
	}
	body := len(s.text)
	for {
		c, err := s.inner("a constant")
		if err != nil {
			return err
		}
		if err := s.room(c); err != nil {
			return err
		}
		if c == '$' && len(s.text)-body >= len(tag) && string(s.text[len(s.text)-len(tag):]) == string(tag) {
			return nil
		}
	}
}

// command of psql. None is carried out; those that pg_dump itself writes around a script are left out.
func (s *Script) command() error {
	line, err := s.from.ReadSlice('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("line %d: a command of psql is not carried out: dump again", s.line)
	}
	at := s.line
	s.line++
	name, _, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	if len(s.text) == 0 && (name == "restrict" || name == "unrestrict") {
		return nil
	}
	return fmt.Errorf("line %d: the command \\%.20s of psql is not carried out: dump one database with pg_dump, and without --create", at, name)
}

// LeftOut reports whether a statement is one that the owner of a database does not carry out, because another has to decide it: who owns
// something, who has rights, and what is made for the whole server. Nothing is dropped: the database was empty.
func (st Statement) LeftOut() bool {
	n := len(st.last)
	switch {
	case st.begins("GRANT"), st.begins("REVOKE"), st.begins("DROP"), st.begins("SECURITY", "LABEL"), st.begins("ALTER", "DEFAULT", "PRIVILEGES"),
		st.begins("SET", "SESSION", "AUTHORIZATION"), st.begins("RESET", "SESSION", "AUTHORIZATION"), st.begins("SET", "DEFAULT_TABLESPACE"),
		st.begins("SET", "DEFAULT_WITH_OIDS"), // of versions before 12, which alone have it
		st.begins("COMMENT", "ON", "DATABASE"), st.begins("COMMENT", "ON", "EXTENSION"), st.begins("COMMENT", "ON", "EVENT", "TRIGGER"),
		st.begins("COMMENT", "ON", "PUBLICATION"), st.begins("COMMENT", "ON", "SUBSCRIPTION"), st.begins("COMMENT", "ON", "SCHEMA", "PUBLIC"),
		st.begins("CREATE", "SCHEMA", "PUBLIC"), st.begins("CREATE", "SCHEMA", "IF", "NOT", "EXISTS", "PUBLIC"):
		return true
	case st.begins("CREATE"), st.begins("ALTER"):
		if len(st.first) > 2 && (st.first[1] == "PUBLICATION" || st.first[1] == "SUBSCRIPTION" || st.first[1] == "EVENT" && st.first[2] == "TRIGGER") {
			return true
		}
		return st.begins("ALTER") && n > 3 && st.last[n-3] == "OWNER" && st.last[n-2] == "TO"
	default:
		return false
	}
}

// begins reports whether a statement begins with keywords.
func (st Statement) begins(words ...string) bool {
	return len(st.first) >= len(words) && slices.Equal(st.first[:len(words)], words)
}

// Inserts reports whether a statement adds rows, which may go to the server together with others.
func (st Statement) Inserts() bool { return st.begins("INSERT", "INTO") }

// Rows of a COPY, up to the line that ends them, which is not part of them.
func (s *Script) Rows() io.Reader { return &rows{script: s, start: true} }

type rows struct {
	script *Script
	rest   []byte
	start  bool // the next bytes begin a line
	ended  bool
}

func (r *rows) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		part, err := r.script.from.ReadSlice('\n')
		whole := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("line %d: rows have no end, so the file is cut off: copy or dump it again", r.script.line)
			}
			return 0, err
		}
		if whole {
			r.script.line++
		}
		if r.start && whole && (string(part) == "\\.\n" || string(part) == "\\.\r\n") {
			r.ended = true
			return 0, io.EOF
		}
		r.start, r.rest = whole, part
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
