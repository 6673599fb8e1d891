// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// Imports reports whether the Database is filled from a running server or from dumps, or was. It never changes.
func (s *Cluster) Imports() bool {
	return s.Generation == 1 && s.Spec.From != nil && (s.Spec.From.Server != nil || s.Spec.From.Dump != nil)
}

// Dumps fill the Database, or did; nil when it is not filled from dumps.
func (s *Cluster) Dumps() *v1alpha1.DatabaseSourceDump {
	if !s.Imports() {
		return nil
	}
	return s.Spec.From.Dump
}

// Importing reports whether the source is still the one that takes writes, or dumps are not restored yet. Once consumers had logins, neither
// holds, also without the record of the end.
func (s *Cluster) Importing() bool {
	if !s.Imports() || s.Memory.Imported != nil {
		return false
	}
	o := s.Observed[names.Access]
	return o == nil || len(compose.List(o.Map(), "spec", "forProvider", "logins")) == 0
}

// ImportReport is what the leader reports of the import.
func (s *Cluster) ImportReport() observev1alpha1.ImportReport {
	if s.Seen.Import == nil {
		return observev1alpha1.ImportReport{}
	}
	return *s.Seen.Import
}

// Imported databases, each with its source.
func (s *Cluster) Imported() []v1alpha1.ImportedDatabase {
	all := s.Spec.From.Server.Databases
	if len(all) == 0 {
		for _, d := range s.Spec.Databases {
			all = append(all, v1alpha1.ImportedDatabase{Name: d.Name})
		}
	}
	out := make([]v1alpha1.ImportedDatabase, 0, len(all))
	for _, d := range all {
		out = append(out, v1alpha1.ImportedDatabase{Name: d.Name, Source: cmp.Or(d.Source, d.Name)})
	}
	return out
}
