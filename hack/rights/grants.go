// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// roleCompose is aggregated to Crossplane's own role.
const roleCompose = "capstan:compose"

// A right is one verb of one resource in one role.
type right struct {
	Role string
	// Resource with its group behind a dot, as in statefulsets.apps, and a subresource behind a slash.
	Resource string
	Verb     string
	// names to which it is restricted, with a comma between them.
	names string
}

func (r right) key() right { return right{Role: r.Role, Resource: r.Resource, Verb: r.Verb} }

func (r right) String() string { return r.Role + " " + r.Resource + " " + r.Verb }

// resourceIn a group.
func resourceIn(group, resource string) string {
	if group == "" {
		return resource
	}
	name, sub, nested := strings.Cut(resource, "/")
	if nested {
		return name + "." + group + "/" + sub
	}
	return name + "." + group
}

// grants are all rights of the ClusterRoles in a file, in its order.
func grants(platform []byte) ([]right, error) {
	var all []right
	for doc := range bytes.SplitSeq(platform, []byte("\n---\n")) {
		var role struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Rules []struct {
				Groups    []string `json:"apiGroups"`
				Resources []string `json:"resources"`
				Verbs     []string `json:"verbs"`
				Names     []string `json:"resourceNames"`
			} `json:"rules"`
		}
		if err := yaml.Unmarshal(doc, &role); err != nil {
			return nil, fmt.Errorf("cannot decode an object of %s: %w", platformFile, err)
		}
		if role.Kind != "ClusterRole" {
			continue
		}
		for _, rule := range role.Rules {
			for _, group := range rule.Groups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						r := right{
							Role: role.Metadata.Name, Resource: resourceIn(group, resource), Verb: verb,
							names: strings.Join(rule.Names, ", "),
						}
						if slices.Contains(all, r) {
							return nil, fmt.Errorf("%s grants %s twice", platformFile, r)
						}
						all = append(all, r)
					}
				}
			}
		}
	}
	return all, nil
}
