// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A condition is what the API reference says of a condition of a kind.
type condition struct {
	constant

	reasons []constant
}

// A constant is a condition or a reason by the value users see, with its comment.
type constant struct {
	value string
	text  string
}

// connections are the conditions of everything that talks to an outside service, read from the folder connectionsDir.
const (
	connections    = "connection"
	connectionsDir = "apis/v1alpha1"
)

// readConditions reads the conditions of a kind from the files beside its type whose names begin with conditions: blocks of
// constants whose comment begins "Conditions of an Algorithm" or "Conditions of an Algorithm and a Database", and those
// whose comment begins "Reasons of the condition Healthy", or "Reasons of the condition Healthy of a Database" for the reasons
// that only one kind has. A kind without such a block has only the conditions that Crossplane gives to all.
func readConditions(dir, kind string) ([]condition, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "conditions*.go"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the conditions of kind %q: %w", kind, err)
	}
	files := make([]*ast.File, 0, len(paths))
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("cannot read the conditions of kind %q: %w", kind, err)
		}
		files = append(files, file)
	}
	return conditionsOf(files, kind)
}

// conditionsOf a kind in files. All conditions come first, because reasons may be in another file.
func conditionsOf(files []*ast.File, kind string) ([]condition, error) {
	var told []condition
	known := map[string]bool{}
	for _, file := range files {
		for _, block := range blocks(file) {
			doc := strings.Fields(block.Doc.Text())
			if len(doc) < 4 || doc[0] != "Conditions" {
				continue
			}
			for _, k := range constants(block) {
				known[k.value] = true
				if slices.Contains(kinds(doc[1:]), kind) {
					told = append(told, condition{constant: k})
				}
			}
		}
	}
	for _, file := range files {
		for _, block := range blocks(file) {
			doc := strings.Fields(block.Doc.Text())
			if len(doc) < 5 || doc[0] != "Reasons" {
				continue
			}
			of := strings.Trim(doc[4], ",.")
			if !known[of] {
				return nil, fmt.Errorf("cannot find condition %q, whose reasons it lists", of)
			}
			// Reasons that name no kind are for all that have the condition.
			if only := kinds(doc[5:]); len(only) > 0 && !slices.Contains(only, kind) {
				continue
			}
			if i := slices.IndexFunc(told, func(c condition) bool { return c.value == of }); i >= 0 {
				told[i].reasons = append(told[i].reasons, constants(block)...)
			}
		}
	}
	return told, nil
}

// blocks of constants in a file.
func blocks(file *ast.File) []*ast.GenDecl {
	var all []*ast.GenDecl
	for _, decl := range file.Decls {
		if block, ok := decl.(*ast.GenDecl); ok && block.Tok == token.CONST {
			all = append(all, block)
		}
	}
	return all
}

// kinds that the words of a comment begin with: "of an Algorithm and a Database, beside …" names two.
func kinds(words []string) []string {
	var all []string
	for i := 0; i+2 < len(words) && (words[i] == "of" || words[i] == "and") && (words[i+1] == "a" || words[i+1] == "an"); i += 3 {
		name := strings.Trim(words[i+2], ",.:")
		all = append(all, name)
		if name != words[i+2] {
			break
		}
	}
	return all
}

// constants of a block, with comments that begin after the name of the constant.
func constants(block *ast.GenDecl) []constant {
	var all []constant
	for _, spec := range block.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			continue
		}
		literal, ok := v.Values[0].(*ast.BasicLit)
		if !ok {
			continue
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			continue
		}
		text := strings.TrimPrefix(flow(v.Doc.Text()), v.Names[0].Name)
		text = strings.TrimSpace(strings.TrimPrefix(text, ":"))
		all = append(all, constant{value: value, text: sentence(text)})
	}
	return all
}

// sentence begins text with a capital, unless it begins with the path of a field.
func sentence(text string) string {
	first, _, _ := strings.Cut(text, " ")
	if text == "" || strings.Contains(strings.TrimRight(first, "."), ".") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// conditions describes each condition and its reasons.
func conditions(w *bytes.Buffer, told []condition) {
	if len(told) == 0 {
		return
	}
	fmt.Fprint(w, "\n## Conditions\n\nCrossplane adds `Synced`, `Ready` and `Responsive`. The message of a condition has"+
		" more details than its reason.\n")
	for _, c := range told {
		fmt.Fprintf(w, "\n### `%s`\n\n%s\n\n| reason | what it means |\n|---|---|\n", c.value, c.text)
		for _, r := range c.reasons {
			fmt.Fprintf(w, "| `%s` | %s |\n", r.value, cell(r.text))
		}
	}
}
