// SPDX-License-Identifier: Apache-2.0

package podhealth

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxDetail bounds in bytes what is told of what somebody says.
	maxDetail = 300

	// maxHeard bounds in bytes what is listened to.
	maxHeard = 4096
)

// volatile is what differs from one attempt to the next although the cause is the
// same: times, durations, addresses, identifiers and process numbers.
var volatile = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\s*\(?\bpod: "[^"]*"(, container: [^),]*)?\)?`), ""},
	{regexp.MustCompile(`\[?\b\d{4}[-/]\d\d[-/]\d\d([T ]\d\d:\d\d(:\d\d)?([.,]\d+)?)?(Z| ?[+-]\d\d:?\d\d| [A-Z]{3,4})?( \[\d+\])?\]?`), ""},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d([.,]\d+)?\b`), ""},
	{regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "…"},
	{regexp.MustCompile(`\b0x[0-9a-fA-F]+\b`), "…"},
	{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?(ns|us|µs|ms|s)\b`), "…"},
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}:\d+->`), ""},
	{regexp.MustCompile(`\b(goroutine|pid|PID)([ =:]+)\d+`), "$1$2…"},
}

// Steady takes out of text what differs from one attempt to the next, and the name
// of the pod, puts it on one line and bounds its length.
func Steady(text, pod string) string {
	text = Bounded(text, maxHeard)

	if pod != "" {
		text = strings.ReplaceAll(text, pod, "the pod")
	}

	for _, v := range volatile {
		text = v.what.ReplaceAllString(text, v.with)
	}

	return Bounded(strings.Trim(OneLine(text), " .:;,"), maxDetail)
}

// OneLine puts text on one line, without anything that cannot be printed.
func OneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return ' '
		}

		return r
	}, strings.ToValidUTF8(text, " "))

	return strings.Join(strings.Fields(text), " ")
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
