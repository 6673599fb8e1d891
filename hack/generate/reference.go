// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// references is the folder of the API reference.
const references = "docs/api"

// reference returns one page for each kind, and their index.
func reference(root string, crds []crd) (tree, error) {
	pages := tree{}
	var kinds []described
	connected, err := readConditions(filepath.Join(root, connectionsDir), connections)
	if err != nil {
		return nil, err
	}
	for _, c := range crds {
		s, err := schemaOf(c)
		if err != nil {
			return nil, err
		}
		r, err := c.role()
		if err != nil {
			return nil, err
		}
		told, err := readConditions(filepath.Join(root, c.source()), c.Spec.Names.Kind)
		if err != nil {
			return nil, err
		}
		if c.connected() {
			told = append(told, connected...)
		}
		d := described{crd: c, schema: s, role: r, told: told}
		data, err := d.page()
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, d)
		pages[path.Join(references, d.name()+".md")] = data
	}
	pages[path.Join(references, "README.md")] = index(kinds)
	return pages, nil
}

// described is a kind with its schema.
type described struct {
	crd

	schema *schema
	role   role
	told   []condition
}

func (d described) name() string { return strings.ToLower(d.Spec.Names.Kind) }

func (d described) version() string { return d.Spec.Group + "/" + d.Spec.Versions[0].Name }

// sections of the index, in order.
var sections = []struct {
	role  role
	title string
	intro string
}{
	{composite, "For application teams", "Application teams create these in their own namespaces. Capstan creates everything else from them."},
	{input, "For platform teams", "Defaults for every object of a control plane."},
	{provider, "For platform teams: outside services", "Addresses of and credentials for S3 servers, model registries and Prometheus."},
	{managed, "Managed resources", "Algorithms and Databases compose these kinds, and users can create them, too. `crossplane resource trace` shows them" +
		" as parts of an object."},
}

// index lists the pages.
func index(kinds []described) []byte {
	w := &bytes.Buffer{}
	fmt.Fprint(w, generated("apis and input"), "# API reference\n\n",
		"The column *fields* counts what a page describes of the spec. A field of a type of another project, such as `EnvVar`, is one of them:\n",
		"its page names the type, the fields of it that the schema has, and what is checked in them. The schema has all of these fields.\n")
	for _, s := range sections {
		fmt.Fprintf(w, "\n## %s\n\n%s\n\n| kind | API version | fields | what it is |\n|---|---|---|---|\n", s.title, s.intro)
		for _, k := range kinds {
			if k.role == s.role {
				fmt.Fprintf(w, "| [%s](%s.md) | `%s` | %d | %s |\n",
					k.Spec.Names.Kind, k.name(), k.version(), countable(k.schema), cell(brief(k.schema.Description)))
			}
		}
	}
	return w.Bytes()
}

// page describes one kind.
func (d described) page() ([]byte, error) {
	w := &bytes.Buffer{}
	fmt.Fprintf(w, "%s# %s\n\n", generated(d.source()), d.Spec.Names.Kind)
	fmt.Fprintf(w, "%s\n\n%s\n\n", d.facts(), flow(d.schema.Description))
	for _, r := range d.schema.Rules {
		fmt.Fprintf(w, "%s\n\n", r.sentence())
	}
	smallest, err := yaml.Marshal(d.smallest())
	if err != nil {
		return nil, fmt.Errorf("cannot encode an example of kind %q: %w", d.Spec.Names.Kind, err)
	}
	fmt.Fprintf(w, "The smallest one:\n\n```yaml\n%s```\n", smallest)

	var status []field
	var spec []field
	for _, f := range fields(d.schema) {
		f.path = strings.TrimPrefix(f.path, ".")
		switch top, _, _ := strings.Cut(f.path, "."); top {
		case "apiVersion", "kind", "metadata":
		case "status":
			status = append(status, f)
		default:
			spec = append(spec, f)
		}
	}
	summary(w, spec)
	for _, f := range spec {
		detail(w, f)
	}
	conditions(w, d.told)
	observed(w, status)
	return w.Bytes(), nil
}

