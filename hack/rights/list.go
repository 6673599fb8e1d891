// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// header of the list. Comments are not kept when it is written.
const header = `# SPDX-License-Identifier: Apache-2.0

# What package/platform.yaml grants to programs, and why. Each verb is either used, or has a reason why it is granted nevertheless.
# ` + "`make rights`" + ` writes what the last e2e run used; the rest is written by hand. docs/rights.md is generated from it.
#
#   reasons  why verbs are granted that no e2e test uses, by name
#   anyway   reasons that hold whether a verb is used or not. With another one, a verb must not be used
#   rights   need: the code that needs the resource, and for what. used: verbs of the audit logs. unused: other verbs, with a reason
`

// A list of all rights.
type list struct {
	Reasons map[string]string `json:"reasons"`
	Anyway  []string          `json:"anyway,omitempty"`
	Rights  []entry           `json:"rights"`
}

// An entry is one resource in one role.
type entry struct {
	Role     string            `json:"role"`
	Resource string            `json:"resource"`
	Need     string            `json:"need"`
	Used     []string          `json:"used,omitempty"`
	Unused   map[string]string `json:"unused,omitempty"`
}

func (e entry) right(verb string) right { return right{Role: e.Role, Resource: e.Resource, Verb: verb} }

func parse(data []byte) (*list, error) {
	l := &list{}
	if err := yaml.UnmarshalStrict(data, l); err != nil {
		return nil, fmt.Errorf("cannot decode the list of rights: %w", err)
	}
	return l, nil
}

func (l *list) text() ([]byte, error) {
	data, err := yaml.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the list of rights: %w", err)
	}
	return append([]byte(header), data...), nil
}

// contradictions between what is granted, what the list says, and what runs used. Of a whole run, what it did not use is not used.
func (l *list) contradictions(granted []right, used set, whole bool) []string {
	var found []string
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }

	left := set{}
	for _, r := range granted {
		left[r.key()] = true
	}
	listed, named := set{}, map[string]bool{}
	visit := func(r right) {
		if listed[r] {
			report("%s is listed twice", r)
		}
		listed[r] = true
		if !left[r] {
			report("%s is listed, and not granted: remove it", r)
		}
	}
	for _, e := range l.Rights {
		if e.Need == "" {
			report("%s %s does not say what needs it", e.Role, e.Resource)
		}
		for _, verb := range e.Used {
			r := e.right(verb)
			visit(r)
			if whole && !used[r] {
				report("%s was used by no e2e test: remove the right, or give a reason", r)
			}
		}
		for _, verb := range slices.Sorted(maps.Keys(e.Unused)) {
			r, reason := e.right(verb), e.Unused[verb]
			visit(r)
			named[reason] = true
			if l.Reasons[reason] == "" {
				report("%s has the reason %q, which is not in the list", r, reason)
			}
			if used[r] && !slices.Contains(l.Anyway, reason) {
				report("%s has a reason why it is not used, and was used", r)
			}
		}
	}
	for _, r := range granted {
		if !listed[r.key()] {
			report("%s is granted, and neither used nor with a reason: remove the right, or give a reason", r)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(l.Reasons)) {
		if !named[reason] {
			report("the reason %q is given for nothing", reason)
		}
	}
	return found
}

// record what runs used: of a whole run all of it, otherwise also what is in the list already. Verbs that lose their use lack a reason.
func (l *list) record(used set, whole bool) {
	for i := range l.Rights {
		e := &l.Rights[i]
		verbs := map[string]bool{}
		for _, verb := range e.Used {
			verbs[verb] = !whole || used[e.right(verb)]
		}
		for r := range used {
			if r.Role == e.Role && r.Resource == e.Resource {
				verbs[r.Verb] = true
				delete(e.Unused, r.Verb)
			}
		}
		maps.DeleteFunc(verbs, func(_ string, is bool) bool { return !is })
		e.Used = slices.Sorted(maps.Keys(verbs))
	}
	given := map[string]bool{}
	for _, e := range l.Rights {
		for _, reason := range e.Unused {
			given[reason] = true
		}
	}
	maps.DeleteFunc(l.Reasons, func(name, _ string) bool { return !given[name] })
}

// page shows all rights to people.
func (l *list) page(granted []right) []byte {
	names := map[right]string{}
	for _, r := range granted {
		names[right{Role: r.Role, Resource: r.Resource}] = r.names
	}
	// Headings and introductions of roles, in the order of the list.
	titles := map[string]string{
		roleCompose:               "Crossplane, for what Algorithms and Databases compose",
		"capstan:postgres-member": "Members of a PostgreSQL Database",
		"capstan:mysql-member":    "Members of a MySQL Database",
		"capstan:snapshot":        "Pods that take snapshots of a PostgreSQL Database",
		"capstan:activator":       "Activators of Algorithms that sleep",
		"capstan:provider":        "The provider",
	}
	w := &bytes.Buffer{}
	fmt.Fprint(w, `<!-- Generated by make generate; edit hack/rights/rights.yaml instead. -->

# Rights of programs

What [`+"`platform.yaml`"+`](install.md#what-platformyaml-is-for) grants, beside the rights that Crossplane itself grants to every provider. The
function has no rights: it opens no connection. *Used* are the verbs in the audit logs of the e2e tests. Every other verb has a reason. CI fails
for a right without a use and a reason, and for a reason that is not needed any more.
`)
	last := ""
	for _, e := range l.Rights {
		if e.Role != last {
			fmt.Fprintf(w, "\n## %s\n\nClusterRole `%s`\n\n| resource | needed by | used | not used |\n|---|---|---|---|\n", titles[e.Role], e.Role)
			last = e.Role
		}
		var unused []string
		for _, reason := range slices.Sorted(maps.Keys(l.Reasons)) {
			var verbs []string
			for _, verb := range slices.Sorted(maps.Keys(e.Unused)) {
				if e.Unused[verb] == reason {
					verbs = append(verbs, verb)
				}
			}
			if len(verbs) > 0 {
				unused = append(unused, fmt.Sprintf("%s: [%s](#reasons)", strings.Join(verbs, ", "), reason))
			}
		}
		resource := "`" + e.Resource + "`"
		if only := names[e.right("")]; only != "" {
			resource += ", only " + only
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", resource, e.Need, strings.Join(e.Used, ", "), strings.Join(unused, "; "))
	}
	fmt.Fprint(w, "\n## Reasons\n\n| reason | why the verb is granted |\n|---|---|\n")
	for _, reason := range slices.Sorted(maps.Keys(l.Reasons)) {
		fmt.Fprintf(w, "| %s | %s |\n", reason, l.Reasons[reason])
	}
	return w.Bytes()
}
