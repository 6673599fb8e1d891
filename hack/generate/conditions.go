// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
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

// readConditions reads the conditions of a kind from conditions.go beside its type: a block of constants whose comment
// begins "Conditions of an Algorithm", and one for each of them whose comment begins "Reasons of the condition Healthy".
// A kind without such a block has only the conditions that Crossplane gives to all.
func readConditions(root string, c crd) ([]condition, error) {
	path := filepath.Join(root, c.source(), "conditions.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the conditions of kind %q: %w", c.Spec.Names.Kind, err)
	}

	var told []condition
	for _, decl := range file.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		doc := strings.Fields(block.Doc.Text())
		switch {
		case len(doc) > 3 && doc[0] == "Conditions" && strings.Trim(doc[3], ",.") == c.Spec.Names.Kind:
			for _, k := range constants(block) {
				told = append(told, condition{constant: k})
			}
		case len(doc) > 4 && doc[0] == "Reasons":
			of := strings.Trim(doc[4], ",.")
			i := slices.IndexFunc(told, func(c condition) bool { return c.value == of })
			if i < 0 {
				return nil, fmt.Errorf("cannot find condition %q, whose reasons %s lists", of, path)
			}
			told[i].reasons = constants(block)
		}
	}
	return told, nil
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
