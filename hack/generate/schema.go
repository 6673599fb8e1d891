// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A schema is what the API reference says of an OpenAPI v3 schema.
type schema struct {
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Default     any    `json:"default"`
	Example     any    `json:"example"`
	Enum        []any  `json:"enum"`

	Minimum       *float64 `json:"minimum"`
	Maximum       *float64 `json:"maximum"`
	MinLength     *int64   `json:"minLength"`
	MaxLength     *int64   `json:"maxLength"`
	MinItems      *int64   `json:"minItems"`
	MaxItems      *int64   `json:"maxItems"`
	MinProperties *int64   `json:"minProperties"`
	MaxProperties *int64   `json:"maxProperties"`
	Pattern       string   `json:"pattern"`

	Properties           map[string]*schema `json:"properties"`
	Required             []string           `json:"required"`
	Items                *schema            `json:"items"`
	AdditionalProperties *schema            `json:"additionalProperties"`

	IntOrString bool     `json:"x-kubernetes-int-or-string"`
	ListMapKeys []string `json:"x-kubernetes-list-map-keys"`
	Rules       []rule   `json:"x-kubernetes-validations"`
}

// A rule is a CEL rule. Readers see its message.
type rule struct {
	FieldPath string `json:"fieldPath"`
	Message   string `json:"message"`
}

// sentence says what a rule of a whole object requires.
func (r rule) sentence() string {
	at, message := strings.TrimPrefix(r.FieldPath, "."), r.Message
	if at == "" {
		at, message, _ = strings.Cut(r.Message, ": ")
	}
	return "`" + at + "` " + flow(message) + "."
}

// schemaOf decodes the schema of a kind.
func schemaOf(c crd) (*schema, error) {
	data, err := json.Marshal(c.Spec.Versions[0].Schema.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the schema of kind %q: %w", c.Spec.Names.Kind, err)
	}
	s := &schema{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("cannot decode the schema of kind %q: %w", c.Spec.Names.Kind, err)
	}
	return s, nil
}

// kind of value in plain words.
func (s *schema) kind() string {
	switch {
	case s.IntOrString && s.Pattern != "":
		return "quantity"
	case s.IntOrString:
		return "integer or string"
	case s.Items != nil:
		return "list of " + plural(s.Items.kind())
	case s.AdditionalProperties != nil:
		return "map of " + plural(s.AdditionalProperties.kind())
	case s.Format == "date-time":
		return "time"
	default:
		return s.Type
	}
}

// plural of the words that kind returns.
func plural(kind string) string {
	head, tail, found := strings.Cut(kind, " ")
	if stem, ok := strings.CutSuffix(head, "y"); ok {
		head = stem + "ie"
	}
	head += "s"
	if !found {
		return head
	}
	return head + " " + tail
}

// bounds that a value keeps to, in plain words.
func (s *schema) bounds() []string {
	var bounds []string
	if len(s.Enum) > 0 {
		values := make([]string, 0, len(s.Enum))
		for _, v := range s.Enum {
			values = append(values, code(v))
		}
		bounds = append(bounds, "one of "+strings.Join(values, ", "))
	}
	for _, b := range []string{
		span(whole(s.Minimum), whole(s.Maximum), ""),
		span(s.MinLength, s.MaxLength, " characters"),
		span(s.MinItems, s.MaxItems, " items"),
		span(s.MinProperties, s.MaxProperties, " entries"),
	} {
		if b != "" {
			bounds = append(bounds, b)
		}
	}
	if s.Items != nil {
		bounds = append(bounds, each("each ", s.Items.bounds())...)
	}
	if s.AdditionalProperties != nil {
		bounds = append(bounds, each("each ", s.AdditionalProperties.bounds())...)
	}
	if len(s.ListMapKeys) > 0 {
		bounds = append(bounds, "no two with the same "+strings.Join(s.ListMapKeys, " and "))
	}
	return bounds
}

// span is a range in words, or nothing.
func span(low, high *int64, unit string) string {
	switch {
	case low != nil && high != nil:
		return fmt.Sprintf("%d to %d%s", *low, *high, unit)
	case low != nil:
		return fmt.Sprintf("at least %d%s", *low, unit)
	case high != nil:
		return fmt.Sprintf("at most %d%s", *high, unit)
	default:
		return ""
	}
}

func whole(f *float64) *int64 {
	if f == nil {
		return nil
	}
	n := int64(*f)
	return &n
}

func each(prefix string, bounds []string) []string {
	out := make([]string, 0, len(bounds))
	for _, b := range bounds {
		out = append(out, prefix+b)
	}
	return out
}

// children are the fields below a value, by what is appended to its path: inside an object, the items of a list or the
// values of a map.
func (s *schema) children() (string, *schema) {
	switch {
	case s.Items != nil:
		return "[]", s.Items
	case s.AdditionalProperties != nil:
		return "{}", s.AdditionalProperties
	default:
		return "", s
	}
}

// A field is one field of an object, with its path from the root of the object.
type field struct {
	*schema

	path     string
	required bool
}

// fields returns all fields below a schema, in the order they are read: the required first, then by name, each followed
// by what is below it. What is below a known type is not among them.
func fields(s *schema) []field {
	return walk(s, "", func(name string, s *schema) bool {
		_, ok := knownAt(name, s)
		return !ok
	})
}

// fieldsBelow returns all fields below a schema.
func fieldsBelow(s *schema) []field {
	return walk(s, "", func(string, *schema) bool { return true })
}

// walk the fields below a schema, and what is below those that are entered.
func walk(s *schema, path string, enters func(name string, s *schema) bool) []field {
	suffix, inner := s.children()
	if suffix != "" {
		return walk(inner, path+suffix, enters)
	}
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		ra, rb := slices.Contains(s.Required, a), slices.Contains(s.Required, b)
		if ra != rb && ra {
			return -1
		}
		if ra != rb {
			return 1
		}
		return strings.Compare(a, b)
	})
	var out []field
	for _, name := range names {
		below := s.Properties[name]
		at := path + "." + name
		out = append(out, field{schema: below, path: at, required: slices.Contains(s.Required, name)})
		if enters(name, below) {
			out = append(out, walk(below, at, enters)...)
		}
	}
	return out
}
