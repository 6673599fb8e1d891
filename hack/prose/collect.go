// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// ignored are folders without prose of our own, and generated pages: the types that they are made from are checked.
var ignored = map[string]bool{
	".git": true, "_output": true, "docs/api": true, "hack/prose/testdata": true, "hack/charts": true,
}

// collect returns what people read in the repository: documents, comments of YAML files that people edit, and comments and messages
// of Go files. Tests and generated files are left out.
func collect(repository fs.FS) ([]passage, error) {
	byFile := map[string][]passage{}
	err := fs.WalkDir(repository, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if ignored[file] || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		read := reader(file)
		if read == nil {
			return nil
		}
		raw, err := fs.ReadFile(repository, file)
		if err != nil {
			return err
		}
		byFile[file], err = read(file, string(raw))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the repository: %w", err)
	}
	return sorted(byFile), nil
}

// edited matches YAML files whose comments people read to use Capstan.
var edited = regexp.MustCompile(`^(examples/.*/xr|install/.*|package/[^/]*|package/monitoring/.*|crossplane|package/[^/]*/crossplane|test/e2e/tiers|hack/prose/exceptions)\.yaml$`)

func reader(file string) func(file, raw string) ([]passage, error) {
	switch {
	case strings.HasSuffix(file, ".md"):
		return document
	case edited.MatchString(file):
		return comments
	case !strings.HasSuffix(file, ".go"), strings.HasSuffix(file, "_test.go"), strings.HasPrefix(path.Base(file), "zz_"):
		return nil
	}
	return source
}

var (
	// span matches what is not prose within a line of Markdown: code, and the address of a link.
	codeSpan = regexp.MustCompile("`[^`]*`")
	address  = regexp.MustCompile(`\]\([^)\s]*\)`)
	item     = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+`)
	html     = regexp.MustCompile(`<[^>]*>`)
)

// document returns the paragraphs, items, headings and cells of a Markdown file. Blocks of code are none.
func document(file, raw string) ([]passage, error) {
	var all []passage
	var open *passage
	end := func() {
		if open != nil {
			all = append(all, *open)
		}
		open = nil
	}
	fence := ""
	for i, line := range strings.Split(raw, "\n") {
		text := strings.TrimSpace(line)
		switch mark := strings.TrimLeft(text, "> "); {
		case fence != "":
			if strings.HasPrefix(mark, fence) {
				fence = ""
			}
			continue
		case strings.HasPrefix(mark, "```"), strings.HasPrefix(mark, "~~~"):
			end()
			fence = mark[:3]
			continue
		}
		text = html.ReplaceAllString(address.ReplaceAllString(codeSpan.ReplaceAllString(text, code), "]"), "")
		text = strings.TrimLeft(text, "> ")
		begin := passage{file: file, line: i + 1, document: true}
		switch {
		case text == "":
			end()
		case strings.HasPrefix(text, "#"):
			end()
			begin.text, begin.heading = strings.TrimLeft(text, "# "), true
			all = append(all, begin)
		case strings.HasPrefix(text, "|"):
			end()
			for cell := range strings.SplitSeq(text, "|") {
				begin.text = cell
				all = append(all, begin)
			}
		case item.MatchString(text):
			end()
			begin.text = item.ReplaceAllString(text, "")
			open = &begin
		case open == nil:
			begin.text = text
			open = &begin
		default:
			open.text += "\n" + text
		}
	}
	end()
	return all, nil
}

// comments returns the comments of a YAML file and of Lua scripts in it.
func comments(file, raw string) ([]passage, error) {
	var all []passage
	last := 0
	for i, line := range strings.Split(raw, "\n") {
		if script, found := strings.CutPrefix(strings.TrimSpace(line), "-- "); found {
			line = "# " + script
		}
		before, text, found := strings.Cut(line, "# ")
		if !found || strings.TrimSpace(before) != "" && !strings.HasSuffix(before, " ") {
			continue
		}
		if alone := strings.TrimSpace(before) == ""; alone && last == i && len(all) > 0 {
			all[len(all)-1].text += "\n" + text
		} else {
			all = append(all, passage{file: file, line: i + 1, text: text})
		}
		last = i + 1
	}
	return all, nil
}

// source returns the comments of a Go file, and its strings of several words: messages, events, errors and help texts.
func source(file, raw string) ([]passage, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, raw, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("cannot parse: %w", err)
	}
	if ast.IsGenerated(parsed) {
		return nil, nil
	}
	var all []passage
	for _, group := range parsed.Comments {
		var lines []string
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//nolint") || strings.HasPrefix(c.Text, "//go:") {
				lines = append(lines, "")
				continue
			}
			lines = append(lines, strings.TrimSpace(strings.Trim(c.Text, "/*")))
		}
		all = append(all, passage{file: file, line: set.Position(group.Pos()).Line, text: codeSpan.ReplaceAllString(strings.Join(lines, "\n"), code)})
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				all = append(all, tag(file, set.Position(n.Tag.Pos()).Line, n.Tag.Value)...)
				n.Tag = nil
			}
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(n.Value); err == nil && len(strings.Fields(text)) > 2 {
				all = append(all, passage{file: file, line: set.Position(n.Pos()).Line, text: codeSpan.ReplaceAllString(text, code)})
			}
		}
		return true
	})
	return all, nil
}

// help matches the text that a program's flag has for its users.
var help = regexp.MustCompile(`help:"([^"]*)"`)

func tag(file string, line int, value string) []passage {
	if found := help.FindStringSubmatch(value); found != nil {
		return []passage{{file: file, line: line, text: found[1]}}
	}
	return nil
}
