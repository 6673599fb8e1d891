// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"regexp"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/tiers"
)

// How a test binary reports a test that is no subtest.
var (
	begun = regexp.MustCompile(`^=== RUN   (Test\w+)$`)
	ended = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (Test\w+) \(([0-9.]+s)\)$`)
)

// results reads what a test binary prints, and passes it on.
type results struct {
	out    io.Writer
	now    func() time.Time
	line   []byte
	byTest map[string]tiers.Run
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
		r.byTest = map[string]tiers.Run{}
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
