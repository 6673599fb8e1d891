// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxWords is the length of the longest sentence that a document may have.
const maxWords = 30

type rules struct {
	Words      []*word
	Exceptions []*exception
	// Baseline is the sorted list of places that are not held to the rules yet: folders of Go files, and documents.
	Baseline []string
}

// A word is a rule that forbids a word or phrase.
type word struct {
	// Pattern is a regular expression of whole words, without regard to case.
	Pattern string `json:"pattern"`
	// Use names what to write instead.
	Use string `json:"use"`
	// Unless is a regular expression: a sentence that it matches may have the word.
	Unless string `json:"unless,omitempty"`

	pattern, unless *regexp.Regexp
}

// An exception allows the rule's match in sentences that contain a text.
type exception struct {
	// In is the file or folder. Default: everywhere.
	In string `json:"in,omitempty"`
	// Text is what the sentence contains, with single spaces.
	Text   string `json:"text"`
	Reason string `json:"reason"`

	used bool
}

// A violation of a rule at a line of a file.
type violation struct {
	passage

	message string
}

func (r *rules) load(dir fs.FS) error {
	for name, into := range map[string]any{"words.yaml": &r.Words, "exceptions.yaml": &r.Exceptions, "baseline.yaml": &r.Baseline} {
		raw, err := fs.ReadFile(dir, name)
		if err != nil {
			return fmt.Errorf("cannot read the rules: %w", err)
		}
		if err := yaml.UnmarshalStrict(raw, into); err != nil {
			return fmt.Errorf("cannot parse %s: %w", name, err)
		}
	}
	for _, w := range r.Words {
		var err error
		if w.pattern, err = compile(w.Pattern); err != nil {
			return err
		}
		if w.unless, err = compile(w.Unless); err != nil {
			return err
		}
	}
	for _, e := range r.Exceptions {
		if e.Text == "" || e.Reason == "" {
			return fmt.Errorf("the exception %q in %q needs a text and a reason", e.Text, e.In)
		}
	}
	return nil
}

// compile returns nil for an empty pattern. A space in the pattern also matches the end of a line.
func compile(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, nil //nolint:nilnil // no pattern and no error is what most rules have
	}
	p, err := regexp.Compile(`(?i)\b(?:` + strings.ReplaceAll(pattern, " ", `\s+`) + `)\b`)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the pattern %q: %w", pattern, err)
	}
	return p, nil
}

// judge returns the violations in passages, in their order.
func (r *rules) judge(passages []passage) []violation {
	var found []violation
	for _, p := range passages {
		for _, s := range p.sentences() {
			for _, message := range r.faults(s) {
				if !r.excepted(s) {
					found = append(found, violation{passage: s, message: message})
				}
			}
		}
	}
	return found
}

// faults are the rules that a sentence breaks.
func (r *rules) faults(s passage) []string {
	var messages []string
	for _, w := range r.Words {
		match := w.pattern.FindString(s.text)
		if match == "" || w.unless != nil && w.unless.MatchString(s.text) {
			continue
		}
		messages = append(messages, fmt.Sprintf("%q: %s", spaced(match), w.Use))
	}
	if subject := subjects.FindStringSubmatch(s.text); subject != nil && !strings.HasSuffix(s.text, "?") && !s.heading {
		messages = append(messages, fmt.Sprintf("%q as a subject: use a noun, such as client, user or member", subject[1]))
	}
	if n := s.words(); s.document && n > maxWords {
		messages = append(messages, fmt.Sprintf("a sentence of %d words: at most %d, make two of it", n, maxWords))
	}
	return messages
}

// subjects matches a clause that begins with a pronoun for a person.
var subjects = regexp.MustCompile(`(?i)(?:^|;\s+)(who|whom|whose|nobody|somebody|everybody|anybody)\b`)

func (r *rules) excepted(s passage) bool {
	for _, e := range r.Exceptions {
		if (e.In == "" || e.In == s.file || strings.HasPrefix(s.file, e.In+"/")) && strings.Contains(spaced(s.text), e.Text) {
			e.used = true
			return true
		}
	}
	return false
}

// report returns the lines to print: violations of places that have to be clean, or of all, and rules that no longer apply to anything.
func (r *rules) report(found []violation, all bool) []string {
	var lines []string
	dirty := map[string]bool{}
	for _, v := range found {
		dirty[v.place()] = true
		if all || !slices.Contains(r.Baseline, v.place()) {
			lines = append(lines, fmt.Sprintf("%s:%d: %s", v.file, v.line, v.message))
		}
	}
	for _, place := range r.Baseline {
		if !dirty[place] {
			lines = append(lines, fmt.Sprintf("%s/baseline.yaml: %s is clean now: run go -C hack run ./prose --update", folder, place))
		}
	}
	for _, e := range r.Exceptions {
		if !e.used {
			lines = append(lines, fmt.Sprintf("%s/exceptions.yaml: nothing needs the exception %q: remove it", folder, e.Text))
		}
	}
	return lines
}

// shrink removes places that are clean from the baseline. It never adds one.
func (r *rules) shrink(dir string, found []violation) error {
	dirty := map[string]bool{}
	for _, v := range found {
		dirty[v.place()] = true
	}
	r.Baseline = slices.DeleteFunc(r.Baseline, func(place string) bool { return !dirty[place] })
	raw, err := yaml.Marshal(r.Baseline)
	if err != nil {
		return fmt.Errorf("cannot encode the baseline: %w", err)
	}
	const head = "# Folders of Go files, and documents, that break rules still. It only gets shorter: go -C hack run ./prose --update\n"
	if err := os.WriteFile(filepath.Join(dir, "baseline.yaml"), append([]byte(head), raw...), 0o600); err != nil {
		return fmt.Errorf("cannot write the baseline: %w", err)
	}
	return nil
}

// spaced returns the text on one line.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

// sorted returns the passages by file and line.
func sorted(byFile map[string][]passage) []passage {
	all := make([]passage, 0, len(byFile))
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		all = append(all, slices.SortedStableFunc(slices.Values(byFile[file]), func(a, b passage) int { return cmp.Compare(a.line, b.line) })...)
	}
	return all
}
