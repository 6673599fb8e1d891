// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

const (
	// maxDetail bounds in bytes what is told of what a pod or registry says.
	maxDetail = 300

	// maxHeard bounds in bytes what is listened to: the kubelet takes no more of
	// what a container says either.
	maxHeard = 4096
)

// volatile is what differs from one attempt to the next although the cause is
// the same: times, durations, addresses, identifiers and counters of processes.
var volatile = []struct { //nolint:gochecknoglobals // A constant table.
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
	{regexp.MustCompile(`\[?\b\d{4}[-/]\d\d[-/]\d\d([T ]\d\d:\d\d(:\d\d)?([.,]\d+)?)?(Z| ?[+-]\d\d:?\d\d)?\]?`), ""},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d([.,]\d+)?\b`), ""},
	{regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "…"},
	{regexp.MustCompile(`\b0x[0-9a-fA-F]+\b`), "…"},
	{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?(ns|us|µs|ms|s)\b`), "…"},
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}:\d+->`), ""},
	{regexp.MustCompile(`\b(goroutine|pid|PID)([ =:]+)\d+`), "$1$2…"},
}

// steady takes out of text what differs from one attempt of p to the next, puts
// it on one line and bounds its length.
func steady(text string, p *corev1.Pod) string {
	text = bounded(text, maxHeard)

	if p.GetName() != "" {
		text = strings.ReplaceAll(text, p.GetName(), "the pod")
	}

	for _, v := range volatile {
		text = v.what.ReplaceAllString(text, v.with)
	}

	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return ' '
		}

		return r
	}, strings.ToValidUTF8(text, " "))

	return bounded(strings.Trim(strings.Join(strings.Fields(text), " "), " .:;,"), maxDetail)
}

// bounded cuts s to at most n bytes, at the end of a character.
func bounded(s string, n int) string {
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
