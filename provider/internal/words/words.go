// SPDX-License-Identifier: Apache-2.0

// Package words prepares texts of other programs for messages: on one line, bounded, and the same as long as the cause is the
// same.
package words

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxDetail bounds in bytes how much of a text is reported.
	MaxDetail = 300

	// MaxHeard bounds in bytes how much of a text is read: the kubelet takes no more of a container's message either.
	MaxHeard = 4096
)

// volatile parts differ between attempts although the cause is the same: times, durations, addresses, identifiers and process
// numbers.
var volatile = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\s*\(?\bpod: "[^"]*"(, container: [^),]*)?\)?`), ""},
	{regexp.MustCompile(`\b[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ `), ""},
	{
		regexp.MustCompile(`\b((Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +)?(\d\d? )?` +
			`(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)( +\d{1,2})?,?( \d{4})? +\d\d:\d\d:\d\d( [A-Z]{3,4})?( [+-]\d{4})?( \d{4})?\b`),
		"",
	},
	// Only a process number distinguishes a time zone, as PostgreSQL writes it, from the level of a message.
	{
		regexp.MustCompile(`\[?\b\d{4}[-/]\d\d[-/]\d\d([T ]\d\d:\d\d(:\d\d)?([.,]\d+)?)?` +
			`(Z| ?[+-]\d\d:?\d\d)?(( [A-Z]{3,4}| [+-]\d\d)? \[\d+\])?\]?`),
		"",
	},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d([.,]\d+)?\b`), ""},
	{regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "…"},
	{regexp.MustCompile(`\b0x[0-9a-fA-F]+\b`), "…"},
	{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?(ns|us|µs|ms|s)\b`), "…"},
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}:\d+->`), ""},
	{regexp.MustCompile(`\b(goroutine|pid|PID)([ =:]+)\d+`), "$1$2…"},
}

// Steady removes from a text about a pod what differs between attempts and the name of the pod, which may be empty, puts it on
// one line and bounds it by MaxDetail.
func Steady(said, pod string) string {
	said = Bounded(said, MaxHeard)
	if pod != "" {
		said = strings.ReplaceAll(said, pod, "the pod")
	}
	for _, v := range volatile {
		said = v.what.ReplaceAllString(said, v.with)
	}
	return Bounded(strings.Trim(OneLine(said), " .:;,"), MaxDetail)
}

// OneLine puts s on one line, without anything that cannot be printed.
func OneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
	return strings.Join(strings.Fields(s), " ")
}

// Bounded cuts s to at most n bytes, at the end of a character.
func Bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const more = "…"
	cut := n - len(more)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.TrimRight(s[:cut], " ") + more
}

// Heard is the text of a tenant, in at most n bytes and on one line. Its own lines are told apart by slashes.
func Heard(s string, n int) string {
	s = Bounded(s, MaxHeard)
	var lines []string
	for l := range strings.Lines(s) {
		if l = OneLine(l); l != "" {
			lines = append(lines, l)
		}
	}
	return Bounded(strings.Join(lines, " / "), n)
}
