// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/access"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/members"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/order"
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
func available(s *decision.Pass) xpv2.Condition {
	if status, reason, message := fencedAvailability(s.Cluster); reason != "" {
		return xpv2.Condition{Status: status, Reason: reason, Message: message}
	}
	full, stopped := fullStop(s.Cluster)
	switch blocked, is := blocked(s.Cluster); {
	case order.Hibernated(s.Cluster):
		return no(v1alpha1.ReasonHibernated, "members are stopped and keep their data: set spec.hibernated to false to start them")
	case s.Leads() && s.Seen.Paused:
		return yes(v1alpha1.ReasonPaused,
			"a member leads, and would not be followed if it were lost: failover is paused by hand; "+s.Traits.Resume)
	case s.Leads():
		return yes(v1alpha1.ReasonLeading, "a member leads and takes writes")
	case len(s.Sets) == 0 && len(s.Problems) > 0:
		return no(s.Problems[0].Reason, "there are no members, because the spec is not accepted: see the condition Accepted")
	case len(s.Sets) == 0 && members.Missing(s) != nil:
		return no(members.Missing(s).Reason, members.Missing(s).Message)
	case len(s.Sets) == 0:
		return no(v1alpha1.ReasonMakingReady, "members are being made: see the condition Composed")
	case !s.HasTopology:
		return unknown(v1alpha1.ReasonAwaitingTopology,
			"it is not known who leads: see whether provider-capstan runs; members go on without it")
	case stopped:
		return no(v1alpha1.ReasonStorageFull, full)
	case is:
		return no(xpv2.ConditionReason(blocked.Reason), about(blocked))
	case s.Seen.Phase == observev1alpha1.TopologyBootstrapping || s.Seen.Phase == observev1alpha1.TopologyEmpty:
		return no(v1alpha1.ReasonBootstrapping, "members start for the first time")
	default:
		return no(v1alpha1.ReasonNoLeader, fmt.Sprintf(
			"no member leads: one that can does within the time of spec.availability.profile; if none does, read kubectl logs -n %s -l %s=%s -c %s",
			s.Namespace, observev1alpha1.LabelDatabase, s.Base(), s.Traits.App))
	}
}

// fencedAvailability tells what becomes of writes while clients are being led to another generation, or nothing while they are
// not.
func fencedAvailability(s *facts.Cluster) (corev1.ConditionStatus, xpv2.ConditionReason, string) {
	_, unfenced := cannotFence(s)
	switch {
	case s.Fenced() && !s.Leads():
		return corev1.ConditionFalse, v1alpha1.ReasonRestoreFencing, "clients are led to another generation: see the conditions Restored and Upgraded"
	case unfenced:
		return corev1.ConditionTrue, v1alpha1.ReasonLeading, "a member leads and takes writes, although it is to stop for an upgrade: see the condition Upgraded"
	case s.Fence() != "":
		return corev1.ConditionFalse, v1alpha1.ReasonUpgradeSwitching, "writes wait until the data is upgraded and clients are led to it: see the condition Upgraded"
	default:
		return "", "", ""
	}
}

// about a member that is blocked.
func about(m observev1alpha1.TopologyMember) string {
	return fmt.Sprintf("member %s: %s", m.Name, strings.TrimSpace(m.Message))
}

