// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/postgres"
)

// checks of a spec with its defaults, all of them, so that one edit can correct
// everything. The schema holds most of the same bounds and answers sooner; these
// hold as well for what was stored under an older schema.
var checks = []func(*state) []check.Problem{
	checkPlatform,
	checkSettings,
	checkName,
	checkVersion,
	checkSize,
	checkAvailability,
	checkConfig,
	checkExtensions,
	checkDatabases,
	checkConsumers,
	checkCredentials,
	checkHooks,
	checkNetwork,
	checkBackup,
	checkRestore,
	checkMaintenance,
	checkPooler,
	checkExpose,
}

func checkPlatform(s *state) []check.Problem { return s.Unsupported }

func checkSettings(s *state) []check.Problem {
	return check.Settings(s.SettingsErr)
}

// longestName leaves room for the suffixes of what carries the name.
const longestName = 40

func checkName(s *state) []check.Problem {
	if errs := validation.IsDNS1035Label(s.name); len(errs) > 0 {
		return []check.Problem{check.Invalid("metadata.name", s.name, check.Because(errs))}
	}

	if len(s.name) > longestName {
		return []check.Problem{check.Invalid("metadata.name", s.name, fmt.Sprintf("must be at most %d characters", longestName))}
	}

	return nil
}

func checkVersion(s *state) []check.Problem {
	if s.spec.Engine != v1alpha1.EnginePostgres {
		return check.Among("spec.engine", s.spec.Engine, v1alpha1.EnginePostgres, v1alpha1.EnginePostgres)
	}

	catalogue, err := s.catalogue()
	if err != nil {
		return []check.Problem{{Reason: v1alpha1.ReasonInvalidSettings, Message: err.Error()}}
	}

	var versions []string
	if s.image, versions = s.find(catalogue, s.spec.Version); s.image.name == "" {
		return []check.Problem{{Reason: v1alpha1.ReasonVersionUnavailable, Message: fmt.Sprintf(
			"spec.version: %q: is none of those that the platform has: choose one of %s, or ask who runs the platform for an image of it (database.images of its settings)",
			s.spec.Version, strings.Join(versions, ", "))}}
	}

	return s.checkData()
}

// checkData holds the version that is asked for against that of the data. All but the
// upgrade goes by the latter.
func (s *state) checkData() []check.Problem {
	s.asksFor = s.spec.Version

	data := s.dataVersion()
	if data == "" || data == s.asksFor {
		return nil
	}

	if major(data) > major(s.asksFor) && !s.undoesTo(s.asksFor) {
		return []check.Problem{{Reason: v1alpha1.ReasonVersionChangeUnsupported, Message: fmt.Sprintf(
			"spec.version: %q: the data is of version %s, and data is not taken to an earlier version: set it back to %q; to go back to the data as it was "+
				"before an upgrade, set spec.upgrade.undo to the id of that as well, while the generation before it is kept", s.asksFor, data, data)}}
	}

	if err := s.ofVersion(); err != nil {
		return []check.Problem{{Reason: v1alpha1.ReasonInvalidSettings, Message: err.Error()}}
	}

	if s.image.name == "" {
		return []check.Problem{{Reason: v1alpha1.ReasonVersionUnavailable, Message: fmt.Sprintf(
			"spec.version: %q: the data is of version %s, of which the platform has no image any more: ask who runs the platform for one that has both (database.images of its settings)",
			s.asksFor, data)}}
	}

	return nil
}

// dataVersion is the major version of the data, or empty when there is none yet.
func (s *state) dataVersion() string {
	if v := s.memory.Versions[s.generation]; v != "" {
		return v
	}

	for _, letter := range sortedKeys(s.sets) {
		if v := s.sets[letter].version; v != "" {
			return v
		}
	}

	return ""
}

// leastMemory of a member, in which server, Patroni and the program of the member
// have room.
var leastMemory = resource.MustParse("256Mi")

