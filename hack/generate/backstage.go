// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// backstage makes a software template for Backstage, and the manifest that it fills.
func backstage(files tree, c crd, f curated) error {
	pages, err := yaml.Marshal(f.pages(c))
	if err != nil {
		return fmt.Errorf("cannot encode the template of kind %q: %w", c.Spec.Names.Kind, err)
	}
	values := map[string]string{
		"Notice": c.notice(), "Kind": c.Spec.Names.Kind, "Lower": strings.ToLower(c.Spec.Names.Kind),
		"APIVersion": c.Spec.Group + "/" + beta, "Pages": indented(string(pages), "    "), "Spec": f.spec(),
	}
	for name, text := range map[string]*template.Template{"template.yaml": softwareTemplate, "manifest.njk": manifestTemplate} {
		var out bytes.Buffer
		if err := text.Execute(&out, values); err != nil {
			return fmt.Errorf("cannot write the template of kind %q: %w", c.Spec.Names.Kind, err)
		}
		files[path.Join("integrations", "backstage", values["Lower"], name)] = out.Bytes()
	}
	return nil
}

// What the templates of all kinds share. Backstage has a syntax of its own in them, so that this program's is [[ ]].
var (
	softwareTemplate = template.Must(template.New("template").Delims("[[", "]]").Parse(`[[ .Notice ]]apiVersion: scaffolder.backstage.io/v1beta3
kind: Template
metadata:
  name: capstan-[[ .Lower ]]
  title: [[ .Kind ]]
  description: A new [[ .Kind ]] of Capstan, as a pull request for the repository that is applied to the cluster.
  tags: [capstan]
spec:
  type: capstan
  parameters:
[[ .Pages ]]  steps:
    - id: render
      name: Write the manifest
      action: fetch:template:file
      input:
        url: ./manifest.njk
        targetPath: ${{ parameters.namespace }}/[[ .Lower ]]-${{ parameters.name }}.yaml
        values: ${{ parameters }}
        trimBlocks: true
        lstripBlocks: true
    - id: show
      name: Show the manifest
      action: debug:log
      input:
        listWorkspace: with-contents
    - id: publish
      name: Open a pull request
      # The repository is a setting of the portal: app-config.capstan.yaml has it. Without it, the log of the step before has the manifest.
      if: ${{ environment.parameters.capstanRepository }}
      action: publish:github:pull-request
      input:
        repoUrl: ${{ environment.parameters.capstanRepository }}
        branchName: capstan-${{ parameters.namespace }}-[[ .Lower ]]-${{ parameters.name }}
        title: "[[ .Kind ]] ${{ parameters.name }} in namespace ${{ parameters.namespace }}"
        description: Made by the template capstan-[[ .Lower ]].
  output:
    links:
      - title: Pull request
        if: ${{ steps.publish.output.remoteUrl }}
        url: ${{ steps.publish.output.remoteUrl }}
`))

	manifestTemplate = template.Must(template.New("manifest").Delims("[[", "]]").Parse(`apiVersion: [[ .APIVersion ]]
kind: [[ .Kind ]]
metadata:
  name: ${{ values["name"] | dump }}
  namespace: ${{ values["namespace"] | dump }}
spec:
[[ .Spec ]]`))
)

// A page of a form in Backstage, which is a JSON schema of draft 7.
type page struct {
	Title        string              `json:"title"`
	Required     []string            `json:"required,omitempty"`
	Dependencies map[string][]string `json:"dependencies,omitempty"`
	Properties   map[string]any      `json:"properties"`
	Order        []string            `json:"ui:order"`
}

// pages of a form: where the object is, the fields that are seen at once, and the others.
func (f curated) pages(c crd) []page {
	where := []string{paramName, paramNamespace}
	pages := []page{{
		Title: "Where", Required: where, Order: where,
		Properties: map[string]any{paramName: nameProperty(c), paramNamespace: namespaceProperty()},
	}}
	for _, group := range []struct{ name, title string }{{groupBasic, c.Spec.Names.Kind}, {groupAdvanced, "More"}} {
		p := page{Title: group.title, Dependencies: map[string][]string{}, Properties: map[string]any{}}
		for _, at := range f.Order {
			if f.Properties[at]["x-ui-group"] != group.name {
				continue
			}
			p.Properties[at] = parameter(f.Properties[at])
			p.Order = append(p.Order, at)
			if with, ok := f.Dependent[at]; ok {
				p.Dependencies[at] = with
			}
			if slices.Contains(f.Required, at) {
				p.Required = append(p.Required, at)
			}
		}
		if len(p.Order) > 0 {
			pages = append(pages, p)
		}
	}
	return pages
}

// parameter of a template: a field of a form without the hints that only other portals read.
func parameter(p map[string]any) map[string]any {
	shown := map[string]any{}
	for name, v := range p {
		switch {
		case name == "x-ui-placeholder":
			// In a list of options it is one more, which leaves the field unset.
			shown["ui:placeholder"] = "default: " + fmt.Sprint(v)
		case !strings.HasPrefix(name, "x-ui-"):
			shown[name] = v
		}
	}
	if p["type"] == "boolean" {
		// An empty check box would look like false, where nothing is set and the default may be true.
		shown["ui:widget"] = "radio"
	}
	return shown
}

// spec of the manifest: what a person has filled in, and the blocks around it. Each value is JSON, which is YAML too, so that no text ends
// early and begins another field.
func (f curated) spec() string {
	var out strings.Builder
	f.write(&out, "", f.Order, "", "  ")
	return out.String()
}

// write the fields of a block, whose paths begin with its path. What is below the condition is not asked again.
func (f curated) write(out *strings.Builder, block string, paths []string, condition, indent string) {
	for len(paths) > 0 {
		name, _, deeper := strings.Cut(strings.TrimPrefix(paths[0], block), ".")
		at := block + name
		same := []string{paths[0]}
		if deeper {
			same = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !strings.HasPrefix(p, at+".") })
		}
		paths = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return slices.Contains(same, p) })
		filled := f.filled(same)
		asked := filled == "" || filled == condition
		if !asked {
			fmt.Fprintf(out, "%s{%% if %s %%}\n", indent, filled)
		}
		if deeper {
			fmt.Fprintf(out, "%s%s:\n", indent, name)
			f.write(out, at+".", same, filled, indent+"  ")
		} else {
			fmt.Fprintf(out, "%s%s: ${{ %s | dump }}\n", indent, name, value(at))
		}
		if !asked {
			fmt.Fprintf(out, "%s{%% endif %%}\n", indent)
		}
	}
}

// filled is the condition that a person has filled one of the fields: none if one of them is required. An empty text or list is not filled; 0
// and false are values.
func (f curated) filled(paths []string) string {
	var some []string
	for _, p := range paths {
		switch kind := f.Properties[p]["type"]; {
		case slices.Contains(f.Required, p):
			return ""
		case kind == typeString, kind == "array":
			some = append(some, value(p)+" | length")
		default:
			some = append(some, value(p)+" is defined")
		}
	}
	return strings.Join(some, " or ")
}

// value of a field. Its name has dots, which mean nothing between brackets.
func value(at string) string { return "values[" + strconv.Quote(at) + "]" }

// indented is a text with every line further to the right that is not empty.
func indented(text, by string) string { return lines.ReplaceAllString(text, by+"$0") }

var lines = regexp.MustCompile(`(?m)^.+$`)
