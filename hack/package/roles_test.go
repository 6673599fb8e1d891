// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// notWritten are the kinds that no application team writes, and why.
var notWritten = map[string]string{
	"accesses.access.capstan.dev":        "composed by a Database",
	"analyses.observe.capstan.dev":       "composed by an Algorithm",
	"autoscalers.observe.capstan.dev":    "composed by an Algorithm",
	"clusterproviderconfigs.capstan.dev": "serves all namespaces, so that the platform team writes it",
	"flinkjobs.observe.capstan.dev":      "composed by a Pipeline",
	"hooks.observe.capstan.dev":          "composed by an Algorithm",
	"jobhistories.observe.capstan.dev":   "composed by a Pipeline",
	"lineages.observe.capstan.dev":       "composed by a Pipeline or Training",
	"providerconfigusages.capstan.dev":   "written by the provider",
	"runs.observe.capstan.dev":           "composed by a Training",
	"topologies.observe.capstan.dev":     "composed by a Database",
	"volumeclaims.storage.capstan.dev":   "composed by a Database",
}

// TestRoles compares the sample roles with the kinds that there are.
func TestRoles(t *testing.T) {
	read, write := []string{"get", "list", "watch"}, []string{"create", "update", "patch", "delete"}
	view, edit, oncall := rightsOf(t, "capstan-view"), rightsOf(t, "capstan-edit"), rightsOf(t, "capstan-oncall")
	all := kinds(t)
	for _, kind := range all {
		if missing := without(read, view[kind]); len(missing) > 0 {
			t.Errorf("capstan-view: want %v of %s", missing, kind)
		}
		// Whoever is woken up looks at anything, and is not always a user of the namespace.
		if missing := without(read, oncall[kind]); len(missing) > 0 {
			t.Errorf("capstan-oncall: want %v of %s", missing, kind)
		}
		reason, ok := notWritten[kind]
		switch {
		case ok && len(edit[kind]) > 0:
			t.Errorf("capstan-edit: want no right to write %s, which is %s", kind, reason)
		case !ok && len(without(write, edit[kind])) > 0:
			t.Errorf("capstan-edit: want %v of %s", without(write, edit[kind]), kind)
		}
	}
	for kind := range notWritten {
		if !slices.Contains(all, kind) {
			t.Errorf("there is no kind %s", kind)
		}
	}
	// What commands of docs/database-runbook.md do.
	for resource, verbs := range map[string][]string{
		"pods/exec.": {"get", "create"}, "pods/log.": {"get"}, "pods.": {"get", "list", "delete"},
		"persistentvolumeclaims.": {"get", "patch", "delete"}, "rolebindings.rbac.authorization.k8s.io": {"get"},
		"databases.capstan.dev": {"get", "list", "patch"}, "topologies.observe.capstan.dev": {"get", "list"},
		"analyses.observe.capstan.dev": {"get"}, "accesses.access.capstan.dev": {"get"}, "volumeclaims.storage.capstan.dev": {"get"},
	} {
		if missing := without(verbs, oncall[resource]); len(missing) > 0 {
			t.Errorf("capstan-oncall: want %v of %s", missing, resource)
		}
	}
	// A right to write is never wider than what there is to read.
	for kind := range edit {
		if len(view[kind]) == 0 {
			t.Errorf("capstan-edit has %s, which capstan-view lacks", kind)
		}
	}
}

// kinds of all APIs, as plural.group, and their subresource scale.
func kinds(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"apis/*/definition.yaml", "package/provider/crds/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root(t), pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("cannot find %s: %v", pattern, err)
		}
		for _, file := range files {
			rel, err := filepath.Rel(root(t), file)
			if err != nil {
				t.Fatal(err)
			}
			name := source(t, rel)[0].Metadata.Name
			names = append(names, name)
			if strings.Contains(string(read(t, rel)), "\n      scale:\n") {
				plural, group, _ := strings.Cut(name, ".")
				names = append(names, plural+"/scale."+group)
			}
		}
	}
	return names
}

// rightsOf returns the verbs of a role by resource.group.
func rightsOf(t *testing.T, role string) map[string][]string {
	t.Helper()
	rights := map[string][]string{}
	for doc := range strings.SplitSeq(string(read(t, "package/roles.yaml")), "\n---\n") {
		var o struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Rules []struct {
				APIGroups []string `json:"apiGroups"`
				Resources []string `json:"resources"`
				Verbs     []string `json:"verbs"`
			} `json:"rules"`
		}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(err)
		}
		if o.Metadata.Name != role {
			continue
		}
		if diff := cmp.Diff("true", o.Metadata.Labels["rbac.authorization.k8s.io/aggregate-to-admin"]); diff != "" {
			t.Errorf("%s has to be part of the role admin: -want, +got:\n%s", role, diff)
		}
		for _, r := range o.Rules {
			for _, resource := range r.Resources {
				name := resource + "." + r.APIGroups[0]
				rights[name] = append(rights[name], r.Verbs...)
			}
		}
	}
	if len(rights) == 0 {
		t.Fatalf("cannot find the role %s", role)
	}
	return rights
}

func without(want, have []string) []string {
	return slices.DeleteFunc(slices.Clone(want), func(v string) bool { return slices.Contains(have, v) })
}
