// SPDX-License-Identifier: Apache-2.0

// Package validation has the checks of a spec that its schema accepts.
package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/pooler"
	"github.com/capstan-dev/capstan/function/placement"
)

// Checks of a spec with its defaults that its schema accepts: what the schema cannot see. All are made, so that one edit can
// correct everything.
var Checks = []func(*facts.Cluster) []check.Problem{
	checkPlatform,
	checkSettings,
	checkAllowed,
	checkFeatures,
	checkVersion,
	checkSize,
	checkWAL,
	checkConfig,
	checkExtensions,
	checkDatabases,
	checkReplication,
	checkHooks,
	checkUpgrade,
	checkNetwork,
	checkPods,
	checkAffinity,
	checkBackup,
	checkRestore,
	checkStandby,
	checkImport,
	checkMaintenance,
	checkPooler,
	checkQueries,
}

func checkPlatform(s *facts.Cluster) []check.Problem { return s.Unsupported }

func checkSettings(s *facts.Cluster) []check.Problem {
	return check.Settings(s.SettingsErr)
}

func checkVersion(s *facts.Cluster) []check.Problem {
	if found, versions := s.Find(s.Spec.Version); found.Name == "" {
		return []check.Problem{{Reason: v1alpha1.ReasonVersionUnavailable, Message: fmt.Sprintf(
			"spec.version: %q: the platform has no image of this version: choose one of %s, or ask the platform team to add an image (database.images in the settings)",
			s.Spec.Version, strings.Join(versions, ", "))}}
	}
	return checkData(s)
}

// checkData compares the requested version with the version of the data. Everything except the upgrade depends on the latter.
func checkData(s *facts.Cluster) []check.Problem {
	data := s.DataVersion()
	if data == "" || data == s.Spec.Version {
		return nil
	}
	if s.Backwards(data) {
		return []check.Problem{{Reason: v1alpha1.ReasonVersionChangeUnsupported, Message: fmt.Sprintf(
			"spec.version: %q: the data has version %s, and Capstan cannot convert data to an earlier version: set spec.version to %q; to return to the data as it was "+
				"before an upgrade, also set spec.upgrade.undo to the id of that upgrade, while the earlier generation is kept", s.Spec.Version, data, data)}}
	}
	if s.Image.Name == "" {
		return []check.Problem{{Reason: v1alpha1.ReasonVersionUnavailable, Message: fmt.Sprintf(
			"spec.version: %q: the data has version %s, and the platform has no image with both versions: ask the platform team to add one (database.images in the settings)",
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
		return []check.Problem{{Reason: v1alpha1.ReasonPlanUnavailable, Message: fmt.Sprintf(
			"spec.plan: %q: the platform has no plan of this name: choose one of %s, or set spec.resources and ask the platform team to add a plan named %s",
			s.PlanName(), strings.Join(names, ", "), facts.PlanDefault)}}
	}
	return checkMemory(s)
}

// checkWAL finds a spec without the volume that the data of members needs. The schema refuses such an edit.
func checkWAL(s *facts.Cluster) []check.Problem {
	if s.Spec.WALStorage != nil || !slices.ContainsFunc(compose.SortedKeys(s.Sets), func(letter string) bool { return s.Sets[letter].LogVolume }) {
		return nil
	}
	return []check.Problem{check.Invalid("spec.walStorage", "", fmt.Sprintf("the %s of each member is on a volume of its own, and stays there: set it to the size that these "+
		"volumes have; for data without them make another Database with spec.from.database", s.Traits.Log))}
}

// checkMemory finds members that are too small for their engine.
func checkMemory(s *facts.Cluster) []check.Problem {
	least, has := s.Engine.LeastMemory(s.Fields()), s.Size.Memory
	if has.Cmp(least) >= 0 {
		return nil
	}
	remedy := fmt.Sprintf("with %d connections the server needs at least %s of memory", s.Engine.Connections(s.Fields()), least.String())
	if s.Spec.Resources.Memory != nil {
		return []check.Problem{check.Invalid("spec.resources.memory", has.String(), remedy+": raise it, or lower spec.config.max_connections")}
	}
	return []check.Problem{check.Invalid("spec.plan", s.PlanName(), fmt.Sprintf(
		"its members have %s, and %s: choose a larger plan, set spec.resources.memory, or lower spec.config.max_connections", has.String(), remedy))}
}

func checkConfig(s *facts.Cluster) []check.Problem { return s.Engine.CheckConfig(s.Fields()) }

func checkExtensions(s *facts.Cluster) []check.Problem {
	if s.Engine.Lacks(engine.FeatureExtensions) != "" {
		return nil // Another check says so.
	}
	return s.ExtensionProblems(s.Fields())
}

func checkReplication(s *facts.Cluster) []check.Problem { return s.Engine.CheckReplication(s.Fields()) }

func checkDatabases(s *facts.Cluster) []check.Problem {
	var ps []check.Problem
	for i, d := range s.Spec.Databases {
		if s.Engine.Reserved(d.Name) {
			ps = append(ps, check.Invalid(fmt.Sprintf("spec.databases[%d].name", i), d.Name,
				"is a name that the server itself uses: choose another name"))
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

// pod is the path of the block in the spec.
var pod = field.NewPath("spec", "pod")

// checkPods of members, by rules of Kubernetes that the schema does not have.
func checkPods(s *facts.Cluster) []check.Problem {
	return check.Errors(append(placement.Check(pod, s.Scheduling()),
		placement.CheckMetadata(field.NewPath("spec", "podMetadata"), s.Spec.PodMetadata)...))
}

func checkPooler(s *facts.Cluster) []check.Problem {
	p := s.Spec.Pooler
	if p == nil {
		return nil
	}
	if p.ReadOnly && s.Spec.Replicas < 2 {
		return []check.Problem{check.Invalid("spec.pooler.readOnly", p.ReadOnly,
			"with one member there is no standby that these poolers could connect to: raise spec.replicas to 2 or more, or remove it")}
	}
	if room := pooler.PoolRoom(s); room > 0 && pooler.PoolSize(s)*pooler.Pools(s) > room {
		return []check.Problem{check.Invalid("spec.pooler.poolSize", pooler.PoolSize(s), fmt.Sprintf(
			"%d poolers open that many connections for each of %d consumers, together more than %d, which is four fifths of the connections of a member: "+
				"lower spec.pooler.poolSize, raise spec.config.max_connections, or choose a larger spec.plan", pooler.Poolers(s), max(1, len(s.Spec.Consumers)), room))}
	}
	return nil
}
