// SPDX-License-Identifier: Apache-2.0

package database

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// config of the members, and what all of them follow at run time.
func config(d *compose.Draft, s *decision) {
	if s.identity == "" {
		return
	}
	p, server := s.pinned(s.holds), s.server(s.holds)
	server.Pinned = p.Parameters
	files := s.engine.Files(server, s.memberFile())
	d.Add(s.in(nameConfig), applycorev1.ConfigMap(s.ownMembers(), s.namespace).WithLabels(s.labels()).WithData(files), s.side)
	// Capstan owns the annotations; what else members write there is their own.
	labels := s.ownLabels()
	labels[observev1alpha1.LabelScope] = s.scope()
	annotations := map[string]string{annotationConfig: s.engine.Coordination(server), annotationPinned: encoding.JSON(p)}
	if id := s.skipped(); id != "" {
		annotations[annotationSkipped] = id
	}
	d.Add(s.in(nameDCS), applycorev1.ConfigMap(s.scope()+"-config", s.namespace).WithLabels(labels).WithAnnotations(annotations), s.side)
}

// coordination of the members in this pass.
func (s *cluster) coordination(holds bool) string {
	server := s.server(holds)
	server.Pinned = s.pinned(holds).Parameters
	return s.engine.Coordination(server)
}

// coordinationApplied reports whether the coordination of this pass is the one that was observed.
func (s *cluster) coordinationApplied() bool {
	live := s.Observed[s.in(nameDCS)]
	return live != nil && s.identity != "" && s.coordination(false) == compose.Text(live.Map(), "metadata", "annotations", annotationConfig)
}

func (s *cluster) memberFile() engine.Member {
	f := engine.Member{Databases: []string{}, Extensions: slices.Sorted(slices.Values(s.spec.Extensions))}
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

// volumesBefore the first member was made. They are written down once: later there are those of all members.
func (s *cluster) volumesBefore() *[]string {
	if before := s.volumesRecorded(); before != nil {
		return before
	}
	if !s.observed || len(s.sets) > 0 {
		return nil
	}
	return new(append([]string{}, s.seen.Volumes...))
}

// volumesRecorded in the files that members have; nil when there are none.
func (s *cluster) volumesRecorded() *[]string {
	o := s.Observed[s.in(nameConfig)]
	if o == nil {
		return nil
	}
	files := map[string]string{}
	for name, text := range compose.Map(o.Map(), "data") {
		files[name], _ = text.(string)
	}
	return s.engine.Volumes(files)
}

// knowsVolumes reports whether members can know which volumes were there before them.
func (s *cluster) knowsVolumes() bool {
	return len(s.sets) > 0 || s.volumesRecorded() != nil
}

// fields of the spec that the engine checks.
func (s *cluster) fields() engine.Server {
	f := engine.Server{
		Version: s.data, Image: s.image.version, Config: make(map[string]string, len(s.spec.Config)), Extensions: s.spec.Extensions,
		Connections: s.size.connections, SpecMemory: s.size.memory, SpecStorage: s.spec.Storage,
	}
	for name, v := range s.spec.Config {
		f.Config[name] = string(v)
	}
	for _, d := range s.spec.Databases {
		f.Databases = append(f.Databases, d.Name)
	}
	return f
}

// server that the members run.
func (s *cluster) server(holds bool) engine.Server {
	f, usable := s.fields(), s.sizes.usable
	f.Database, f.Scope, f.Namespace = s.base(), s.scope(), s.namespace
	f.Members, f.Memory, f.Storage = s.headcount(holds), s.roomOfMembers(), usable.Value()
	f.Profile, f.Synchronous = s.spec.Availability.Profile, s.synchronous(holds)
	f.Strict = s.spec.Availability.Durability == v1alpha1.DurabilityStrict && !s.aloneSinceUpgrade()
	f.Archives, f.Archiving, f.Restored = s.archives(), s.takesBackups(), s.sourceFile() != nil
	f.Followed, f.Fence, f.Pooled = s.followed(), s.fence(), s.pooled()
	// The pause of a fence is not by hand.
	c := s.coordinated()
	f.Paused = c.Paused && c.Fence == ""
	return f
}

// roomOfMembers is the memory that every member has: what is asked for, or less as long as one runs with less. What takes effect
// at once reaches them all.
func (s *cluster) roomOfMembers() int64 {
	n := s.size.memory.Value()
	for _, o := range s.sets {
		if o.memory > 0 {
			n = min(n, o.memory)
		}
	}
	return n
}

// canonical quantity: the same for all ways to write it.
func canonical(q resource.Quantity) string {
	c := q.DeepCopy()
	c.Add(resource.Quantity{}) // forgets how it was written
	return c.String()
}
