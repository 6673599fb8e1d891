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

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/postgres"
)

// A problem keeps a spec from being carried out. Its message names field, value
// and remedy.
type problem struct {
	reason  xpv2.ConditionReason
	message string
}

// checks of a spec with its defaults, all of them, so that one edit can correct
// everything. The schema holds most of the same bounds and answers sooner; these
// hold as well for what was stored under an older schema.
var checks = []func(*state) []problem{
	checkSettings,
	checkName,
	checkVersion,
	checkSize,
	checkAvailability,
	checkConfig,
	checkExtensions,
	checkDatabases,
	checkConsumers,
	checkNetwork,
}

func validate(s *state) []problem {
	ps := make([]problem, 0, len(checks))
	for _, check := range checks {
		ps = append(ps, check(s)...)
	}

	return ps
}

// invalid value of a field.
func invalid(field string, value any, remedy string) problem {
	return problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("%s: %s: %s", field, quoted(value), remedy)}
}

// quoted value as people wrote it, as far as it matters: text in quotes.
func quoted(value any) string {
	text := []rune(fmt.Sprint(value))
	if len(text) > 60 {
		text = append(text[:59], '…')
	}

	if _, ok := value.(string); ok {
		return fmt.Sprintf("%q", string(text))
	}

	return string(text)
}

// among tells whether a text is none of those that a field may be.
func among[T ~string](field string, value T, of ...T) []problem {
	if slices.Contains(of, value) {
		return nil
	}

	words := make([]string, 0, len(of))
	for _, w := range of {
		words = append(words, string(w))
	}

	last := len(words) - 1

	return []problem{invalid(field, string(value), "must be "+strings.Join(words[:last], ", ")+" or "+words[last])}
}

func checkSettings(s *state) []problem {
	if s.SettingsErr != nil {
		return []problem{{v1alpha1.ReasonInvalidSettings, fmt.Sprintf("platform settings: %v", s.SettingsErr)}}
	}

	return nil
}

// longestName leaves room for the suffixes of what carries the name.
const longestName = 40

func checkName(s *state) []problem {
	if errs := validation.IsDNS1035Label(s.name); len(errs) > 0 {
		return []problem{invalid("metadata.name", s.name, strings.Join(errs, ", and "))}
	}

	if len(s.name) > longestName {
		return []problem{invalid("metadata.name", s.name, fmt.Sprintf("must be at most %d characters", longestName))}
	}

	return nil
}

func checkVersion(s *state) []problem {
	if s.spec.Engine != v1alpha1.EnginePostgres {
		return among("spec.engine", s.spec.Engine, v1alpha1.EnginePostgres, v1alpha1.EnginePostgres)
	}

	catalogue, err := s.catalogue()
	if err != nil {
		return []problem{{v1alpha1.ReasonInvalidSettings, err.Error()}}
	}

	var versions []string
	if s.image, versions = s.find(catalogue, s.spec.Version); s.image.name == "" {
		return []problem{{v1alpha1.ReasonVersionUnavailable, fmt.Sprintf(
			"spec.version: %q: is none of those that the platform has: choose one of %s, or ask who runs the platform for an image of it (database.images of its settings)",
			s.spec.Version, strings.Join(versions, ", "))}}
	}

	if data := s.dataVersion(); data != "" && data != s.spec.Version {
		return []problem{{v1alpha1.ReasonVersionChangeUnsupported, fmt.Sprintf(
			"spec.version: %q: the data is of version %s, and Capstan cannot change the major version of data yet: set it back to %q, "+
				"or make another Database of version %s and move the data", s.spec.Version, data, data, s.spec.Version)}}
	}

	return nil
}

// dataVersion is the major version of the data, or empty when there is none yet.
func (s *state) dataVersion() string {
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

func checkSize(s *state) []problem {
	var (
		ps    []problem
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

		return []problem{{v1alpha1.ReasonPlanUnavailable, fmt.Sprintf(
			"spec.plan: %q: is none of those that the platform has: choose one of %s, or set spec.resources and ask for a plan of the name %s",
			name, strings.Join(names, ", "), planDefault)}}
	}

	if s.spec.Replicas < 1 || int(s.spec.Replicas) > len(letters) {
		ps = append(ps, invalid("spec.replicas", s.spec.Replicas, fmt.Sprintf("must be from 1 to %d", len(letters))))
	}

	if s.size.memory.Cmp(leastMemory) < 0 {
		ps = append(ps, invalid("spec.resources.memory", s.size.memory.String(), "must be at least "+leastMemory.String()))
	}

	if s.size.cpu.Sign() <= 0 {
		ps = append(ps, invalid("spec.resources.cpu", s.size.cpu.String(), "must be greater than zero, for instance 500m"))
	}

	if s.spec.Storage.Cmp(leastStorage) < 0 {
		ps = append(ps, invalid("spec.storage", s.spec.Storage.String(), "must be at least "+leastStorage.String()))
	}

	return ps
}

var leastStorage = resource.MustParse("1Gi")

func checkAvailability(s *state) []problem {
	a := s.spec.Availability

	return slices.Concat(
		among("spec.availability.spread", a.Spread, v1alpha1.SpreadOverZones, v1alpha1.SpreadOverNodes, v1alpha1.SpreadAnywhere),
		among("spec.availability.profile", a.Profile, v1alpha1.FailoverFast, v1alpha1.FailoverBalanced, v1alpha1.FailoverPatient),
		among("spec.availability.durability", a.Durability,
			v1alpha1.DurabilitySynchronous, v1alpha1.DurabilityStrict, v1alpha1.DurabilityAsynchronous),
	)
}

func checkConfig(s *state) []problem {
	var ps []problem

	for _, name := range sortedKeys(s.spec.Config) {
		value := string(s.spec.Config[name])

		if remedy := postgres.Check(name, value, s.image.major, s.spec.Extensions); remedy != "" && s.image.major > 0 {
			ps = append(ps, invalid("spec.config."+name, value, remedy))
		}
	}

	return append(ps, checkRoom(s)...)
}

// checkRoom looks whether what members are told to take is there: a server that
// takes more than its memory is killed, and one that fills its volume stops.
func checkRoom(s *state) []problem {
	var ps []problem

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
			ps = append(ps, invalid("spec.config."+l.name, string(value), fmt.Sprintf(
				"must be at most half the %s of a member, which is %s", l.what, l.whole.String())))
		}
	}

	return ps
}

