// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// checkImport holds what the schema cannot say of an import, and what has to wait for its end.
func checkImport(s *facts.Cluster) []check.Problem {
	if s.Spec.From == nil || s.Spec.From.Server == nil {
		if c := s.Spec.CutOver; c != nil {
			return []check.Problem{check.Invalid("spec.cutOver.id", c.ID, "this Database is not imported from a server, because it has no spec.from.server: remove spec.cutOver")}
		}
		return nil
	}
	if !s.Importing() {
		return nil
	}
	var ps []check.Problem
	first := s.Traits.FirstImport
	switch {
	case first == "":
		return nil // checkFeatures reports that the engine begins with nothing
	case s.Engine.CompareVersions(s.Spec.Version, first) < 0:
		ps = append(ps, check.Invalid("spec.version", s.Spec.Version, fmt.Sprintf(
			"spec.from.server needs version %s or later, which applies changes as the owner of a table and not as superuser: set a later version", first)))
	}
	for i, d := range s.Spec.From.Server.Databases {
		if !slices.ContainsFunc(s.Spec.Databases, func(l v1alpha1.LogicalDatabase) bool { return l.Name == d.Name }) {
			ps = append(ps, check.Invalid(fmt.Sprintf("spec.from.server.databases[%d].name", i), d.Name, "must be one of spec.databases: add it there, or correct the name"))
		}
	}
	for i, c := range s.Spec.Consumers {
		if slices.Contains(s.Traits.ImportLogins, facts.Login(c.Name)) {
			ps = append(ps, check.Invalid(fmt.Sprintf("spec.consumers[%d].name", i), c.Name, "its login would be a role that the import uses itself: choose another name"))
		}
	}
	from := map[string]string{}
	for _, d := range s.Imported() {
		if other := from[d.Source]; other != "" {
			ps = append(ps, check.Invalid("spec.from.server.databases", d.Source, fmt.Sprintf(
				"is the source of both %q and %q: a database of the source fills one: make another Database for the second", other, d.Name)))
		}
		from[d.Source] = d.Name
	}
	if s.Spec.Replicas > 1 && s.Spec.Availability.Durability == v1alpha1.DurabilityAsynchronous {
		ps = append(ps, check.Invalid("spec.availability.durability", s.Spec.Availability.Durability,
			"a failover during the import could lose changes that the source keeps no more: set Synchronous until the cut-over"))
	}
	if data := s.DataVersion(); data != "" && data != s.Spec.Version {
		ps = append(ps, check.Invalid("spec.version", s.Spec.Version, fmt.Sprintf("a Database is not upgraded during its import: set %q, and upgrade it after the cut-over", data)))
	}
	if r := s.Spec.Restore; r != nil {
		ps = append(ps, check.Invalid("spec.restore.id", r.ID, "a Database is not restored during its import: remove it, or end the import with spec.cutOver first"))
	}
	return ps
}