// blocked is the first member that something blocks. That the former leader is waited for explains more than anything else.
func blocked(s *facts.Cluster) (observev1alpha1.TopologyMember, bool) {
	var (
		first observev1alpha1.TopologyMember
		found bool
	)
	for _, m := range s.Seen.Members {
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
func highlyAvailable(s *decision.Pass) xpv2.Condition {
	candidates, missing := candidates(s.Decision), missing(s.Cluster)
	switch {
	case len(s.Problems) > 0 && len(s.Sets) == 0, !s.HasTopology && len(s.Sets) > 0:
		return unknown(v1alpha1.ReasonAwaitingTopology, "it is not known: see the condition Available")
	case s.Asleep():
		return no(v1alpha1.ReasonHibernated, "members are stopped or being started: see the condition Updated")
	case s.Spec.Replicas == 1 && len(s.Sets) <= 1:
		return no(v1alpha1.ReasonSingleMember,
			"there is one member: while it or its node is away there are no writes; raise spec.replicas to 2 or more")
	case !s.Leads():
		return no(v1alpha1.ReasonNoLeader, "no member leads: see the condition Available")
	case s.Fence() != "":
		return no(v1alpha1.ReasonUpgradeSwitching, "nobody else leads this generation while the data is upgraded: see the condition Upgraded")
	case s.Seen.Paused:
		return no(v1alpha1.ReasonPaused, "failover is paused by hand: "+s.Traits.Resume)
	case len(candidates) == 0:
		message := "no member follows closely enough to lead without a loss: it is being made, copied, or restarted"
		if m, ok := blocked(s.Cluster); ok {
			message = about(m)
		}
		return no(v1alpha1.ReasonNoStandby, message)
	case len(missing) > 0:
		message := "another member can lead, and members are missing: " + strings.Join(missing, ", ")
		if m, ok := blocked(s.Cluster); ok {
			message += "; " + about(m)
		}
		return yes(v1alpha1.ReasonMembersMissing, message)
	default:
		return yes(v1alpha1.ReasonStandbyInSync, "another member can lead at once, with every commit that a client was told of")
	}
}

// candidates that can lead at once: with a synchronous commit those that it waits for, else those that follow closely.
func candidates(s *decision.Decision) []observev1alpha1.TopologyMember {
	var ms []observev1alpha1.TopologyMember
	for _, m := range s.Seen.Members {
		switch {
		case !m.Ready || m.State != observev1alpha1.MemberStreaming:
		case s.Synchronous(s.Holds) && m.Role == observev1alpha1.RoleSyncStandby,
			!s.Synchronous(s.Holds) && m.Role != observev1alpha1.RoleLeader && m.Lag == observev1alpha1.LagInSync:
			ms = append(ms, m)
		}
	}
	return ms
}

// missing members neither lead nor follow.
func missing(s *facts.Cluster) []string {
	var names []string
	for _, letter := range s.Expected() {
		m := s.SeenMember(letter)
		if m.State != observev1alpha1.MemberRunning && m.State != observev1alpha1.MemberStreaming {
			names = append(names, m.Name)
		}
	}
	return names
}

// consumersReady reports whether everybody can log in.
func consumersReady(s *decision.Pass) xpv2.Condition {
	o := s.Observed[names.Access]
	var pending []string
	for _, c := range s.Spec.Consumers {
		if !access.LoggedIn(s.Cluster, c) {
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
	missing := missingExtensions(s.Cluster)
	switch {
	case s.Fenced():
		return no(v1alpha1.ReasonRestoreFencing, "clients are led to another generation: see the conditions Restored and Upgraded")
	case s.Asleep():
		return no(v1alpha1.ReasonHibernated, "nobody can log in while members are stopped: set spec.hibernated to false to start them")
	case !s.Leads() && (len(pending) > 0 || trouble != ""):
		return no(v1alpha1.ReasonConsumersPending, "logins are made once a member leads: see the condition Available")
	case trouble != "":
		return no(v1alpha1.ReasonAccessFailed, fmt.Sprintf("Access %q: %s", s.Name, trouble))
	case len(pending) > 0:
		return no(v1alpha1.ReasonConsumersPending, fmt.Sprintf(
			"waiting for the Secret and the login of %s: see Credential and Access of this Database", strings.Join(pending, ", ")))
	case len(missing) > 0:
		return no(v1alpha1.ReasonExtensionsPending, "waiting for extensions: "+strings.Join(missing, ", ")+notManaged(s.Cluster))
	default:
		return yes(v1alpha1.ReasonConsumersConnected, "every consumer can log in")
	}
}

// notManaged is why the leader could not make what only a superuser may, if it says so: the reason is its own.
func notManaged(s *facts.Cluster) string {
	for _, m := range s.Seen.Members {
		if m.Name == s.Seen.Leader && m.Reason == s.Traits.Unmanaged {
			return "; the leader: " + m.Message
		}
	}
	return ""
}

// missingExtensions by database, as the Access tells.
func missingExtensions(s *facts.Cluster) []string {
	o := s.Observed[names.Access]
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

func deletionProtected(s *decision.Pass) xpv2.Condition {
	if s.Spec.DeletionProtection == nil || *s.Spec.DeletionProtection {
		return yes(v1alpha1.ReasonProtected, "deleting it is refused: to delete it, set spec.deletionProtection to false first; its volumes stay either way")
	}
	return no(v1alpha1.ReasonUnprotected, "it may be deleted; its volumes stay")
}

// updated reports whether every member runs what the spec asks for and was well with it, and if not, what it waits for.
func updated(s *decision.Pass) xpv2.Condition {
	var missing []string
	for _, letter := range s.Expected() {
		if _, ok := s.Sets[letter]; !ok {
			missing = append(missing, s.Member(letter))
		}
	}
	g, after := hooksAfter(s.Decision)
	arriving := s.Before.Arriving(compose.IsTrue(s.Composite.Map(), v1alpha1.TypeUpdated))
	blocked := slices.IndexFunc(arriving, order.View.Blocked)
	switch {
	case len(s.Problems)+len(s.Refused) > 0:
		return no(v1alpha1.ReasonNotAccepted, "the spec is not carried out: see the condition Accepted")
	case order.Hibernated(s.Cluster):
		return yes(v1alpha1.ReasonHibernated, "every member is stopped, as the spec asks; what else it asks for is done when they are started")
	case s.Asleep():
		return no(s.Order.Reason, s.Order.Message)
	case len(missing) > 0 && members.Missing(s) != nil:
		return no(members.Missing(s).Reason, members.Missing(s).Message)
	case len(missing) > 0:
		return no(v1alpha1.ReasonAddingMembers, "members are being made: "+strings.Join(missing, ", "))
	case !s.Order.Done && s.Order.Failed:
		return no(s.Order.Reason, s.Order.Message+
			". The others go on as they were. Correct the field of the spec that causes it, or set it back")
	case !s.Order.Done:
		return no(s.Order.Reason, s.Order.Message)
	case blocked >= 0:
		o := s.Before.WaitingFor(arriving[blocked])
		return no(o.Reason, o.Message)
	case len(arriving) > 0:
		// They are not named: they come one after the other, and each write would wake the Database up.
		return no(v1alpha1.ReasonAwaitingStandby,
			"every member was told what the spec asks for: waiting until all run it and lead or follow closely: see status.members")
	case after:
		return no(g.Reason, "every member is as the spec asks; "+g.Message)
	case len(pendingRestart(s.Cluster)) > 0:
		return no(v1alpha1.ReasonRestartPending, fmt.Sprintf(
			"parameters wait for a restart although members were restarted for them: %s: correct them in spec.config", strings.Join(pendingRestart(s.Cluster), ", ")))
	default:
		return yes(v1alpha1.ReasonUpdated, "every member is as the spec asks")
	}
}

// pendingRestart are members with parameters that wait for a restart.
func pendingRestart(s *facts.Cluster) []string {
	var words []string
	for _, m := range s.Seen.Members {
		if len(m.PendingRestart) > 0 {
			words = append(words, fmt.Sprintf("%s of %s", strings.Join(m.PendingRestart, ", "), m.Name))
		}
	}
	return words
}