func checkExtensions(s *state) []problem {
	var ps []problem

	for i, e := range s.spec.Extensions {
		if s.image.name != "" && !slices.Contains(s.image.version.Extensions, e) {
			ps = append(ps, problem{v1alpha1.ReasonExtensionUnavailable, fmt.Sprintf(
				"spec.extensions[%d]: %q: is not in the image for version %s: choose one of %s, or ask who runs the platform for an image that has it",
				i, e, s.spec.Version, strings.Join(s.image.version.Extensions, ", "))})
		}
	}

	if slices.Contains(s.spec.Extensions, extensionCron) && len(s.spec.Databases) > 1 {
		ps = append(ps, invalid("spec.extensions", extensionCron, "can be in one database of a server only: ask for one database, or leave it out"))
	}

	return ps
}

// extensionCron lives in one database, which its parameters have to name.
const extensionCron = "pg_cron"

// reserved names of databases.
var reserved = []string{"postgres", "template0", "template1", "capstan"}

func checkDatabases(s *state) []problem {
	var ps []problem

	for i, d := range s.spec.Databases {
		if slices.Contains(reserved, d.Name) || strings.HasPrefix(d.Name, "pg_") {
			ps = append(ps, invalid(fmt.Sprintf("spec.databases[%d].name", i), d.Name,
				"is a name that the server uses itself: set spec.databases to another one"))
		}
	}

	return ps
}

func checkConsumers(s *state) []problem {
	var ps []problem

	logins := map[string]string{}

	for i, c := range s.spec.Consumers {
		field := fmt.Sprintf("spec.consumers[%d]", i)

		if !slices.ContainsFunc(s.spec.Databases, func(d v1alpha1.LogicalDatabase) bool { return d.Name == c.Database }) {
			ps = append(ps, invalid(field+".database", c.Database, "must be one of spec.databases: add it there, or leave it out for the first"))
		}

		ps = append(ps, among(field+".access", c.Access, v1alpha1.ConsumerReadWrite, v1alpha1.ConsumerReadOnly)...)

		if other, ok := logins[login(c.Name)]; ok {
			ps = append(ps, invalid(field+".name", c.Name, fmt.Sprintf("would have the login of consumer %q: choose another name", other)))
		}

		logins[login(c.Name)] = c.Name

		// The roles of a database end so.
		for _, d := range s.spec.Databases {
			if login(c.Name) == d.Name+"_owner" || login(c.Name) == d.Name+"_reader" {
				ps = append(ps, invalid(field+".name", c.Name, fmt.Sprintf("is the name of a role of database %q: choose another name", d.Name)))
			}
		}
	}

	return ps
}

// login of a consumer.
func login(consumer string) string { return strings.ReplaceAll(consumer, "-", "_") }

func checkNetwork(s *state) []problem {
	if s.spec.Network == nil {
		return nil
	}

	var ps []problem

	for i, c := range s.spec.Network.From {
		field := fmt.Sprintf("spec.network.from[%d]", i)

		if errs := validation.IsDNS1123Label(c.Namespace); c.Namespace != "" && c.Namespace != everybody && len(errs) > 0 {
			ps = append(ps, invalid(field+".namespace", c.Namespace, "must be the name of a namespace, or * for every namespace"))
		}

		if _, err := netip.ParsePrefix(c.CIDR); c.CIDR != "" && err != nil {
			ps = append(ps, invalid(field+".cidr", c.CIDR, "must be a range of addresses, for instance 10.0.0.0/8"))
		}

		if c.CIDR != "" && (c.Namespace != "" || len(c.PodLabels) > 0) {
			ps = append(ps, invalid(field+".cidr", c.CIDR, "is set beside namespace or podLabels: remove one of the two"))
		}

		for _, k := range sortedKeys(c.PodLabels) {
			if errs := validation.IsQualifiedName(k); len(errs) > 0 {
				ps = append(ps, invalid(field+".podLabels", k, strings.Join(errs, ", and ")))
			}

			if errs := validation.IsValidLabelValue(string(c.PodLabels[k])); len(errs) > 0 {
				ps = append(ps, invalid(field+".podLabels["+strconv.Quote(k)+"]", string(c.PodLabels[k]), strings.Join(errs, ", and ")))
			}
		}
	}

	return ps
}
