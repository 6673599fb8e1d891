// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// yes is a condition with the status True. No message holds what changes by itself: each write of one wakes the Database up
// again.
func yes(reason xpv2.ConditionReason, message string) xpv2.Condition {
	return compose.True("", reason, message)
}

// no is a condition with the status False.
func no(reason xpv2.ConditionReason, message string) xpv2.Condition {
	return compose.False("", reason, message)
}

// unknown is a condition with that status.
func unknown(reason xpv2.ConditionReason, message string) xpv2.Condition {
	return compose.Unknown("", reason, message)
}

// available reports whether writes are taken, and if not, what blocks it.
func available(s *state) xpv2.Condition {
	if status, reason, message := s.fencedAvailability(); reason != "" {
		return xpv2.Condition{Status: status, Reason: reason, Message: message}
	}
	full, stopped := s.fullStop()
	switch hindered, is := s.hindered(); {
	case s.hibernated():
		return no(v1alpha1.ReasonHibernated, "members are stopped and keep their data: set spec.hibernated to false to start them")
	case s.leads() && s.seen.Paused:
		return yes(v1alpha1.ReasonPaused,
			"a member leads, and would not be followed if it were lost: failover is paused by hand; "+s.traits.Resume)
	case s.leads():
		return yes(v1alpha1.ReasonLeading, "a member leads and takes writes")
	case len(s.sets) == 0 && len(s.problems) > 0:
		return no(s.problems[0].Reason, "there are no members, because the spec is not accepted: see the condition Accepted")
	case len(s.sets) == 0 && s.awaits() != nil:
		return no(s.awaits().reason, s.awaits().message)
	case len(s.sets) == 0:
		return no(v1alpha1.ReasonMakingReady, "members are being made: see the condition Composed")
	case !s.observed:
		return unknown(v1alpha1.ReasonAwaitingTopology,
			"it is not known who leads: see whether provider-capstan runs; members go on without it")
	case stopped:
		return no(v1alpha1.ReasonStorageFull, full)
	case is:
		return no(xpv2.ConditionReason(hindered.Reason), s.about(hindered))
	case s.seen.Phase == observev1alpha1.TopologyBootstrapping || s.seen.Phase == observev1alpha1.TopologyEmpty:
		return no(v1alpha1.ReasonBootstrapping, "members start for the first time")
	default:
		return no(v1alpha1.ReasonNoLeader, fmt.Sprintf(
			"no member leads: one that can does within the time of spec.availability.profile; if none does, read kubectl logs -n %s -l %s=%s -c %s",
			s.namespace, observev1alpha1.LabelDatabase, s.base(), s.traits.App))
	}
}

// fencedAvailability tells what becomes of writes while clients are being led to another generation, or nothing while they are
// not.
func (s *cluster) fencedAvailability() (corev1.ConditionStatus, xpv2.ConditionReason, string) {
	_, unfenced := s.cannotFence()
	switch {
	case s.fenced() && !s.leads():
		return corev1.ConditionFalse, v1alpha1.ReasonRestoreFencing, "clients are led to another generation: see the conditions Restored and Upgraded"
	case unfenced:
		return corev1.ConditionTrue, v1alpha1.ReasonLeading, "a member leads and takes writes, although it is to stop for an upgrade: see the condition Upgraded"
	case s.fence() != "":
		return corev1.ConditionFalse, v1alpha1.ReasonUpgradeSwitching, "writes wait until the data is upgraded and clients are led to it: see the condition Upgraded"
	default:
		return "", "", ""
	}
}

// about a member that is blocked.
func (s *names) about(m observev1alpha1.TopologyMember) string {
	return fmt.Sprintf("member %s: %s", m.Name, strings.TrimSpace(m.Message))
}

// hindered is the first member that something blocks. That the former leader is waited for explains more than anything else.
func (s *cluster) hindered() (observev1alpha1.TopologyMember, bool) {
	var (
		first observev1alpha1.TopologyMember
		found bool
	)
	for _, m := range s.seen.Members {
		if m.Ready || m.Reason == "" {
			continue
		}
		if m.Reason == string(v1alpha1.ReasonWaitingForFormerLeader) {
			return m, true
		}
		if !found {
			first, found = m, true
		}
	}
	return first, found
}

