// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/access"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/hooks"
	"github.com/capstan-dev/capstan/function/database/maintenance"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/order"
	"github.com/capstan-dev/capstan/function/database/podinputs"
)

// status is complete: Crossplane removes what is left out.
func status(s *decision.Pass, d *compose.Draft) v1alpha1.DatabaseStatus {
	st := v1alpha1.DatabaseStatus{
		Phase:      phase(s.Decision),
		Replicas:   int32(len(s.Sets)), //nolint:gosec // At most nine.
		Leader:     s.Seen.Leader,
		Identity:   s.Identity,
		Resilience: resilience(s.Decision),
		Storage:    storageStatus(s.Cluster),
		Change:     change(s.Decision),
		Hooks:      hookStatus(s.Decision),
		Switchover: switchoverStatus(s.Decision),

		Reinitialize: reinitializeStatus(s.Cluster),
		Fence:        fenceStatus(s.Cluster),
		Standby:      standbyStatus(s.Cluster),
		Import:       importStatus(s.Cluster),
		Backup:       backupStatus(s.Cluster),
		Generation:   generationStatus(s.Cluster),
		Restore:      restoreStatus(s),
		Upgrade:      upgradeStatus(s),
		Signals:      s.Signals.Status(s.HookRuns, func(act eventsv1alpha1.Act) string { return ignores(s.Cluster, act) }),
		Withheld:     d.Withheld(),
	}
	if !s.Leads() || s.Standby() || s.Importing() {
		st.Leader = "" // no member takes writes
	}
	if s.Observed[names.ReadWrite] != nil {
		st.Endpoints = &v1alpha1.DatabaseEndpoints{ReadWrite: fmt.Sprintf("%s:%d", s.Host(names.SuffixRW), s.Traits.Ports.Client)}
		if s.Spec.Replicas > 1 {
			st.Endpoints.ReadOnly = fmt.Sprintf("%s:%d", s.Host(names.SuffixRO), s.Traits.Ports.Client)
		}
		st.Endpoints.Pooler, st.Endpoints.PoolerReadOnly = poolerEndpoints(s.Cluster)
		st.Endpoints.External = s.ExternalEndpoint()
	}
	for _, c := range s.Spec.Consumers {
		st.ConnectionSecrets = append(st.ConnectionSecrets, access.ConnectionSecret(s.Cluster, c))
	}
	revision := ""
	if len(s.Problems) == 0 {
		revision = podinputs.Revision(s.Cluster)
	}
	for _, v := range order.Of(s.Cluster, revision).Views {
		if !v.Exists && v.State == observev1alpha1.MemberUnknown {
			continue
		}
		st.Members = append(st.Members, v1alpha1.MemberStatus{
			Name: v.Name, Role: v.Role, State: v.State, Node: v.Node, Zone: v.Zone, Lag: v.Lag,
			PendingRestart: len(v.PendingRestart) > 0,
			Updated:        v.Current && v.Settled && len(s.Problems)+len(s.Refused) == 0,
		})
		if v.Ready && v.State != observev1alpha1.MemberStarting && v.State != observev1alpha1.MemberUnknown {
			st.ReadyReplicas++
		}
		if v.Leading() {
			st.Version = v.Version
		}
	}
	if f := s.Seen.LastFailover; f != nil {
		st.LastFailover = &v1alpha1.FailoverStatus{At: f.At, From: f.From, To: f.To, Cause: f.Cause}
	}
	return st
}

func phase(s *decision.Decision) v1alpha1.DatabasePhase {
	ever := s.Seen.SystemIdentifier != "" || s.Seen.LastFailover != nil
	switch {
	case order.Hibernated(s.Cluster):
		return v1alpha1.DatabaseHibernated
	case s.Asleep() && s.HasTopology:
		return v1alpha1.DatabaseUpdating
	case len(s.Sets) == 0:
		return v1alpha1.DatabasePending
	case !s.HasTopology:
		before := compose.Text(s.Composite.Map(), "status", "phase")
		if before == "" {
			return v1alpha1.DatabaseCreating
		}
		return v1alpha1.DatabasePhase(before)
	case s.Fence().ID != "":
		return v1alpha1.DatabaseUpdating
	case !s.Leads() && (s.Seen.Phase != observev1alpha1.TopologyNoLeader && !ever):
		return v1alpha1.DatabaseCreating
	case !s.Leads():
		return v1alpha1.DatabaseDown
	case changing(s):
		return v1alpha1.DatabaseUpdating
	case len(missing(s.Cluster)) > 0:
		return v1alpha1.DatabaseDegraded
	default:
		return v1alpha1.DatabaseRunning
	}
}

// changing reports whether a change is under way and continues by itself.
func changing(s *decision.Decision) bool {
	return len(s.Problems) == 0 && !s.Order.Done && !s.Order.Failed && !s.Order.Held
}

