// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/allow"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/placement"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// checkAllowed finds what a spec names and the platform does not allow in the namespace of its Database.
func checkAllowed(s *facts.Cluster) []check.Problem {
	var ps []check.Problem
	settings := s.Settings.Database
	const setting = "database.allowed"
	list := func(name string, entries []inputv1alpha1.Allowed) allow.List {
		return allow.List{Setting: setting + "." + name, Namespace: s.Namespace, Entries: entries}
	}
	if e := s.Spec.Expose; e != nil && e.Hostname != "" {
		if why := list("hostnames", settings.Allowed.Hostnames).Host(e.Hostname); why != "" {
			ps = append(ps, check.Invalid("spec.expose.hostname", e.Hostname, why))
		}
	}
	if t := s.Spec.TLS; t != nil && t.IssuerRef != nil {
		issuers := list("issuers", settings.Allowed.Issuers)
		if own := settings.IssuerRef; own != nil {
			issuers.Own = []string{issuer(*own)}
		}
		if why := issuers.Name(issuer(*t.IssuerRef)); why != "" {
			ps = append(ps, check.Invalid("spec.tls.issuerRef", issuer(*t.IssuerRef), why))
		}
	}
	if role := s.Role(); role != "" {
		if why := list("roles", settings.Allowed.Roles).Name(role); why != "" {
			ps = append(ps, check.Invalid("spec.workloadIdentity.roleArn", role, why))
		}
	}
	lists := placement.Lists{
		Setting: setting, Namespace: s.Namespace, PriorityClasses: settings.Allowed.PriorityClasses, Tolerations: settings.Allowed.Tolerations,
	}
	return append(ps, check.Errors(lists.Allowed(pod, s.Scheduling()))...)
}

// issuer as kind/name.
func issuer(ref v1alpha1.IssuerReference) string {
	return cmp.Or(ref.Kind, "ClusterIssuer") + "/" + ref.Name
}
