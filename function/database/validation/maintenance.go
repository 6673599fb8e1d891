// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
)

func checkMaintenance(s *facts.Cluster) []check.Problem {
	m := s.Spec.Maintenance
	if m == nil {
		return nil
	}
	var ps []check.Problem
	for i, w := range m.Windows {
		field := fmt.Sprintf("spec.maintenance.windows[%d]", i)
		// An empty name is UTC, and Local is the zone of the machine that runs this.
		if _, err := time.LoadLocation(w.TimeZone); err != nil || strings.EqualFold(w.TimeZone, "local") {
			ps = append(ps, check.Invalid(field+".timeZone", w.TimeZone, "must be the name of a time zone, for instance Europe/Zurich"))
		}
	}
	return ps
}

// checkUpgrade finds waits that would never end, or that nothing would wait in.
func checkUpgrade(s *facts.Cluster) []check.Problem {
	u := s.Spec.Upgrade
	switch {
	case u == nil || u.Wait != v1alpha1.UpgradeWaitStandby:
		return nil
	case s.Spec.Replicas < 2:
		return []check.Problem{check.Invalid("spec.upgrade.wait", string(u.Wait), "there is no standby that commits could wait for: set spec.replicas to 2 or more, or remove spec.upgrade.wait")}
	case s.Spec.Availability.Durability == v1alpha1.DurabilityAsynchronous:
		return []check.Problem{check.Invalid("spec.upgrade.wait", string(u.Wait),
			"commits wait for no standby with spec.availability.durability Asynchronous: choose Synchronous or Strict, or remove spec.upgrade.wait")}
	}
	return nil
}

func checkHooks(s *facts.Cluster) []check.Problem {
	var ps []check.Problem
	all := s.AllHooks()
	for _, field := range compose.SortedKeys(all) {
		h := all[field]
		if h.SQL != nil {
			if _, ok := s.HookConsumer(h); !ok {
				ps = append(ps, check.Invalid(field+".sql.database", h.SQL.Database,
					"must be a database that one of spec.consumers reads and writes, because the hook runs as that consumer: add a consumer, or name another database"))
			}
		} else if u, err := url.Parse(h.HTTP.URL); err != nil || u.Hostname() == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			ps = append(ps, check.Invalid(field+".http.url", h.HTTP.URL, "must be an http or https URL without a user"))
		}
	}
	return ps
}