// isReady reports whether the Database matches the spec: members are stopped if the spec asks for that; otherwise there is a
// leader, and nothing it needs is missing. For the first time, every consumer can also log in and finds the extensions, because
// programs that wait for a Ready Database start with their migrations. Once ready, it stays ready while there is a leader.
func isReady(s *decision.Pass, d *compose.Draft) bool {
	before := compose.IsTrue(s.Composite.Map(), xpv2.TypeReady)
	consumersServed := len(missingExtensions(s.Cluster)) == 0 &&
		!slices.ContainsFunc(s.Spec.Consumers, func(c v1alpha1.Consumer) bool { return !access.LoggedIn(s.Cluster, c) })
	switch {
	case order.Hibernated(s.Cluster):
		return d.Complete()
	case len(s.Sets) > 0 && !s.HasTopology:
		// Without the Topology, the last known state stays.
		return before
	case s.Importing():
		return false // what waits for it begins with migrations, which the source has to make or a dump has
	case s.Standby():
		return s.Leads() && s.FollowReport().State == observev1alpha1.FollowCaughtUp && (before || d.Complete() && len(missing(s.Cluster)) == 0)
	default:
		return s.Leads() && (before || d.Complete() && consumersServed && len(missing(s.Cluster)) == 0)
	}
}

// ttl until the next reconcile, by what the Database waits for.
func ttl(s *decision.Pass, d *compose.Draft, ready bool) time.Duration {
	deadlines := d.Deadlines()
	add := func(at time.Time, known bool) {
		if known && !at.IsZero() {
			deadlines = append(deadlines, at)
		}
	}
	for _, k := range s.Memory.Kept {
		add(k.Until, true)
	}
	if s.Restoring != nil {
		add(s.Restoring.Until, true)
	}
	if s.Upgrading != nil {
		add(s.Upgrading.Until, true)
	}
	if s.Known && s.Fence().ID != "" {
		add(s.Memory.Step.FencedUntil(), true)
	}
	if s.Move != nil {
		add(s.Move.Gate.Until, true)
	}
	if w := maintenance.WindowAt(s.Spec.Maintenance, s.Signals.Hold(), s.Now); w != nil {
		add(w.End.Add(-maintenance.MemberTakes), len(s.Planned) > 0 && !s.Order.Held)
	}
	add(s.Before.Gate.Until, order.UpgradeNext(s.Cluster, s.Before))
	add(s.Order.Until, true)
	for _, at := range s.HookRuns.Limits(hooks.ForSignals(s.Cluster)) {
		add(at, len(s.Problems) == 0)
	}
	add(backup.Due(s.Cluster))
	add(backup.FirstAgain(s.Cluster))
	add(backup.GapAgain(s.Cluster))
	add(backup.VerifyLost(s.Cluster))
	add(backup.VerifyDue(s.Cluster))
	add(backup.SnapshotDue(s.Cluster))
	return pace(s, d, ready).TTL(s.Now, deadlines...)
}

func pace(s *decision.Pass, d *compose.Draft, ready bool) compose.Pace {
	pace := compose.Settled
	if !ready || changing(s.Decision) || restores(s) || incomplete(s.Decision) || s.Hooks.Gate.Closed() && !s.Hooks.Gate.Failed {
		pace = compose.Waiting
	}
	// A Database that comes up, or whose members change, is what makes Crossplane stop listening: a minute of it brings a hundred
	// changes.
	switch unheard := compose.Unheard(s.Request); {
	case unheard && pace == compose.Waiting:
		pace = compose.Expecting
	case unheard:
		pace = compose.Following
	}
	if d.Waits() {
		pace = max(pace, compose.Asking)
	}
	if Hurried(s.Cluster) || s.Importing() && slices.Contains([]string{observev1alpha1.ImportCuttingOver, observev1alpha1.ImportCutOver, observev1alpha1.ImportRestored}, s.ImportReport().State) {
		pace = compose.Hurrying
	}
	return pace
}

// incomplete reports whether a member that should run does not, or none could replace the leader.
func incomplete(s *decision.Decision) bool {
	return !order.Hibernated(s.Cluster) && (len(missing(s.Cluster)) > 0 || s.Spec.Replicas > 1 && len(candidates(s)) == 0)
}

// HurryFor is how long a step during which clients cannot write is reconciled all the time. A longer step waits for a pod or a
// node, not for Capstan.
const HurryFor = 5 * time.Minute

// Hurried reports whether clients wait until they are switched to another generation. That takes several changes one after the
// other, and each change that Crossplane does not notice would block writes for half a minute more.
func Hurried(s *facts.Cluster) bool {
	step := s.Memory.Step
	return step != nil && step.Phase == v1alpha1.RestoreFencing && s.Now.Before(step.Since.Add(HurryFor))
}