// highlyAvailable reports whether another member can lead without a loss.
func highlyAvailable(s *state) xpv2.Condition {
	candidates, missing := s.candidates(), s.missing()
	switch {
	case len(s.problems) > 0 && len(s.sets) == 0, !s.observed && len(s.sets) > 0:
		return unknown(v1alpha1.ReasonAwaitingTopology, "it is not known: see the condition Available")
	case s.asleep():
		return no(v1alpha1.ReasonHibernated, "members are stopped or being started: see the condition Updated")
	case s.spec.Replicas == 1 && len(s.sets) <= 1:
		return no(v1alpha1.ReasonSingleMember,
			"there is one member: while it or its node is away there are no writes; raise spec.replicas to 2 or more")
	case !s.leads():
		return no(v1alpha1.ReasonNoLeader, "no member leads: see the condition Available")
	case s.fence() != "":
		return no(v1alpha1.ReasonUpgradeSwitching, "nobody else leads this generation while the data is upgraded: see the condition Upgraded")
	case s.seen.Paused:
		return no(v1alpha1.ReasonPaused, "failover is paused by hand: "+s.traits.Resume)
	case len(candidates) == 0:
		message := "no member follows closely enough to lead without a loss: it is being made, copied, or restarted"
		if m, ok := s.hindered(); ok {
			message = s.about(m)
		}
		return no(v1alpha1.ReasonNoStandby, message)
	case len(missing) > 0:
		message := "another member can lead, and members are missing: " + strings.Join(missing, ", ")
		if m, ok := s.hindered(); ok {
			message += "; " + s.about(m)
		}
		return yes(v1alpha1.ReasonMembersMissing, message)
	default:
		return yes(v1alpha1.ReasonStandbyInSync, "another member can lead at once, with every commit that a client was told of")
	}
}

// candidates that can lead at once: with a synchronous commit those that it waits for, else those that follow closely.
func (s *decision) candidates() []observev1alpha1.TopologyMember {
	var ms []observev1alpha1.TopologyMember
	for _, m := range s.seen.Members {
		switch {
		case !m.Ready || m.State != observev1alpha1.MemberStreaming:
		case s.synchronous(s.holds) && m.Role == observev1alpha1.RoleSyncStandby,
			!s.synchronous(s.holds) && m.Role != observev1alpha1.RoleLeader && m.Lag == observev1alpha1.LagInSync:
			ms = append(ms, m)
		}
	}
	return ms
}

// missing members neither lead nor follow.
func (s *cluster) missing() []string {
	var names []string
	for _, letter := range s.expected() {
		m := s.seenMember(letter)
		if m.State != observev1alpha1.MemberRunning && m.State != observev1alpha1.MemberStreaming {
			names = append(names, m.Name)
		}
	}
	return names
}

// consumersReady reports whether everybody can log in.
func consumersReady(s *state) xpv2.Condition {
	o := s.Observed[nameAccess]
	var pending []string
	for _, c := range s.spec.Consumers {
		if !s.loggedIn(c) {
			pending = append(pending, c.Name)
		}
	}
	trouble := ""
	if o != nil {
		synced := compose.Condition(o.Map(), string(xpv2.TypeSynced))
		if compose.Text(synced, "status") == string(corev1.ConditionFalse) {
			trouble = compose.Text(synced, "message")
		}
	}
	missing := s.missingExtensions()
	switch {
	case s.fenced():
		return no(v1alpha1.ReasonRestoreFencing, "clients are led to another generation: see the conditions Restored and Upgraded")
	case s.asleep():
		return no(v1alpha1.ReasonHibernated, "nobody can log in while members are stopped: set spec.hibernated to false to start them")
	case !s.leads() && (len(pending) > 0 || trouble != ""):
		return no(v1alpha1.ReasonConsumersPending, "logins are made once a member leads: see the condition Available")
	case trouble != "":
		return no(v1alpha1.ReasonAccessFailed, fmt.Sprintf("Access %q: %s", s.name, trouble))
	case len(pending) > 0:
		return no(v1alpha1.ReasonConsumersPending, fmt.Sprintf(
			"waiting for the Secret and the login of %s: see Credential and Access of this Database", strings.Join(pending, ", ")))
	case len(missing) > 0:
		return no(v1alpha1.ReasonExtensionsPending, "waiting for extensions: "+strings.Join(missing, ", ")+s.notManaged())
	default:
		return yes(v1alpha1.ReasonConsumersConnected, "every consumer can log in")
	}
}

