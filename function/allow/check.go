// SPDX-License-Identifier: Apache-2.0

package allow

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-dev/capstan/input/v1alpha1"
)

// CheckAlgorithms returns what is wrong with the lists for Algorithms.
func CheckAlgorithms(a v1alpha1.AllowedToAlgorithms) error {
	return checked([]rule{
		{a.Hosts, host},
		{a.Gateways, grouped(validation.IsDNS1123Label, "gateway/shared")},
		{a.PriorityClasses, plain},
		{a.ServiceAccounts, plain},
		{a.Tolerations, toleration},
	})
}

// CheckDatabases returns what is wrong with the lists for Databases.
func CheckDatabases(d v1alpha1.AllowedToDatabases) error {
	return checked([]rule{
		{d.Hostnames, host},
		{d.Issuers, grouped(issuerKind, "ClusterIssuer/platform")},
	})
}

// CheckTrainings returns what is wrong with the lists for Trainings.
func CheckTrainings(t v1alpha1.AllowedToTrainings) error {
	return checked([]rule{{t.Queues, plain}})
}

// A rule for the names of a list.
type rule struct {
	entries []v1alpha1.Allowed
	check   func(name string) []string
}

func checked(rules []rule) error {
	for _, r := range rules {
		for _, e := range r.entries {
			// Any namespace will do: what is wrong with the name is so for all of them.
			if errs := r.check(strings.ReplaceAll(e.Name, placeholder, "a")); len(errs) > 0 {
				return fmt.Errorf("%q: %s", e.Name, strings.Join(errs, ", and "))
			}
			for _, ns := range e.Namespaces {
				if errs := validation.IsDNS1123Label(ns); len(errs) > 0 {
					return fmt.Errorf("%q is not the name of a namespace: %s", ns, strings.Join(errs, ", and "))
				}
			}
		}
	}
	return nil
}

func host(name string) []string {
	return validation.IsDNS1123Subdomain(strings.TrimPrefix(name, every+"."))
}

func plain(name string) []string {
	if name == every {
		return nil
	}
	return validation.IsDNS1123Subdomain(name)
}

// grouped names have a group, which has rules of its own, and a slash.
func grouped(group func(string) []string, example string) func(string) []string {
	return func(name string) []string {
		before, after, ok := strings.Cut(name, "/")
		if !ok {
			return []string{"must have two parts with a slash between them, for instance " + example}
		}
		return append(group(before), plain(after)...)
	}
}

func issuerKind(kind string) []string {
	if kind == "Issuer" || kind == "ClusterIssuer" {
		return nil
	}
	return []string{"must begin with Issuer/ or ClusterIssuer/"}
}

func toleration(name string) []string {
	if name == every {
		return nil
	}
	key, value, _ := strings.Cut(name, "=")
	return append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
}
