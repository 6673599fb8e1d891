// SPDX-License-Identifier: Apache-2.0

// Package validation has the checks of a spec that its schema accepts.
package validation

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// Checks of a spec with its defaults that its schema accepts: what the schema cannot see. All are made, so that one edit can
// correct everything.
var Checks = []func(*facts.Cluster) []check.Problem{
	checkPlatform,
	checkSettings,
	checkVersion,
	checkSize,
	checkConfig,
	checkExtensions,
	checkDatabases,
	checkHooks,
	checkNetwork,
	checkBackup,
	checkRestore,
	checkMaintenance,
	checkPooler,
}

func checkPlatform(s *facts.Cluster) []check.Problem { return s.Unsupported }

func checkSettings(s *facts.Cluster) []check.Problem {
	return check.Settings(s.SettingsErr)
}

func checkVersion(s *facts.Cluster) []check.Problem {
	var versions []string
	var found facts.Image
	if found, versions = s.Find(s.Spec.Version); found.Name == "" {
		return []check.Problem{{Reason: v1alpha1.ReasonVersionUnavailable, Message: fmt.Sprintf(
			"spec.version: %q: is none of those that the platform has: choose one of %s, or ask who runs the platform for an image of it (database.images of its settings)",
			s.Spec.Version, strings.Join(versions, ", "))}}
	}
	return checkData(s)
}

// checkData holds the version that is asked for against that of the data. All but the upgrade goes by the latter.
func checkData(s *facts.Cluster) []check.Problem {
	data := s.DataVersion()
	if data == "" || data == s.Spec.Version {
		return nil
	}
	if s.Backwards(data) {
		return []check.Problem{{Reason: v1alpha1.ReasonVersionChangeUnsupported, Message: fmt.Sprintf(
			"spec.version: %q: the data is of version %s, and data is not taken to an earlier version: set it back to %q; to go back to the data as it was "+
				"before an upgrade, set spec.upgrade.undo to the id of that as well, while the generation before it is kept", s.Spec.Version, data, data)}}
	}
	if s.Image.Name == "" {
		return []check.Problem{{Reason: v1alpha1.ReasonVersionUnavailable, Message: fmt.Sprintf(
			"spec.version: %q: the data is of version %s, of which the platform has no image any more: ask who runs the platform for one that has both (database.images of its settings)",
			s.Spec.Version, data)}}
	}
	return nil
}

func checkSize(s *facts.Cluster) []check.Problem {
	if _, found := s.Sized(); !found {
		names := make([]string, 0, len(s.Settings.Database.Plans))
		for _, p := range s.Settings.Database.Plans {
			names = append(names, p.Name)
		}
		name := s.Spec.Plan
		if name == "" {
			name = facts.PlanDefault
		}
		return []check.Problem{{Reason: v1alpha1.ReasonPlanUnavailable, Message: fmt.Sprintf(
			"spec.plan: %q: is none of those that the platform has: choose one of %s, or set spec.resources and ask for a plan of the name %s",
			name, strings.Join(names, ", "), facts.PlanDefault)}}
	}
	return nil
}

func checkConfig(s *facts.Cluster) []check.Problem { return s.Engine.CheckConfig(s.Fields()) }

func checkExtensions(s *facts.Cluster) []check.Problem { return s.ExtensionProblems(s.Fields()) }

func checkDatabases(s *facts.Cluster) []check.Problem {
	var ps []check.Problem
	for i, d := range s.Spec.Databases {
		if s.Engine.Reserved(d.Name) {
			ps = append(ps, check.Invalid(fmt.Sprintf("spec.databases[%d].name", i), d.Name,
				"is a name that the server uses itself: set spec.databases to another one"))
		}
	}
	return ps
}

func checkNetwork(s *facts.Cluster) []check.Problem {
	if s.Spec.Network == nil {
		return nil
	}
	var ps []check.Problem
	for i, c := range s.Spec.Network.From {
		field := fmt.Sprintf("spec.network.from[%d]", i)
		for _, k := range compose.SortedKeys(c.PodLabels) {
			if errs := validation.IsQualifiedName(k); len(errs) > 0 {
				ps = append(ps, check.Invalid(field+".podLabels", k, check.Because(errs)))
			}
		}
	}
	return ps
}
