// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// importFile is the server that fills the Database. It stays after the cut-over, with a word that the import has ended: the record of that
// outlives the data, which is not imported a second time.
func importFile(s *facts.Cluster) *engine.Import {
	if !s.Imports() || s.Dumps() != nil {
		return nil
	}
	from, port := s.Spec.From.Server, s.Traits.Ports.Client
	if from.Port != nil {
		port = *from.Port
	}
	return &engine.Import{
		Host: from.Host, Port: port, TLS: from.TLS, Databases: s.Imported(), Skip: from.Skip, CutOver: s.Spec.CutOver, Object: compose.Text(s.Composite.Map(), "metadata", "uid"), Ended: !s.Importing(),
	}
}

// dumpsFile is the dumps that fill the Database. Like a server, they stay after their end.
func dumpsFile(s *facts.Cluster) *engine.Dumps {
	if s.Dumps() == nil {
		return nil
	}
	return &engine.Dumps{Databases: s.Dumps().Databases, Ended: !s.Importing()}
}
