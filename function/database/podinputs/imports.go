// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// importFile is the server that fills the Database. It stays after the cut-over: members know from their data that the import has ended.
func importFile(s *facts.Cluster) *engine.Import {
	if !s.Imports() {
		return nil
	}
	from := s.Spec.From.Server
	return &engine.Import{Host: from.Host, Port: *from.Port, TLS: from.TLS, Databases: s.Imported(), Skip: from.Skip, CutOver: s.Spec.CutOver}
}
