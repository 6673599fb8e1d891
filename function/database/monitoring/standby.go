// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// exported series of a Database. The provider exports them of all; what scrapes it may have given the label another name.
func exported(s *facts.Cluster, name string) string { return exportedOf(s, name, s.Base()) }

// exportedOf a value of the label of Databases.
func exportedOf(s *facts.Cluster, name, database string) string {
	return fmt.Sprintf("%[1]s{exported_namespace=%[2]q,database=%[3]q} or %[1]s{namespace=%[2]q,database=%[3]q}", name, s.Namespace, database)
}

// standbyAlerts of a Database that follows another one, or did before it was promoted. Each series is zero in the state that it is not about.
func standbyAlerts(s *facts.Cluster) []engine.Alert {
	if !s.Follows() {
		return nil
	}
	return []engine.Alert{
		{
			Name: "DatabaseNotFollowing", Severity: engine.SeverityTicket, For: "10m",
			Expr:    fmt.Sprintf("max((%s)) > 0", exported(s, "capstan_database_not_following")),
			Summary: "Standby Database %s in namespace %s does not replay what its primary archives, and would lack it after a promotion: check the condition Following.",
		},
		{
			Name: "DatabaseSecondPrimary", Severity: engine.SeverityPage, For: "1m",
			Expr:    fmt.Sprintf("max((%s)) > 0", exported(s, "capstan_database_second_primary")),
			Summary: "Database %s in namespace %s was promoted, and its former primary still archives changes that it lacks: stop one of the two. Check the condition Promoted.",
		},
	}
}
