// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The groups of the fields of a form.
const (
	// groupBasic fields are seen at once.
	groupBasic = "basic"
	// groupAdvanced fields are folded until a person opens them.
	groupAdvanced = "advanced"
	// groupActs are requests of day two. They are no part of a form: a console has buttons for them.
	groupActs = "acts"
)

// A form with fewer fields cannot make a useful object, and a form with more is no first screen.
const fewestFields, mostFields = 8, 12

// A hint is how forms show a field. Markers of Go fields have it:
//
//	// +capstan:form:title="Container image",order=10,group=basic
//	// +capstan:form:hidden
//
// A field with a group basic or advanced is in the curated form of its kind.
type hint struct {
	Title  string
	Order  int
	Group  string
	Hidden bool
}

// hints of the fields below the spec of a kind, by path. The kind has none when the map is empty.
func hints(root string, c crd) (map[string]hint, error) {
	types, err := structs(filepath.Join(root, c.source()))
	if err != nil {
		return nil, err
	}
	found := map[string]hint{}
	var walk func(name, at string) error
	walk = func(name, at string) error {
		for _, f := range types[name] {
			below := strings.TrimPrefix(at+"."+f.name, ".")
			h, ok, err := parseHint(f.doc)
			if err != nil {
				return fmt.Errorf("cannot read the marker of %s.%s: %w", name, f.name, err)
			}
			if ok {
				found[below] = h
			}
			if err := walk(f.of, below); err != nil {
				return err
			}
		}
		return nil
	}
	return found, walk(c.Spec.Names.Kind+"Spec", "")
}

// A goField is a field of a struct with its name in JSON, and the struct that it holds, if any. Items of lists are not entered: a form
// has no hints for them.
type goField struct {
	name, of string
	doc      *ast.CommentGroup
}

// structs of a folder of types.
func structs(dir string) (map[string][]goField, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the types: %w", err)
	}
	types := map[string][]goField{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot parse the types: %w", err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				types[spec.Name.Name] = fieldsOf(s)
			}
			return false
		})
	}
	return types, nil
}

func fieldsOf(s *ast.StructType) []goField {
	var all []goField
	for _, f := range s.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			continue
		}
		name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		of := f.Type
		if pointer, ok := of.(*ast.StarExpr); ok {
			of = pointer.X
		}
		field := goField{name: name, doc: f.Doc}
		if id, ok := of.(*ast.Ident); ok {
			field.of = id.Name
		}
		if name != "" {
			all = append(all, field)
		}
	}
	return all
}

// The parts of a marker.
var (
	marker   = "+capstan:form:"
	argument = regexp.MustCompile(`^(title|order|group)=("[^"]*"|[a-z0-9]+)(,|$)`)
)

// parseHint of a doc comment.
func parseHint(doc *ast.CommentGroup) (h hint, found bool, err error) {
	if doc == nil {
		return hint{}, false, nil
	}
	for _, line := range doc.List {
		text, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(line.Text, "//")), marker)
		if !ok {
			continue
		}
		if found {
			return hint{}, false, errors.New("there are two: a field has one")
		}
		if h, err = parseMarker(text); err != nil {
			return hint{}, false, err
		}
		found = true
	}
	return h, found, nil
}

func parseMarker(text string) (hint, error) {
	if text == "hidden" {
		return hint{Hidden: true}, nil
	}
	var h hint
	for rest := text; rest != ""; {
		m := argument.FindStringSubmatch(rest)
		if m == nil {
			return hint{}, fmt.Errorf("%q is neither hidden nor made of title, order and group", rest)
		}
		rest = rest[len(m[0]):]
		value := strings.Trim(m[2], `"`)
		switch m[1] {
		case "title":
			h.Title = value
		case "group":
			h.Group = value
		default:
			order, err := strconv.Atoi(value)
			if err != nil {
				return hint{}, fmt.Errorf("order %q is no number", value)
			}
			h.Order = order
		}
	}
	switch {
	case h.Title == "":
		return hint{}, errors.New("it has no title")
	case !slices.Contains([]string{"", groupBasic, groupAdvanced, groupActs}, h.Group):
		return hint{}, fmt.Errorf("group %q is none of %s, %s and %s", h.Group, groupBasic, groupAdvanced, groupActs)
	case h.Order == 0 && h.Group != groupActs:
		return hint{}, errors.New("it has no order")
	}
	return h, nil
}

// show writes hints into the schema of a kind, under the names that portals read in a definition: title, x-ui-order, x-ui-advanced and
// x-ui-hidden. Crossplane passes on what a CRD knows of them, which is the title.
func show(kind map[string]any, found map[string]hint) error {
	for at, h := range found {
		s := schemaAt(kind, at)
		if s == nil {
			return fmt.Errorf("cannot show %s in a form: the schema does not have it", at)
		}
		if h.Title != "" {
			s["title"] = h.Title
		}
		if h.Order > 0 {
			s["x-ui-order"] = h.Order
		}
		if h.Group == groupAdvanced {
			s["x-ui-advanced"] = true
		}
		if h.Hidden || h.Group == groupActs {
			s["x-ui-hidden"] = true
		}
	}
	return nil
}

