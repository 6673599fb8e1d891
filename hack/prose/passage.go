// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path"
	"regexp"
	"strings"
	"unicode"
)

// code stands for a span of code in a sentence: one word, for any content.
const code = "CODE"

// A passage is text that people read: a paragraph, a cell of a table, a comment, a message.
type passage struct {
	// file is the path below the root of the repository.
	file string
	// line at which the passage begins, from 1. Ends of lines are kept in text, so that a sentence's line can be counted.
	line int
	text string

	// document is true for files of prose, whose sentences have a greatest length.
	document bool
	heading  bool
}

// place is the entry of the baseline that the passage belongs to.
func (p passage) place() string {
	if strings.HasSuffix(p.file, ".go") {
		return path.Dir(p.file)
	}
	return p.file
}

var (
	// ends matches the end of a sentence with what may follow the full stop.
	ends = regexp.MustCompile(`[.!?]["'”’)*_\]]*\s+`)
	// shortened are words whose full stop ends no sentence.
	shortened = regexp.MustCompile(`(?i)\b(e\.g|i\.e|etc|vs|cf|no)\.$`)
	// list matches spans of code that follow each other, as in an enumeration of fields.
	list = regexp.MustCompile(code + `(?:(?:,|\s+and|\s+or|,\s+and|,\s+or|\s*/)?\s+` + code + `)+`)
)

// sentences splits the passage.
func (p passage) sentences() []passage {
	var all []passage
	rest, line := p.text, p.line
	cut := func(n int) {
		s := p
		lead := len(rest[:n]) - len(strings.TrimLeftFunc(rest[:n], unicode.IsSpace))
		s.line, s.text = line+strings.Count(rest[:lead], "\n"), strings.TrimSpace(rest[:n])
		if s.text != "" {
			all = append(all, s)
		}
		line += strings.Count(rest[:n], "\n")
		rest = rest[n:]
	}
	for from := 0; ; {
		at := ends.FindStringIndex(rest[from:])
		if at == nil {
			break
		}
		stop, next := from+at[0]+1, from+at[1]
		if next < len(rest) && unicode.IsLower([]rune(rest[next:])[0]) || shortened.MatchString(rest[:stop]) {
			from = next
			continue
		}
		cut(next)
		from = 0
	}
	cut(len(rest))
	return all
}

// words counts the words of a sentence, without numbers and formulas. An aside in parentheses counts for itself.
func (p passage) words() int {
	text := list.ReplaceAllString(p.text, code)
	most := 0
	for _, a := range aside.FindAllString(text, -1) {
		most = max(most, count(a))
	}
	return max(most, count(aside.ReplaceAllString(text, "")))
}

// aside matches text in parentheses.
var aside = regexp.MustCompile(`\([^()]*\)`)

func count(text string) int {
	n := 0
	for w := range strings.FieldsSeq(text) {
		if strings.ContainsFunc(w, unicode.IsLetter) && !strings.ContainsAny(w, "=^√±²·/≤") {
			n++
		}
	}
	return n
}
