// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"slices"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/access"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
)

// coordination of the members in this pass.
func coordination(s *facts.Cluster, holds bool) string {
	server := Server(s, holds)
	server.Pinned = Pin(s, holds).Parameters
	return s.Engine.Coordination(server)
}

// CoordinationApplied reports whether the coordination of this pass is the one that was observed.
func CoordinationApplied(s *facts.Cluster) bool {
	live := s.Observed[s.In(names.DCS)]
	return live != nil && s.Identity != "" && coordination(s, false) == compose.Text(live.Map(), "metadata", "annotations", names.AnnotationConfig)
}

// MemberFile is what the program in members has to know, for any engine.
func MemberFile(s *facts.Cluster) engine.Member {
	sorted := func(values []string) []string { return append([]string{}, slices.Sorted(slices.Values(values))...) }
	m := engine.Member{
		Generation: s.Generation, Domain: s.Host(names.SuffixPods),
		Databases: sorted(s.Fields().Databases), Extensions: sorted(s.Spec.Extensions), Recorded: toRecord(s), Pooled: s.Pooled(),
		Backup: backup.File(s), From: backup.SourceFile(s), Upgrade: upgradeFile(s), Replicators: access.Replicators(s),
		Import: importFile(s), Dumps: dumpsFile(s), TakeOver: takeOverFile(s),
	}
	if m.From != nil && m.From.Snapshot == nil && s.SourceSnapshot() != "" {
		m.From.Snapshot = m.Snapshot
	}
	if r := s.Spec.Reinitialize; r != nil {
		m.Reinitialize = &members.Reinitialize{ID: r.ID, Member: r.Member}
	}
	if f := s.Spec.Fence; f != nil {
		m.Fence = &members.MemberFence{ID: f.ID, Member: f.Member}
	}
	for _, q := range s.Spec.Monitoring.Queries {
		m.Queries = append(m.Queries, members.Query{
			Name: q.Name, Help: q.Help, Database: q.Database, SQL: q.SQL, Values: texts(q.Values), Labels: texts(q.Labels), IntervalSeconds: *q.IntervalSeconds,
		})
	}
	r := s.Spec.Replication
	if r == nil {
		return m
	}
	for _, c := range r.Slots {
		m.Slots = append(m.Slots, engine.Slot{Name: c.Name, Database: c.Database, Plugin: c.Plugin})
	}
	for _, p := range r.Publications {
		m.Publications = append(m.Publications, engine.Publication{
			Name: p.Name, Database: p.Database, Tables: slices.Sorted(slices.Values(p.Tables)), AllTables: p.AllTables,
		})
	}
	return m
}

func texts(columns []v1alpha1.QueryColumn) []string {
	out := make([]string, 0, len(columns))
	for _, c := range columns {
		out = append(out, string(c))
	}
	return out
}

// toRecord are the volumes before the first member was made, once, because later every member has a volume; and that there is data.
func toRecord(s *facts.Cluster) engine.Recorded {
	r := recorded(s)
	if o := s.Observed[s.In(names.DCS)]; o != nil {
		r.Begun = r.Begun || compose.Text(o.Map(), "metadata", "annotations", members.AnnotationInitialize) != ""
	}
	if r.Volumes == nil && s.HasTopology && len(s.Sets) == 0 && len(Former(s)) == 0 {
		r.Volumes = new(append([]string{}, s.Seen.Volumes...))
	}
	return r
}

// recorded in the files that members have.
func recorded(s *facts.Cluster) engine.Recorded {
	o := s.Observed[s.In(names.Config)]
	if o == nil {
		return engine.Recorded{}
	}
	files := map[string]string{}
	for name, text := range compose.Map(o.Map(), "data") {
		files[name], _ = text.(string)
	}
	return s.Engine.Recorded(files)
}

// Former volumes keep a Preview from making members: volumes of an earlier Database of the same name, whose data it would use and delete. Of
// any other Database there are none, because it takes its volumes back.
func Former(s *facts.Cluster) []string {
	if s.Preview == "" || len(s.Sets) > 0 || recorded(s).Volumes != nil {
		return nil
	}
	return s.Seen.Volumes
}

// KnowsVolumes reports whether members can know which volumes were there before them.
func KnowsVolumes(s *facts.Cluster) bool {
	return len(s.Sets) > 0 || recorded(s).Volumes != nil
}

// Server that the members run.
func Server(s *facts.Cluster, holds bool) engine.Server {
	f, usable := s.Fields(), s.Sizes.Usable
	f.Database, f.Scope, f.Namespace = s.Base(), s.Scope(), s.Namespace
	f.Members, f.Memory, f.Storage = s.Copies(holds), roomOfMembers(s), usable.Value()
	f.WALStorage, f.WALMoves = s.Sizes.UsableWAL.Value(), s.Sizes.WALMoves
	f.Profile, f.Synchronous = s.Spec.Availability.Profile, s.Synchronous(holds)
	// Members that will be removed must not keep commits from ending.
	strict := s.Spec.Availability.Durability == v1alpha1.DurabilityStrict && !s.AloneSinceUpgrade() || s.WaitsForStandby()
	f.Strict = strict && s.Headcount(holds) > 1
	f.Archives, f.Archiving, f.Restored = backup.Archives(s), s.TakesBackups(), backup.SourceFile(s) != nil
	f.Follows, f.Standby = s.Follows(), s.Standby()
	f.Followed, f.Fence, f.Pooled = s.Followed(), s.Fence(), s.Pooled()
	// The pause of a fence is not by hand.
	c := s.Coordinated()
	f.Paused = c.Paused && c.Fence.ID == ""
	return f
}

// roomOfMembers is the memory that every member has: the desired memory, or less as long as a member runs with less. Parameters
// that take effect at once reach all members.
func roomOfMembers(s *facts.Cluster) int64 {
	n := s.Size.Memory.Value()
	for _, o := range s.Sets {
		if o.Memory > 0 {
			n = min(n, o.Memory)
		}
	}
	return n
}

// takeOverFile of this generation while a restore fills it. It has no clients before the generation that serves has stopped.
func takeOverFile(s *facts.Cluster) *engine.TakeOver {
	if !s.ComesUpBy(memory.StepRestore) {
		return nil
	}
	step := s.Memory.Step
	return &engine.TakeOver{ID: step.ID, Database: names.BaseOf(s.Name, step.From), Scope: s.ScopeOf(step.From)}
}

// upgradeFile of this generation while it starts. After that it has data: if its volumes are lost, it must not begin with the data
// of the earlier version again.
func upgradeFile(s *facts.Cluster) *engine.Upgrade {
	if !s.ComesUpBy(memory.StepUpgrade) {
		return nil
	}
	step := s.Memory.Step
	return &engine.Upgrade{
		ID: step.ID, From: s.VersionOf(step.From), Database: names.BaseOf(s.Name, step.From), Scope: s.ScopeOf(step.From), Member: s.Member(names.Letters[0]),
	}
}
