// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/tiers"
)

// How a test binary reports a test that is no subtest.
var (
	begun = regexp.MustCompile(`^=== RUN   (Test\w+)$`)
	ended = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (Test\w+) \(([0-9.]+s)\)$`)
	// turns are what go test prints before lines of another test.
	turns = regexp.MustCompile(`^=== (?:RUN|CONT|NAME) +(Test\w+)`)
	said  = regexp.MustCompile(`^ +\w+\.go:[0-9]+: `)
	// reached is how the tests log a state that they waited for.
	reached = regexp.MustCompile(`: after [0-9.hmsµn]+$`)
)

// lastSaid is how many texts of a test that failed are printed once more at the end, where the lines of others do not stand between them,
// and mostLines how many lines of each.
const (
	lastSaid  = 12
	mostLines = 12
)

// continued is how go test begins the second and later lines of a text.
const continued = "        "

// results reads what a test binary prints, and passes it on.
type results struct {
	out    io.Writer
	now    func() time.Time
	line   []byte
	byTest map[string]tiers.Run
	// said is what each test logged, without the states that it reached, and lines how many the last text has, if more may follow.
	said  map[string][]string
	lines int
	turn  string
}

// Write implements io.Writer.
func (r *results) Write(p []byte) (int, error) {
	r.line = append(r.line, p...)
	for {
		line, rest, whole := bytes.Cut(r.line, []byte("\n"))
		if !whole {
			break
		}
		r.read(string(line))
		r.line = rest
	}
	return r.out.Write(p)
}

func (r *results) read(line string) {
	if r.byTest == nil {
		r.byTest, r.said = map[string]tiers.Run{}, map[string][]string{}
	}
	if m := turns.FindStringSubmatch(line); m != nil {
		r.turn = m[1]
	}
	texts := r.said[r.turn]
	switch {
	case reached.MatchString(line):
		r.lines = 0
	case said.MatchString(line):
		texts = append(texts, strings.TrimSpace(line))
		r.said[r.turn], r.lines = texts[max(0, len(texts)-lastSaid):], 1
	case r.lines > 0 && r.lines < mostLines && strings.HasPrefix(line, continued):
		texts[len(texts)-1] += "\n" + line
		r.lines++
	default:
		r.lines = 0
	}
	// Until it reports more, it is one whose process ended before it did.
	if m := begun.FindStringSubmatch(line); m != nil {
		r.byTest[m[1]] = tiers.Run{Test: m[1], Began: r.now(), Result: tiers.Unfinished}
	}
	m := ended.FindStringSubmatch(line)
	if m == nil {
		return
	}
	took, err := time.ParseDuration(m[3])
	if err != nil {
		return
	}
	r.byTest[m[2]] = tiers.Run{
		Test:   m[2],
		Began:  r.now().Add(-took),
		Took:   took,
		Result: map[string]string{"PASS": tiers.Passed, "FAIL": tiers.Failed, "SKIP": tiers.Skipped}[m[1]],
	}
}
