// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// importAlerts of a Database that is filled from another server, which keeps what is not applied until its disk is full, or from dumps.
func importAlerts(s *facts.Cluster) []engine.Alert {
	if !s.Importing() {
		return nil
	}
	a := engine.Alert{
		Name: "DatabaseImportBehind", Severity: engine.SeverityTicket, For: "10m",
		Expr:    fmt.Sprintf("max((%s)) > 0", exported(s, "capstan_database_import_behind")),
		Summary: "Database %s in namespace %s does not apply the changes of the server that it is imported from, whose disk fills meanwhile: check the condition Imported.",
	}
	if s.Dumps() != nil {
		a.Name = "DatabaseDumpNotRestored"
		a.Summary = "Database %s in namespace %s cannot restore a dump, and consumers cannot log in before every dump is restored: check the condition Imported."
	}
	return []engine.Alert{a}
}
