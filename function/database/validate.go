// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// checks of a spec with its defaults that its schema accepts: what the schema cannot see. All are made, so that one edit can
// correct everything.
var checks = []func(*cluster) []check.Problem{
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

func checkPlatform(s *cluster) []check.Problem { return s.Unsupported }

func checkSettings(s *cluster) []check.Problem {
	return check.Settings(s.SettingsErr)
}

func checkVersion(s *cluster) []check.Problem {
	var versions []string
	var found image
	if found, versions = s.find(s.spec.Version); found.name == "" {
		return []check.Problem{{Reason: v1alpha1.ReasonVersionUnavailable, Message: fmt.Sprintf(
			"spec.version: %q: is none of those that the platform has: choose one of %s, or ask who runs the platform for an image of it (database.images of its settings)",
			s.spec.Version, strings.Join(versions, ", "))}}
	}
	return s.checkData()
}

// checkData holds the version that is asked for against that of the data. All but the upgrade goes by the latter.
func (s *cluster) checkData() []check.Problem {
	data := s.dataVersion()
	if data == "" || data == s.spec.Version {
		return nil
	}
	if s.backwards(data) {
		return []check.Problem{{Reason: v1alpha1.ReasonVersionChangeUnsupported, Message: fmt.Sprintf(
			"spec.version: %q: the data is of version %s, and data is not taken to an earlier version: set it back to %q; to go back to the data as it was "+
				"before an upgrade, set spec.upgrade.undo to the id of that as well, while the generation before it is kept", s.spec.Version, data, data)}}
	}
	if s.image.name == "" {
		return []check.Problem{{Reason: v1alpha1.ReasonVersionUnavailable, Message: fmt.Sprintf(
			"spec.version: %q: the data is of version %s, of which the platform has no image any more: ask who runs the platform for one that has both (database.images of its settings)",
			s.spec.Version, data)}}
	}
	return nil
}

// dataVersion is the major version of the data, or empty when there is none yet.
func (s *cluster) dataVersion() string {
	if v := s.memory.Versions[s.generation]; v != "" {
		return v
	}
	for _, letter := range compose.SortedKeys(s.sets) {
		if v := s.sets[letter].version; v != "" {
			return v
		}
	}
	return ""
}

func checkSize(s *cluster) []check.Problem {
	if _, found := s.sized(); !found {
		names := make([]string, 0, len(s.Settings.Database.Plans))
		for _, p := range s.Settings.Database.Plans {
			names = append(names, p.Name)
		}
		name := s.spec.Plan
		if name == "" {
			name = planDefault
		}
		return []check.Problem{{Reason: v1alpha1.ReasonPlanUnavailable, Message: fmt.Sprintf(
			"spec.plan: %q: is none of those that the platform has: choose one of %s, or set spec.resources and ask for a plan of the name %s",
			name, strings.Join(names, ", "), planDefault)}}
	}
	return nil
}

func checkConfig(s *cluster) []check.Problem { return s.engine.CheckConfig(s.fields()) }

func checkExtensions(s *cluster) []check.Problem { return s.extensionProblems(s.fields()) }

// extensionProblems are extensions that an image does not have, or that the engine does not take together.
func (s *cluster) extensionProblems(f engine.Server) []check.Problem {
	var ps []check.Problem
	for i, e := range f.Extensions {
		if f.Image.Version != "" && !slices.Contains(f.Image.Extensions, e) {
			ps = append(ps, check.Problem{Reason: v1alpha1.ReasonExtensionUnavailable, Message: fmt.Sprintf(
				"spec.extensions[%d]: %q: is not in the image for version %s: choose one of %s, or ask who runs the platform for an image that has it",
				i, e, f.Version, strings.Join(f.Image.Extensions, ", "))})
		}
	}
	return append(ps, s.engine.CheckExtensions(f)...)
}

func checkDatabases(s *cluster) []check.Problem {
	var ps []check.Problem
	for i, d := range s.spec.Databases {
		if s.engine.Reserved(d.Name) {
			ps = append(ps, check.Invalid(fmt.Sprintf("spec.databases[%d].name", i), d.Name,
				"is a name that the server uses itself: set spec.databases to another one"))
		}
	}
	return ps
}

// login of a consumer.
func login(consumer string) string { return strings.ReplaceAll(consumer, "-", "_") }

func checkNetwork(s *cluster) []check.Problem {
	if s.spec.Network == nil {
		return nil
	}
	var ps []check.Problem
	for i, c := range s.spec.Network.From {
		field := fmt.Sprintf("spec.network.from[%d]", i)
		for _, k := range compose.SortedKeys(c.PodLabels) {
			if errs := validation.IsQualifiedName(k); len(errs) > 0 {
				ps = append(ps, check.Invalid(field+".podLabels", k, check.Because(errs)))
			}
		}
	}
	return ps
}
