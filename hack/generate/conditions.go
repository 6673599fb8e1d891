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

// A condition is what the API reference tells of a condition of a kind.
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

// readConditions reads the conditions of a kind from the files beside its type whose names begin with conditions: a block
// of constants whose comment begins "Conditions of an Algorithm", and one for each of them whose comment begins "Reasons of
// the condition Healthy". A kind without such a block has only the conditions that Crossplane gives to all.
func readConditions(dir, kind string) ([]condition, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "conditions*.go"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the conditions of kind %q: %w", kind, err)
	}
	var told []condition
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("cannot read the conditions of kind %q: %w", kind, err)
		}
		all, err := conditionsOf(file)
		if err != nil {
			return nil, fmt.Errorf("cannot understand %s: %w", path, err)
		}
		told = append(told, all[kind]...)
	}
	return told, nil
}

// conditionsOf a file, by kind.
func conditionsOf(file *ast.File) (map[string][]condition, error) {
	told := map[string][]condition{}
	for _, decl := range file.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		doc := strings.Fields(block.Doc.Text())
		switch {
		case len(doc) > 3 && doc[0] == "Conditions":
			kind := strings.Trim(doc[3], ",.:")
			for _, k := range constants(block) {
				told[kind] = append(told[kind], condition{constant: k})
			}
		case len(doc) > 4 && doc[0] == "Reasons":
			if err := addReasons(told, strings.Trim(doc[4], ",."), constants(block)); err != nil {
				return nil, err
			}
		}
	}
	return told, nil
}

// addReasons to the condition that they are of.
func addReasons(told map[string][]condition, of string, reasons []constant) error {
	for _, all := range told {
		if i := slices.IndexFunc(all, func(c condition) bool { return c.value == of }); i >= 0 {
			all[i].reasons = reasons
			return nil
		}
	}
	return fmt.Errorf("cannot find condition %q, whose reasons it lists", of)
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
	fmt.Fprint(w, "\n## Conditions\n\nBeside Crossplane's own `Synced`, `Ready` and `Responsive`. The message of a condition tells"+
		" more than its reason.\n")
	for _, c := range told {
		fmt.Fprintf(w, "\n### `%s`\n\n%s\n\n| reason | what it means |\n|---|---|\n", c.value, c.text)
		for _, r := range c.reasons {
			fmt.Fprintf(w, "| `%s` | %s |\n", r.value, cell(r.text))
		}
	}
}
