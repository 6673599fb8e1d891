// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// poolerAlerts of a Database with poolers. of selects the poolers' series.
func poolerAlerts(s *facts.Cluster, of string) []engine.Alert {
	if !s.Pooled() {
		return nil
	}
	return []engine.Alert{
		{
			Name: "DatabasePoolerClientsWait", Severity: engine.SeverityTicket, For: "5m",
			Expr:    fmt.Sprintf("max by (login) (capstan_pooler_longest_wait_seconds{%s}) > 5", of),
			Summary: "Clients of Database %s in namespace %s wait more than 5 s for a connection of its poolers: raise spec.pooler.poolSize, or end long transactions.",
		},
		{
			Name: "DatabasePoolerClientsNearlyUsedUp", Severity: engine.SeverityTicket, For: "5m",
			Expr:    fmt.Sprintf("max(sum by (pod) (capstan_pooler_clients{%s})) / %d > 0.85", of, *s.Spec.Pooler.MaxClients),
			Summary: "A pooler of Database %s in namespace %s has over 85 %% of the clients it can take: raise spec.pooler.maxClients or spec.pooler.replicas.",
		},
	}
}