// schemaAt is the schema of a field below the spec.
func schemaAt(kind map[string]any, at string) map[string]any {
	s := child(child(kind, "properties"), "spec")
	for name := range strings.SplitSeq(at, ".") {
		s = child(child(s, "properties"), name)
	}
	return s
}

// form is the curated JSON schema of a kind: the fields of its first screen. Each property has the path of a field below the spec as its
// name, so that no block is there unless a person filled one of its fields. For the same reason it has no default: what happens without a
// value is in x-ui-placeholder, for people to see.
func form(c crd, kind map[string]any, found map[string]hint) (string, []byte, error) {
	name := c.Spec.Names.Kind
	required, _ := child(child(kind, "properties"), "spec")["required"].([]any)
	properties, dependent := map[string]any{}, map[string]any{}
	shown := func(at string) bool { return found[at].Group == groupBasic || found[at].Group == groupAdvanced }
	for at, h := range found {
		with := needed(kind, at)
		if !shown(at) || slices.ContainsFunc(with, func(other string) bool { return !shown(other) }) {
			continue // A block that lacks what it requires is refused.
		}
		if len(with) > 0 {
			dependent[at] = with
		}
		p, err := property(schemaAt(kind, at), h)
		if err != nil {
			return "", nil, fmt.Errorf("cannot make a form of kind %q: %s %w", name, at, err)
		}
		properties[at] = p
	}
	if n := len(properties); n < fewestFields || n > mostFields {
		return "", nil, fmt.Errorf("cannot make a form of kind %q: it has %d fields, a first screen has %d to %d", name, n, fewestFields, mostFields)
	}
	for _, r := range required {
		if _, ok := properties[fmt.Sprint(r)]; !ok {
			return "", nil, fmt.Errorf("cannot make a form of kind %q: it lacks the required field %v", name, r)
		}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	all := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$comment": "Generated by make generate; edit " + c.source() + " instead. Each property is the path of a field below spec. " +
			"Set only what a person has filled in.",
		"title": name, "type": "object", "additionalProperties": false,
		"required": required, "properties": properties,
		// How the fields follow one another, for those who do not sort them.
		"ui:order": slices.SortedFunc(maps.Keys(properties), func(a, b string) int {
			return cmp.Or(found[a].Order-found[b].Order, strings.Compare(a, b))
		}),
	}
	if len(dependent) > 0 {
		all["dependentRequired"] = dependent
	}
	if err := e.Encode(all); err != nil {
		return "", nil, fmt.Errorf("cannot encode the form of kind %q: %w", name, err)
	}
	return path.Join("apis", strings.ToLower(name), "form.json"), out.Bytes(), nil
}

// needed are the other fields that the blocks around a field require, by their paths.
func needed(kind map[string]any, at string) []string {
	var with []string
	for block := path.Dir(strings.ReplaceAll(at, ".", "/")); block != "."; block = path.Dir(block) {
		above := strings.ReplaceAll(block, "/", ".")
		required, _ := schemaAt(kind, above)["required"].([]any)
		for _, r := range required {
			if other := above + "." + fmt.Sprint(r); other != at && !strings.HasPrefix(at, other+".") {
				with = append(with, other)
			}
		}
	}
	return with
}

// taken from the schema of a field as they are.
var taken = []string{"description", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern", "minItems", "maxItems"}

// typeString of a schema.
const typeString = "string"

// property of a form.
func property(s map[string]any, h hint) (map[string]any, error) {
	p := map[string]any{"title": h.Title, "x-ui-order": h.Order, "x-ui-group": h.Group}
	switch kind, _ := s["type"].(string); {
	case s["x-kubernetes-int-or-string"] == true:
		// A form of two alternatives confuses people: a quantity is a text.
		p["type"] = typeString
	case kind == typeString, kind == "integer", kind == "number", kind == "boolean":
		p["type"] = kind
	case kind == "array" && child(s, "items")["type"] == typeString:
		p["type"], p["items"] = kind, map[string]any{"type": typeString}
	default:
		return nil, fmt.Errorf("has the type %q, which no form of this kind can show", kind)
	}
	for _, name := range taken {
		if v, ok := s[name]; ok && (name != "pattern" || s["x-kubernetes-int-or-string"] != true) {
			p[name] = v
		}
	}
	if v, ok := s["default"]; ok {
		p["x-ui-placeholder"] = fmt.Sprint(v)
	}
	if v, ok := s["example"]; ok {
		p["examples"] = []any{v}
	}
	return p, nil
}
