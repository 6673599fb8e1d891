// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// reportOutput is what the part of CI that failed printed. A part that passed leaves none.
const reportOutput = "output"

// firstSaid is how many lines the closing lines have of a test that failed: its messages come first, what it saw follows.
const firstSaid = 12

// failedTests finds what each test that failed printed, in the output of go test without -v. A program that ends in a panic, such as one
// that takes too long, has no such test: what begins with the panic stands in its place.
func failedTests(output string) (names []string, texts map[string][]string) {
	texts = map[string][]string{}
	name := ""
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		begins, failed := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: ")
		switch {
		case failed:
			name, _, _ = strings.Cut(begins, " ")
		case strings.HasPrefix(line, "panic: "):
			name = "panic"
		case strings.HasPrefix(line, "FAIL"), strings.HasPrefix(line, "ok "):
			name = ""
			continue
		}
		if name == "" {
			continue
		}
		if _, known := texts[name]; !known {
			names = append(names, name)
		}
		if len(texts[name]) < firstSaid {
			texts[name] = append(texts[name], line)
		}
	}
	return names, texts
}

// accountFailed keeps the first lines of what failed in a part of CI.
func (p *project) accountFailed() error {
	output, err := os.ReadFile(filepath.Join(p.Report, reportOutput))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the report: %w", err)
	}
	names, texts := failedTests(string(output))
	for _, name := range names {
		p.accountSaid(name, texts[name])
	}
	return nil
}
