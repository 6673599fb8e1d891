// SPDX-License-Identifier: Apache-2.0

// Package allow decides whether a value of a spec is in a list that the platform's settings have.
package allow

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/input/v1alpha1"
)

// placeholder in a name of a list, for the namespace of the object.
const placeholder = "{namespace}"

// every name, or every name behind a slash.
const every = "*"

// A List of what a namespace may name.
type List struct {
	// Setting is the path of the list in the settings.
	Setting string

	// Namespace of the object.
	Namespace string

	// Own are names that the platform has chosen itself, and that are always allowed.
	Own []string

	// Entries as in the settings. Nil allows everything.
	Entries []v1alpha1.Allowed
}

// names that the list has for the namespace.
func (l List) names() []string {
	var all []string
	for _, e := range l.Entries {
		if len(e.Namespaces) == 0 || slices.Contains(e.Namespaces, l.Namespace) {
			all = append(all, strings.ReplaceAll(e.Name, placeholder, l.Namespace))
		}
	}
	return all
}

// Name returns what is wrong with a name, if it is not in the list.
func (l List) Name(name string) string { return l.verdict(name, sameName) }

// Host returns what is wrong with the name of a host, if it is not in the list. An empty name stands for every host.
func (l List) Host(host string) string { return l.verdict(host, sameHost) }

// Toleration returns what is wrong with a toleration, if it is not in the list.
func (l List) Toleration(t corev1.Toleration) string {
	return l.verdict(Taints(t), func(pattern, taints string) bool {
		key, _, _ := strings.Cut(taints, "=")
		return pattern == every || pattern == taints || pattern == key
	})
}

// Taints that a toleration tolerates, in the form that lists have: *, key or key=value.
func Taints(t corev1.Toleration) string {
	switch {
	case t.Key == "":
		return every
	case t.Operator == "" || t.Operator == corev1.TolerationOpEqual:
		return t.Key + "=" + t.Value
	default:
		return t.Key
	}
}

func (l List) verdict(value string, same func(pattern, value string) bool) string {
	if l.Entries == nil || slices.Contains(l.Own, value) {
		return ""
	}
	names := l.names()
	if slices.ContainsFunc(names, func(pattern string) bool { return same(pattern, value) }) {
		return ""
	}
	may := "nothing here"
	if all := append(slices.Clone(l.Own), names...); len(all) > 0 {
		may = strings.Join(all[:min(len(all), mostNames)], ", ")
		if n := len(all) - mostNames; n > 0 {
			may += fmt.Sprintf(" and %d more", n)
		}
	}
	return fmt.Sprintf("the platform allows only %s for namespace %s: change it, or ask the platform team to add it to %s of its settings",
		may, l.Namespace, l.Setting)
}

// mostNames that a message lists.
const mostNames = 8

func sameName(pattern, name string) bool {
	if group, ok := strings.CutSuffix(pattern, "/"+every); ok {
		return strings.HasPrefix(name, group+"/")
	}
	return pattern == every || pattern == name
}

// sameHost compares with a name, or with every name below one. A host that begins with *. itself is every name below one.
func sameHost(pattern, host string) bool {
	if parent, ok := strings.CutPrefix(pattern, every+"."); ok {
		return strings.HasSuffix(host, "."+parent)
	}
	return pattern == host
}