func checkSize(s *state) []check.Problem {
	var (
		ps    []check.Problem
		found bool
	)

	if s.size, found = s.sized(); !found {
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

	if s.spec.Replicas < 1 || int(s.spec.Replicas) > len(letters) {
		ps = append(ps, check.Invalid("spec.replicas", s.spec.Replicas, fmt.Sprintf("must be from 1 to %d", len(letters))))
	}

	if s.size.memory.Cmp(leastMemory) < 0 {
		ps = append(ps, check.Invalid("spec.resources.memory", s.size.memory.String(), "must be at least "+leastMemory.String()))
	}

	if s.size.cpu.Sign() <= 0 {
		ps = append(ps, check.Invalid("spec.resources.cpu", s.size.cpu.String(), "must be greater than zero, for instance 500m"))
	}

	if s.spec.Storage.Cmp(leastStorage) < 0 {
		ps = append(ps, check.Invalid("spec.storage", s.spec.Storage.String(), "must be at least "+leastStorage.String()))
	}

	return ps
}

var leastStorage = resource.MustParse("1Gi")

func checkAvailability(s *state) []check.Problem {
	a := s.spec.Availability

	return slices.Concat(
		check.Among("spec.availability.spread", a.Spread, v1alpha1.SpreadOverZones, v1alpha1.SpreadOverNodes, v1alpha1.SpreadAnywhere),
		check.Among("spec.availability.profile", a.Profile, v1alpha1.FailoverFast, v1alpha1.FailoverBalanced, v1alpha1.FailoverPatient),
		check.Among("spec.availability.durability", a.Durability,
			v1alpha1.DurabilitySynchronous, v1alpha1.DurabilityStrict, v1alpha1.DurabilityAsynchronous),
	)
}

func checkConfig(s *state) []check.Problem {
	var ps []check.Problem

	for _, name := range sortedKeys(s.spec.Config) {
		value := string(s.spec.Config[name])

		if remedy := postgres.Check(name, value, s.image.major, s.spec.Extensions); remedy != "" && s.image.major > 0 {
			ps = append(ps, check.Invalid("spec.config."+name, value, remedy))
		}
	}

	return append(ps, checkRoom(s)...)
}

// checkRoom looks whether what members are told to take is there: a server that
// takes more than its memory is killed, and one that fills its volume stops.
func checkRoom(s *state) []check.Problem {
	var ps []check.Problem

	for _, l := range []struct {
		name  string
		whole resource.Quantity
		what  string
	}{
		{"shared_buffers", s.size.memory, "memory"},
		{"maintenance_work_mem", s.size.memory, "memory"},
		{"work_mem", s.size.memory, "memory"},
		{"max_wal_size", s.spec.Storage, "storage"},
		{"wal_keep_size", s.spec.Storage, "storage"},
		{"max_slot_wal_keep_size", s.spec.Storage, "storage"},
	} {
		value, set := s.spec.Config[l.name]
		if n, ok := postgres.Bytes(l.name, string(value)); set && ok && n > l.whole.Value()/2 {
			ps = append(ps, check.Invalid("spec.config."+l.name, string(value), fmt.Sprintf(
				"must be at most half the %s of a member, which is %s", l.what, l.whole.String())))
		}
	}

	return ps
}

func checkExtensions(s *state) []check.Problem {
	var ps []check.Problem

	for i, e := range s.spec.Extensions {
		if s.image.name != "" && !slices.Contains(s.image.version.Extensions, e) {
			ps = append(ps, check.Problem{Reason: v1alpha1.ReasonExtensionUnavailable, Message: fmt.Sprintf(
				"spec.extensions[%d]: %q: is not in the image for version %s: choose one of %s, or ask who runs the platform for an image that has it",
				i, e, s.spec.Version, strings.Join(s.image.version.Extensions, ", "))})
		}
	}

	if slices.Contains(s.spec.Extensions, extensionCron) && len(s.spec.Databases) > 1 {
		ps = append(ps, check.Invalid("spec.extensions", extensionCron, "can be in one database of a server only: ask for one database, or leave it out"))
	}

	return ps
}

// extensionCron lives in one database, which its parameters have to name.
const extensionCron = "pg_cron"

// reserved names of databases.
var reserved = []string{"postgres", "template0", "template1", "capstan"}

func checkDatabases(s *state) []check.Problem {
	var ps []check.Problem

	for i, d := range s.spec.Databases {
		if slices.Contains(reserved, d.Name) || strings.HasPrefix(d.Name, "pg_") {
			ps = append(ps, check.Invalid(fmt.Sprintf("spec.databases[%d].name", i), d.Name,
				"is a name that the server uses itself: set spec.databases to another one"))
		}
	}

	return ps
}

func checkConsumers(s *state) []check.Problem {
	var ps []check.Problem

	logins := map[string]string{}

	for i, c := range s.spec.Consumers {
		field := fmt.Sprintf("spec.consumers[%d]", i)

		if !slices.ContainsFunc(s.spec.Databases, func(d v1alpha1.LogicalDatabase) bool { return d.Name == c.Database }) {
			ps = append(ps, check.Invalid(field+".database", c.Database, "must be one of spec.databases: add it there, or leave it out for the first"))
		}

		ps = append(ps, check.Among(field+".access", c.Access, v1alpha1.ConsumerReadWrite, v1alpha1.ConsumerReadOnly)...)

		if other, ok := logins[login(c.Name)]; ok {
			ps = append(ps, check.Invalid(field+".name", c.Name, fmt.Sprintf("would have the login of consumer %q: choose another name", other)))
		}

		logins[login(c.Name)] = c.Name

		// The roles of a database end so.
		for _, d := range s.spec.Databases {
			if login(c.Name) == d.Name+"_owner" || login(c.Name) == d.Name+"_reader" {
				ps = append(ps, check.Invalid(field+".name", c.Name, fmt.Sprintf("is the name of a role of database %q: choose another name", d.Name)))
			}
		}
	}

	return ps
}

// login of a consumer.
func login(consumer string) string { return strings.ReplaceAll(consumer, "-", "_") }

func checkNetwork(s *state) []check.Problem {
	if s.spec.Network == nil {
		return nil
	}

	var ps []check.Problem

	for i, c := range s.spec.Network.From {
		field := fmt.Sprintf("spec.network.from[%d]", i)

		if errs := validation.IsDNS1123Label(c.Namespace); c.Namespace != "" && c.Namespace != everybody && len(errs) > 0 {
			ps = append(ps, check.Invalid(field+".namespace", c.Namespace, "must be the name of a namespace, or * for every namespace"))
		}

		if _, err := netip.ParsePrefix(c.CIDR); c.CIDR != "" && err != nil {
			ps = append(ps, check.Invalid(field+".cidr", c.CIDR, "must be a range of addresses, for instance 10.0.0.0/8"))
		}

		if c.CIDR != "" && (c.Namespace != "" || len(c.PodLabels) > 0) {
			ps = append(ps, check.Invalid(field+".cidr", c.CIDR, "is set beside namespace or podLabels: remove one of the two"))
		}

		for _, k := range sortedKeys(c.PodLabels) {
			if errs := validation.IsQualifiedName(k); len(errs) > 0 {
				ps = append(ps, check.Invalid(field+".podLabels", k, check.Because(errs)))
			}

			if errs := validation.IsValidLabelValue(string(c.PodLabels[k])); len(errs) > 0 {
				ps = append(ps, check.Invalid(field+".podLabels["+strconv.Quote(k)+"]", string(c.PodLabels[k]), check.Because(errs)))
			}
		}
	}

	return ps
}
