// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/engine"
)

const (
	parameterWALLevel = "wal_level"
	logicalLevel      = "logical"
)

// firstWithFailoverSlots is the first version in which standbys keep copies of the leader's slots of logical replication. Before it,
// also, only a superuser could change a login with REPLICATION.
const firstWithFailoverSlots = 17

// logical reports whether members write what logical replication needs, or do so after their next restart.
func (s Server) logical() bool {
	level, pinned := s.Pinned[parameterWALLevel]
	if !pinned {
		level = s.restarting()[parameterWALLevel]
	}
	return strings.EqualFold(level, logicalLevel)
}

// outputPlugins that slots can have: those that a server always takes, the one of our image, and those that the spec names, which another image
// may have. Servers since 17.11 and 18.5 refuse all others, and Patroni leaves the parameter out for earlier ones.
func outputPlugins(named []string) string {
	all := slices.Concat([]string{"pgoutput", "test_decoding", "wal2json"}, named)
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// synchronizesSlots reports whether standbys keep copies of the leader's slots.
func (s Server) synchronizesSlots() bool { return s.logical() && s.Major >= firstWithFailoverSlots }

// CheckReplication finds what slots and consumers of changes need and the rest of the spec does not give.
func (postgreSQL) CheckReplication(s engine.Server) []check.Problem {
	var ps []check.Problem
	var fields []string
	if s.Slots {
		fields = append(fields, "spec.replication.slots")
	}
	if len(s.Replicating) > 0 {
		fields = append(fields, fmt.Sprintf("replication of consumer %q", s.Replicating[0]))
	}
	if len(fields) == 0 || s.Version == "" {
		return nil
	}
	asked := strings.Join(fields, " and ")
	if m := major(s.Version); m < firstWithFailoverSlots {
		ps = append(ps, check.Invalid("spec.version", s.Version, fmt.Sprintf(
			"%s: needs version %d or later: upgrade the Database first, or remove that", asked, firstWithFailoverSlots)))
	}
	if !strings.EqualFold(s.Config[parameterWALLevel], logicalLevel) {
		ps = append(ps, check.Invalid("spec.config."+parameterWALLevel, s.Config[parameterWALLevel], asked+": needs wal_level logical: set spec.config.wal_level to logical, which restarts the members one by one, or remove that"))
	}
	if v := s.Config["hot_standby_feedback"]; s.Slots && slices.Contains(booleans, strings.ToLower(v)) && !on(v) {
		ps = append(ps, check.Invalid("spec.config.hot_standby_feedback", v,
			"slots survive a failover only with hot_standby_feedback: remove the parameter, or spec.replication.slots"))
	}
	return ps
}

// on reports whether a boolean of PostgreSQL is true.
func on(value string) bool {
	return slices.Contains([]string{"on", "true", "yes", "1"}, strings.ToLower(value))
}