// facts say in one line how a kind is addressed.
func (d described) facts() string {
	facts := "`apiVersion: " + d.version() + "`"
	if d.role == input {
		return facts + " · the input of the function and the data of the EnvironmentConfig, not an object of its own"
	}
	parts := make([]string, 0, 2+len(d.Spec.Names.ShortNames))
	parts = append(parts, facts+" or `"+d.Spec.Group+"/"+beta+"`", strings.ToLower(d.Spec.Scope))
	for _, s := range d.Spec.Names.ShortNames {
		parts = append(parts, "`kubectl get "+s+"`")
	}
	return strings.Join(parts, " · ")
}

// smallest is an object with nothing but what is required, made of the examples.
func (d described) smallest() map[string]any {
	object := map[string]any{
		"apiVersion": d.version(),
		"kind":       d.Spec.Names.Kind,
		"metadata":   map[string]any{"name": "example", "namespace": "default"},
	}
	if d.role == input {
		delete(object, "metadata")
	}
	if spec := d.schema.Properties["spec"]; spec != nil {
		object["spec"] = required(spec)
	}
	return object
}

// required is the example of a value, reduced to what is required in it.
func required(s *schema) any {
	if s.Example != nil {
		return s.Example
	}
	object := map[string]any{}
	for _, name := range s.Required {
		object[name] = required(s.Properties[name])
	}
	return object
}

// summary is a table of the fields that a person sets, which are described one by one below it.
func summary(w *bytes.Buffer, spec []field) {
	fmt.Fprint(w, "\n## Fields\n\n| field | type | default | what it is |\n|---|---|---|---|\n")
	for _, f := range spec {
		fallback := ""
		switch {
		case f.required:
			fallback = "required"
		case f.Default != nil:
			fallback = code(f.Default)
		}
		fmt.Fprintf(w, "| [`%s`](#%s) | %s | %s | %s |\n",
			f.path, anchor(f.path), f.kind(), cell(fallback), cell(brief(f.Description)))
	}
}

// observed is a table of the fields that Capstan writes. Conditions have the same fields everywhere in Kubernetes.
func observed(w *bytes.Buffer, status []field) {
	if len(status) == 0 {
		return
	}
	fmt.Fprint(w, "\n## Status\n\n| field | type | what it is |\n|---|---|---|\n")
	for _, f := range status {
		if strings.HasPrefix(f.path, "status.conditions[]") {
			continue
		}
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", f.path, f.kind(), cell(flow(f.Description)))
	}
}

// detail describes one field.
func detail(w *bytes.Buffer, f field) {
	fmt.Fprintf(w, "\n### `%s`\n\n%s\n", f.path, flow(f.Description))
	facts := []string{f.kind()}
	if f.required {
		facts = append(facts, "required")
	}
	facts = append(facts, f.bounds()...)
	fmt.Fprintf(w, "\n- Type: %s\n", strings.Join(facts, ", "))
	if f.Default != nil {
		fmt.Fprintf(w, "- Default: %s\n", code(f.Default))
	}
	if f.Example != nil {
		fmt.Fprintf(w, "- Example: %s\n", code(f.Example))
	}
	parts(w, f)
	checks(w, "Checked", f.Rules)
	if suffix, inner := f.children(); suffix != "" {
		checks(w, "Checked in each", inner.Rules)
	}
}

// checks lists the messages of rules.
func checks(w *bytes.Buffer, label string, rules []rule) {
	for _, r := range rules {
		fmt.Fprintf(w, "- %s: %s\n", label, flow(r.Message))
	}
}

// generated is the first line of a page.
func generated(source string) string {
	return "<!-- Generated by make generate; edit " + source + " instead. -->\n\n"
}

// code is a value as one writes it in YAML, on one line.
func code(v any) string {
	if s, ok := v.(string); ok {
		return "`" + s + "`"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return "`" + string(data) + "`"
}

// flow joins the lines of a comment and keeps its paragraphs. Angle brackets would be HTML.
func flow(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(strings.Join(paragraphs, "\n\n"))
}

// brief is the first sentence of a comment.
func brief(text string) string {
	text = flow(text)
	if first, _, found := strings.Cut(text, ". "); found {
		return first + "."
	}
	return text
}

// cell is text within a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n\n", "<br>").Replace(text)
}

// anchor of a heading, as code hosting sites make it.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(".[]{}", r) {
			return -1
		}
		return r
	}, strings.ToLower(heading))
}
