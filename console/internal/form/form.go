// SPDX-License-Identifier: Apache-2.0

// Package form turns the curated schema of a kind into fields, and filled fields into an object. A field that is left empty is not set, so
// that no block is there unless a person filled one of its fields.
package form

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Types of fields that are true or false, and of lists.
const (
	typeBoolean = "boolean"
	typeArray   = "array"
)

// A Field of a form.
type Field struct {
	// Path below the spec, which is also the name of the input.
	Path string

	// Title and Help for people.
	Title, Help string

	// Type of the value: string, integer, number, boolean or array, whose items are texts, a line each.
	Type string

	// Options that the schema allows; none is any text.
	Options []string

	// Placeholder is what happens without a value, or an example.
	Placeholder string

	// Required by the schema.
	Required bool

	// Advanced fields are folded until a person opens them.
	Advanced bool

	// Value as text.
	Value string
}

type property struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Type        string `json:"type"`
	Enum        []any  `json:"enum"`
	Examples    []any  `json:"examples"`
	Placeholder string `json:"x-ui-placeholder"`
	Group       string `json:"x-ui-group"`
}

// Read the fields of a curated schema, in their order.
func Read(schema []byte) ([]Field, error) {
	var s struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
		Order      []string            `json:"ui:order"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("cannot read the schema of a form: %w", err)
	}
	all := make([]Field, 0, len(s.Order))
	for _, path := range s.Order {
		p := s.Properties[path]
		f := Field{
			Path: path, Title: p.Title, Help: strings.ReplaceAll(p.Description, "\n", " "), Type: p.Type,
			Required: slices.Contains(s.Required, path), Advanced: p.Group == "advanced",
		}
		switch {
		case p.Placeholder != "":
			f.Placeholder = "default: " + p.Placeholder
		case len(p.Examples) > 0 && p.Type != typeArray && p.Type != typeBoolean && len(p.Enum) == 0:
			f.Placeholder = fmt.Sprintf("for instance %v", p.Examples[0])
		}
		for _, o := range p.Enum {
			f.Options = append(f.Options, fmt.Sprint(o))
		}
		if p.Type == typeBoolean {
			f.Options = []string{"true", "false"}
		}
		all = append(all, f)
	}

	return all, nil
}

// Values of an object in the fields of its kind.
func Values(fields []Field, object map[string]any) []Field {
	out := slices.Clone(fields)
	for i, f := range out {
		v, ok, err := unstructured.NestedFieldNoCopy(object, f.at()...)
		if err != nil || !ok || v == nil {
			continue
		}
		if list, ok := v.([]any); ok {
			lines := make([]string, 0, len(list))
			for _, item := range list {
				lines = append(lines, fmt.Sprint(item))
			}
			out[i].Value = strings.Join(lines, "\n")

			continue
		}
		out[i].Value = fmt.Sprint(v)
	}

	return out
}

func (f Field) at() []string { return append([]string{"spec"}, strings.Split(f.Path, ".")...) }

// Apply what a person changed in the form: fields that differ from what was shown. Others stay as the object has them. An emptied field is
// removed, and so is a block that has nothing else.
func Apply(object map[string]any, shown []Field, filled func(path string) string) error {
	for _, f := range shown {
		text := strings.TrimSpace(strings.ReplaceAll(filled(f.Path), "\r\n", "\n"))
		if text == strings.TrimSpace(f.Value) {
			continue
		}
		if f.Type == typeArray && !lines(object, f.at()) {
			return fmt.Errorf("%s (spec.%s) has an item that is no single line, which this form would split: change it in the YAML", f.Title, f.Path)
		}
		if text == "" {
			remove(object, f.at())

			continue
		}
		v, err := f.parse(text)
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedField(object, v, f.at()...); err != nil {
			return fmt.Errorf("cannot set %s (spec.%s): the YAML has something else in its place: %w", f.Title, f.Path, err)
		}
	}

	return nil
}

// lines reports whether each item of a list is a line as the form shows it.
func lines(object map[string]any, at []string) bool {
	v, _, _ := unstructured.NestedFieldNoCopy(object, at...)
	list, _ := v.([]any)

	return !slices.ContainsFunc(list, func(item any) bool {
		text := fmt.Sprint(item)

		return text == "" || text != strings.TrimSpace(text) || strings.ContainsAny(text, "\r\n")
	})
}

// parse the text of a field.
func (f Field) parse(text string) (any, error) {
	refuse := func(what string) error {
		return fmt.Errorf("%s (spec.%s) is %q, and has to be %s", f.Title, f.Path, text, what)
	}
	switch f.Type {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, refuse("a whole number")
		}

		return n, nil
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n != n || n > 1e300 || n < -1e300 {
			return nil, refuse("a number")
		}

		return n, nil
	case typeBoolean:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, refuse("true or false")
		}

		return b, nil
	case typeArray:
		var list []any
		for line := range strings.SplitSeq(text, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				list = append(list, line)
			}
		}

		return list, nil
	default:
		return text, nil
	}
}

// remove a field, and blocks that are empty then.
func remove(object map[string]any, at []string) {
	if len(at) == 1 {
		delete(object, at[0])

		return
	}
	below, ok := object[at[0]].(map[string]any)
	if !ok {
		return
	}
	remove(below, at[1:])
	if len(below) == 0 && at[0] != "spec" {
		delete(object, at[0])
	}
}
