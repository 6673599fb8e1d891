// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"slices"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// status is complete: Crossplane removes what is left out.
func (s *state) status(d *compose.Draft) v1alpha1.DatabaseStatus {
	st := v1alpha1.DatabaseStatus{
		Phase:      s.phase(),
		Replicas:   int32(len(s.sets)), //nolint:gosec // At most nine.
		Leader:     s.seen.Leader,
		Identity:   s.identity,
		Resilience: s.resilience(),
		Storage:    s.storageStatus(),
		Change:     s.change(),
		Hooks:      s.hookStatus(),
		Switchover: s.switchoverStatus(),
		Backup:     s.backupStatus(),
		Generation: s.generationStatus(),
		Restore:    s.restoreStatus(),
		Upgrade:    s.upgradeStatus(),
		Withheld:   d.Withheld(),
	}
	if !s.leads() {
		st.Leader = ""
	}
	if s.Observed[nameReadWrite] != nil {
		st.Endpoints = &v1alpha1.DatabaseEndpoints{ReadWrite: fmt.Sprintf("%s:%d", s.host(suffixRW), s.traits.Ports.Client)}
		if s.spec.Replicas > 1 {
			st.Endpoints.ReadOnly = fmt.Sprintf("%s:%d", s.host(suffixRO), s.traits.Ports.Client)
		}
		st.Endpoints.Pooler, st.Endpoints.External = s.poolerEndpoint(), s.externalEndpoint()
	}
	for _, c := range s.spec.Consumers {
		st.ConnectionSecrets = append(st.ConnectionSecrets, s.connectionSecret(c))
	}
	for _, v := range s.situation(s.runs()).views {
		if !v.exists && v.State == observev1alpha1.MemberUnknown {
			continue
		}
		st.Members = append(st.Members, v1alpha1.MemberStatus{
			Name: v.name, Role: v.Role, State: v.State, Node: v.Node, Zone: v.Zone, Lag: v.Lag,
			PendingRestart: len(v.PendingRestart) > 0,
			Updated:        v.current && v.settled && len(s.problems)+len(s.refused) == 0,
		})
		if v.Ready && v.State != observev1alpha1.MemberStarting {
			st.ReadyReplicas++
		}
		if v.leading() {
			st.Version = v.Version
		}
	}
	if f := s.seen.LastFailover; f != nil {
		st.LastFailover = &v1alpha1.FailoverStatus{At: f.At, From: f.From, To: f.To, Cause: f.Cause}
	}
	return st
}

// runs is the revision that members should run, or nothing while the spec is not carried out.
func (s *cluster) runs() string {
	if len(s.problems) > 0 {
		return ""
	}
	return s.revision()
}

func (s *decision) phase() v1alpha1.DatabasePhase {
	ever := s.seen.SystemIdentifier != "" || s.seen.LastFailover != nil
	switch {
	case s.hibernated():
		return v1alpha1.DatabaseHibernated
	case s.asleep() && s.observed:
		return v1alpha1.DatabaseUpdating
	case len(s.sets) == 0:
		return v1alpha1.DatabasePending
	case !s.observed:
		before := compose.Text(s.Composite.Map(), "status", "phase")
		if before == "" {
			return v1alpha1.DatabaseCreating
		}
		return v1alpha1.DatabasePhase(before)
	case s.fence() != "":
		return v1alpha1.DatabaseUpdating
	case !s.leads() && (s.seen.Phase != observev1alpha1.TopologyNoLeader && !ever):
		return v1alpha1.DatabaseCreating
	case !s.leads():
		return v1alpha1.DatabaseDown
	case s.changing():
		return v1alpha1.DatabaseUpdating
	case len(s.missing()) > 0:
		return v1alpha1.DatabaseDegraded
	default:
		return v1alpha1.DatabaseRunning
	}
}

// changing reports whether a change is under way and goes on by itself.
func (s *decision) changing() bool {
	return len(s.problems) == 0 && !s.order.done && !s.order.failed && !s.order.held
}

// readiness of the Database: it is as asked. Stopped members are when the spec asks for that; else a member leads, and nothing it
// needs is missing. For the first time every consumer can log in and finds the extensions, too: what waits for a Database that is
// Ready begins with its migrations. Once ready, it stays so while a member leads.
func (s *state) isReady(d *compose.Draft) bool {
	before := compose.IsTrue(s.Composite.Map(), xpv2.TypeReady)
	repositoryAddress := len(s.missingExtensions()) == 0 &&
		!slices.ContainsFunc(s.spec.Consumers, func(c v1alpha1.Consumer) bool { return !s.loggedIn(c) })
	switch {
	case s.hibernated():
		return d.Complete()
	case len(s.sets) > 0 && !s.observed:
		// Nobody looks: what was is what is known.
		return before
	default:
		return s.leads() && (before || d.Complete() && repositoryAddress && len(s.missing()) == 0)
	}
}

// moveDeadlines are when a switchover that waits is worth another look.
func (s *decision) moveDeadlines() []time.Time {
	if s.move == nil || s.move.gate.until.IsZero() {
		return nil
	}
	return []time.Time{s.move.gate.until}
}

// ttl by what the Database waits for.
func (s *state) ttl(d *compose.Draft, ready bool) time.Duration {
	deadlines := slices.Concat(s.restoreDeadlines(), s.upgradeDeadlines(), s.moveDeadlines(), d.Deadlines())
	if !s.order.until.IsZero() {
		deadlines = append(deadlines, s.order.until)
	}
	if w := windowAt(s.spec.Maintenance, s.Now); w != nil && len(s.planned) > 0 && !s.order.held {
		deadlines = append(deadlines, w.End.Add(-memberTakes))
	}
	add := func(at time.Time, known bool) {
		if known {
			deadlines = append(deadlines, at)
		}
	}
	add(s.backupDue())
	add(s.firstAgain())
	add(s.verifyLost())
	add(s.verifyDue())
	return s.pace(d, ready).TTL(s.Now, deadlines...)
}

// pace of the Database.
func (s *state) pace(d *compose.Draft, ready bool) compose.Pace {
	pace := compose.Settled
	if !ready || s.changing() || s.restores() || s.incomplete() || s.hooks.gate.closed() && !s.hooks.gate.failed {
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
	if s.hurried() {
		pace = compose.Hurrying
	}
	return pace
}

// incomplete reports whether a member that should run does not, or none could lead in the leader's place.
func (s *decision) incomplete() bool {
	return !s.hibernated() && (len(s.missing()) > 0 || s.spec.Replicas > 1 && len(s.candidates()) == 0)
}

// hurryFor is how long a step that nobody can write during is looked at all the time. One that takes longer waits for a pod or a
// node, not for us.
const hurryFor = 5 * time.Minute

// hurried reports whether clients wait until they are led to another generation. What leads to that is several changes one after
// the other, and with each that goes unheard writes would stand still for half a minute more.
func (s *cluster) hurried() bool {
	step := s.memory.Step
	return step != nil && step.Phase == v1alpha1.RestoreFencing && s.Now.Before(step.Since.Add(hurryFor))
}