// notManaged is why the leader could not make what only a superuser may, if it says so: the reason is its own.
func (s *cluster) notManaged() string {
	for _, m := range s.seen.Members {
		if m.Name == s.seen.Leader && m.Reason == s.traits.Unmanaged {
			return "; the leader: " + m.Message
		}
	}
	return ""
}

// missingExtensions by database, as the Access tells.
func (s *cluster) missingExtensions() []string {
	o := s.Observed[nameAccess]
	if o == nil {
		return nil
	}
	var words []string
	for _, v := range compose.List(o.Map(), "status", "atProvider", "databases") {
		d, _ := v.(map[string]any)
		for _, e := range compose.List(d, "missing") {
			words = append(words, fmt.Sprintf("%v in %s", e, compose.Text(d, "name")))
		}
	}
	return words
}

func deletionProtected(s *state) xpv2.Condition {
	if s.spec.DeletionProtection == nil || *s.spec.DeletionProtection {
		return yes(v1alpha1.ReasonProtected, "deleting it is refused: to delete it, set spec.deletionProtection to false first; its volumes stay either way")
	}
	return no(v1alpha1.ReasonUnprotected, "it may be deleted; its volumes stay")
}

// updated reports whether every member runs what the spec asks for and was well with it, and if not, what it waits for.
func updated(s *state) xpv2.Condition {
	var missing []string
	for _, letter := range s.expected() {
		if _, ok := s.sets[letter]; !ok {
			missing = append(missing, s.member(letter))
		}
	}
	g, after := s.hooksAfter()
	arriving := s.before.arriving(compose.IsTrue(s.Composite.Map(), v1alpha1.TypeUpdated))
	hindered := slices.IndexFunc(arriving, view.hindered)
	switch {
	case len(s.problems)+len(s.refused) > 0:
		return no(v1alpha1.ReasonNotAccepted, "the spec is not carried out: see the condition Accepted")
	case s.hibernated():
		return yes(v1alpha1.ReasonHibernated, "every member is stopped, as the spec asks; what else it asks for is done when they are started")
	case s.asleep():
		return no(s.order.reason, s.order.message)
	case len(missing) > 0 && s.awaits() != nil:
		return no(s.awaits().reason, s.awaits().message)
	case len(missing) > 0:
		return no(v1alpha1.ReasonAddingMembers, "members are being made: "+strings.Join(missing, ", "))
	case !s.order.done && s.order.failed:
		return no(s.order.reason, s.order.message+
			". The others go on as they were. Correct the field of the spec that causes it, or set it back")
	case !s.order.done:
		return no(s.order.reason, s.order.message)
	case hindered >= 0:
		o := s.before.waitingFor(arriving[hindered])
		return no(o.reason, o.message)
	case len(arriving) > 0:
		// They are not named: they come one after the other, and each write would wake the Database up.
		return no(v1alpha1.ReasonAwaitingStandby,
			"every member was told what the spec asks for: waiting until all run it and lead or follow closely: see status.members")
	case after:
		return no(g.reason, "every member is as the spec asks; "+g.message)
	case len(s.pendingRestart()) > 0:
		return no(v1alpha1.ReasonRestartPending, fmt.Sprintf(
			"parameters wait for a restart although members were restarted for them: %s: correct them in spec.config", strings.Join(s.pendingRestart(), ", ")))
	default:
		return yes(v1alpha1.ReasonUpdated, "every member is as the spec asks")
	}
}

// pendingRestart are members with parameters that wait for a restart.
func (s *cluster) pendingRestart() []string {
	var words []string
	for _, m := range s.seen.Members {
		if len(m.PendingRestart) > 0 {
			words = append(words, fmt.Sprintf("%s of %s", strings.Join(m.PendingRestart, ", "), m.Name))
		}
	}
	return words
}
