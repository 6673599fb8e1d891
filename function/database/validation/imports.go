// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// checkImport holds what the schema cannot say of an import, and what has to wait for its end.
func checkImport(s *facts.Cluster) []check.Problem {
	var ps []check.Problem
	if c := s.Spec.CutOver; c != nil && (s.Spec.From == nil || s.Spec.From.Server == nil) {
		ps = append(ps, check.Invalid("spec.cutOver.id", c.ID, "this Database is not imported from a server, because it has no spec.from.server: remove spec.cutOver"))
	}
	if !s.Importing() {
		return ps
	}
	imports, dumps := s.Traits.Imports, s.Dumps() != nil
	feature := engine.FeatureImport
	if dumps {
		feature = engine.FeatureDump
	}
	if imports == nil || s.Engine.Lacks(feature) != "" {
		return ps // checkFeatures reports that the engine imports nothing
	}
	if s.Engine.CompareVersions(s.Spec.Version, imports.First) < 0 {
		ps = append(ps, check.Invalid("spec.version", s.Spec.Version, tooOld(dumps, imports.First)))
	}
	for i, name := range importedNames(s) {
		if !slices.ContainsFunc(s.Spec.Databases, func(l v1alpha1.LogicalDatabase) bool { return l.Name == name }) {
			ps = append(ps, check.Invalid(fmt.Sprintf("%s.databases[%d].name", importField(dumps), i), name, "must be one of spec.databases: add it there, or correct the name"))
		}
	}
	for i, c := range s.Spec.Consumers {
		if slices.Contains(imports.Logins, facts.Login(c.Name)) {
			ps = append(ps, check.Invalid(fmt.Sprintf("spec.consumers[%d].name", i), c.Name, "its login would be a role that the import uses itself: choose another name"))
		}
	}
	if !dumps {
		ps = append(ps, sourcesOnce(s)...)
		ps = append(ps, checkServer(s, imports)...)
	}
	return append(ps, duringImport(s, dumps)...)
}

// importField is the source of an import.
func importField(dumps bool) string {
	if dumps {
		return "spec.from.dump"
	}
	return "spec.from.server"
}

// tooOld is why a version imports nothing.
func tooOld(dumps bool, first string) string {
	if dumps {
		return fmt.Sprintf("spec.from.dump needs version %s or later, in which the login of the restore can act as the owner of a database and has no right of its own: set a later version", first)
	}
	return fmt.Sprintf("spec.from.server needs version %s or later, which applies changes as the owner of a table and not as superuser: set a later version", first)
}

// importedNames are the databases that an import names.
func importedNames(s *facts.Cluster) []string {
	var names []string
	if d := s.Dumps(); d != nil {
		for _, f := range d.Databases {
			names = append(names, f.Name)
		}
		return names
	}
	for _, d := range s.Spec.From.Server.Databases {
		names = append(names, d.Name)
	}
	return names
}

// sourcesOnce holds that a database of a server fills one here.
func sourcesOnce(s *facts.Cluster) []check.Problem {
	var ps []check.Problem
	from := map[string]string{}
	for _, d := range s.Imported() {
		if other := from[d.Source]; other != "" {
			ps = append(ps, check.Invalid("spec.from.server.databases", d.Source, fmt.Sprintf(
				"is the source of both %q and %q: a database of the source fills one: make another Database for the second", other, d.Name)))
		}
		from[d.Source] = d.Name
	}
	return ps
}

// checkServer holds what an engine cannot do with a server.
func checkServer(s *facts.Cluster, imports *engine.Imports) []check.Problem {
	var ps []check.Problem
	from := s.Spec.From.Server
	if _, ok := imports.TLS[from.TLS]; !ok {
		ps = append(ps, check.Invalid("spec.from.server.tls", string(from.TLS), "a login of this engine shows its password to the server, which has to prove first who it is: set VerifyFull, "+
			"or VerifyCA for a certificate with another name, and ca.crt in the Secret"))
	}
	for i, skip := range from.Skip {
		if !slices.Contains(imports.Skips, skip) {
			ps = append(ps, check.Invalid(fmt.Sprintf("spec.from.server.skip[%d]", i), string(skip), "servers of this engine have none: remove it"))
		}
	}
	for i, d := range from.Databases {
		if d.Source != "" && d.Source != d.Name && !imports.Renames {
			ps = append(ps, check.Invalid(fmt.Sprintf("spec.from.server.databases[%d].source", i), d.Source,
				"statements in the log of the source have its name in them, so the database keeps it here: remove it, and name the database like the one of the source"))
		}
	}
	return ps
}

// duringImport holds what has to wait for the end of an import.
func duringImport(s *facts.Cluster, dumps bool) []check.Problem {
	var ps []check.Problem
	lost, end, ended := "a failover during the import could lose changes that the source keeps no more: set Synchronous until the cut-over", "the cut-over", "end the import with spec.cutOver first"
	if dumps {
		lost, end, ended = "a failover could lose rows of a dump after it is restored, and a dump is read once: set Synchronous until the condition Imported is True", "the import", "wait for the condition Imported first"
	}
	if s.Spec.Replicas > 1 && s.Spec.Availability.Durability == v1alpha1.DurabilityAsynchronous {
		ps = append(ps, check.Invalid("spec.availability.durability", s.Spec.Availability.Durability, lost))
	}
	if data := s.DataVersion(); data != "" && data != s.Spec.Version {
		ps = append(ps, check.Invalid("spec.version", s.Spec.Version, fmt.Sprintf("a Database is not upgraded during its import: set %q, and upgrade it after %s", data, end)))
	}
	if r := s.Spec.Restore; r != nil {
		ps = append(ps, check.Invalid("spec.restore.id", r.ID, "a Database is not restored during its import: remove it, or "+ended))
	}
	return ps
}
