// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/postgres"
)

// Files that members read.
const (
	filePatroni = "patroni.yaml"
	fileMember  = "member.json"
)

// memberFile is what the program of the members is told beside Patroni's file.
type memberFile struct {
	// Databases that there should be, sorted.
	Databases []string `json:"databases"`

	// Extensions that there should be in each. Those that only a superuser may make
	// the leader makes.
	Extensions []string `json:"extensions"`

	// Volumes are the members that had a volume before the first of them was made.
	// No member begins a new database beside what they may hold. Left out for members
	// that were made before this was known.
	Volumes *[]string `json:"volumes,omitempty"`

	// Pooled tells that there are poolers, which look passwords up.
	Pooled bool `json:"pooled,omitempty"`

	// Backup says how backups are taken, and From what the Database begins with.
	Backup *backupFile `json:"backup,omitempty"`
	From   *sourceFile `json:"from,omitempty"`

	// Upgrade says whose data, of an earlier major version, this generation is filled
	// with.
	Upgrade *upgradeFile `json:"upgrade,omitempty"`
}

// config of the members, and of Patroni.
func config(s *state) error {
	if s.identity == "" {
		return nil
	}

	p, err := s.pinned()
	if err != nil {
		return err
	}

	server := s.server()
	server.Pinned = p.Parameters

	patroni, err := server.Patroni()
	if err != nil {
		return err
	}

	member, err := json.Marshal(s.memberFile())
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", fileMember, err)
	}

	s.ask(s.in(nameConfig), applycorev1.ConfigMap(s.ownMembers(), s.namespace).
		WithLabels(s.labels()).
		WithData(map[string]string{filePatroni: patroni, fileMember: string(member)}))

	return s.dcs(server, p)
}

// dcs is the ConfigMap that Patroni keeps its configuration in. Capstan owns the
// one annotation with the configuration; what else Patroni writes there is its own.
func (s *state) dcs(server postgres.Server, p pinned) error {
	dynamic, err := server.Dynamic()
	if err != nil {
		return err
	}

	parameters, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("cannot encode pinned parameters: %w", err)
	}

	labels := s.ownLabels()
	labels[observev1alpha1.LabelScope] = s.scope()

	annotations := map[string]string{annotationConfig: dynamic, annotationPinned: string(parameters)}
	if id := s.skipped(); id != "" {
		annotations[annotationSkipped] = id
	}

	s.ask(s.in(nameDCS), applycorev1.ConfigMap(s.scope()+"-config", s.namespace).
		WithLabels(labels).
		WithAnnotations(annotations))

	return nil
}

// dynamic configuration of Patroni in this pass.
func (s *state) dynamic() (string, error) {
	p, err := s.pinned()
	if err != nil {
		return "", err
	}

	server := s.server()
	server.Pinned = p.Parameters

	return server.Dynamic() //nolint:wrapcheck // It says what it could not do.
}

// dcsApplied tells whether the configuration of this pass is the one that was
// observed.
func (s *state) dcsApplied() bool {
	live := s.Observed[s.in(nameDCS)]
	if live == nil || s.identity == "" {
		return false
	}

	wanted, err := s.dynamic()

	return err == nil && wanted == compose.Text(live.Map(), "metadata", "annotations", annotationConfig)
}

func (s *state) memberFile() memberFile {
	f := memberFile{Databases: []string{}, Extensions: slices.Sorted(slices.Values(s.spec.Extensions))}
	for _, d := range s.spec.Databases {
		f.Databases = append(f.Databases, d.Name)
	}

	slices.Sort(f.Databases)

	if f.Extensions == nil {
		f.Extensions = []string{}
	}

	f.Volumes = s.volumesBefore()
	f.Pooled = s.pooled()
	f.Backup, f.From, f.Upgrade = s.backupFile(), s.sourceFile(), s.upgradeFile()

	return f
}

// volumesBefore the first member was made. They are written down once: later there
// are those of all members.
func (s *state) volumesBefore() *[]string {
	var before memberFile

	if o := s.Observed[s.in(nameConfig)]; o != nil &&
		json.Unmarshal([]byte(compose.Text(o.Map(), "data", fileMember)), &before) == nil && before.Volumes != nil {
		return before.Volumes
	}

	if !s.observed || len(s.sets) > 0 {
		return nil
	}

	return new(append([]string{}, s.seen.Volumes...))
}

// remembersVolumes tells whether members can know which volumes were there before
// them.
func (s *state) remembersVolumes() bool {
	if len(s.sets) > 0 {
		return true
	}

	var told memberFile

	o := s.Observed[s.in(nameConfig)]

	return o != nil && json.Unmarshal([]byte(compose.Text(o.Map(), "data", fileMember)), &told) == nil && told.Volumes != nil
}

// server that the members run.
func (s *state) server() postgres.Server {
	c := make(map[string]string, len(s.spec.Config))
	for name, v := range s.spec.Config {
		c[name] = string(v)
	}

	pace := postgres.Balanced

	switch s.spec.Availability.Profile {
	case v1alpha1.FailoverFast:
		pace = postgres.Fast
	case v1alpha1.FailoverPatient:
		pace = postgres.Patient
	case v1alpha1.FailoverBalanced:
	}

	usable := s.usableStorage()

	return postgres.Server{
		Database:       s.base(),
		Scope:          s.scope(),
		Namespace:      s.namespace,
		Major:          s.image.major,
		Members:        s.headcount(),
		Memory:         s.roomOfMembers(),
		Storage:        usable.Value(),
		MaxConnections: s.size.connections,
		Preload:        s.preload(),
		CronDatabase:   s.cronDatabase(),
		Config:         c,
		Pace:           pace,
		Synchronous:    s.synchronous(),
		Pooled:         s.pooled(),
		Strict:         s.spec.Availability.Durability == v1alpha1.DurabilityStrict && !s.aloneSinceUpgrade(),
		Archives:       s.archives(),
		Archiving:      s.backsUp(),
		Restored:       s.sourceFile() != nil,
		Followed:       s.followed(),
		Fence:          s.fence(),
		Paused:         s.pausedByHand(),
	}
}

// roomOfMembers is the memory that every member has: what is asked for, or less as
// long as one runs with less. What takes effect at once reaches them all.
func (s *state) roomOfMembers() int64 {
	n := s.size.memory.Value()

	for _, o := range s.sets {
		if o.memory > 0 {
			n = min(n, o.memory)
		}
	}

	return n
}

// cronDatabase is the database of the extension pg_cron, if it is asked for.
func (s *state) cronDatabase() string {
	if !slices.Contains(s.spec.Extensions, extensionCron) {
		return ""
	}

	return s.spec.Databases[0].Name
}

// canonical quantity: the same for all ways to write it.
func canonical(q resource.Quantity) string {
	c := q.DeepCopy()
	c.Add(resource.Quantity{}) // forgets how it was written

	return c.String()
}
