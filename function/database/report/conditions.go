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

// yes is a condition with the status True. No message has a value that changes by itself, because each write starts another
// reconcile of the Database.
func yes(reason xpv2.ConditionReason, message string) xpv2.Condition {
	return compose.True("", reason, message)
}

func no(reason xpv2.ConditionReason, message string) xpv2.Condition {
	return compose.False("", reason, message)
}

func unknown(reason xpv2.ConditionReason, message string) xpv2.Condition {
	return compose.Unknown("", reason, message)
}

// available reports whether there is a leader that takes writes, and if not, what blocks it.
func available(s *decision.Pass) xpv2.Condition {
	if c := fencedAvailability(s.Cluster); c.Status != "" {
		return c
	}
	full, m, writable := fullStop(s.Cluster), blocked(s.Cluster), takesWrites(s.Cluster)
	switch {
	case order.Hibernated(s.Cluster):
		return no(v1alpha1.ReasonHibernated, "members are stopped and keep their data: set spec.hibernated to false to start them")
	case writable && elsewhere(s.Cluster).Status != "":
		return elsewhere(s.Cluster)
	case writable && s.Seen.Paused:
		return yes(v1alpha1.ReasonPaused,
			"a leader takes writes, but no standby would replace it: failover is paused by hand; "+s.Traits.Resume)
	case writable:
		return yes(v1alpha1.ReasonLeading, "a leader takes writes")
	case len(s.Sets) == 0:
		return withoutMembers(s)
	case !s.HasTopology:
		return unknown(v1alpha1.ReasonAwaitingTopology,
			"the leader is unknown: check that provider-capstan runs; members continue without it")
	case full != "":
		return no(v1alpha1.ReasonStorageFull, full)
	case m != nil && (!s.Leads() || m.Name == s.Seen.Leader):
		return no(xpv2.ConditionReason(m.Reason), about(*m))
	case s.Seen.Phase == observev1alpha1.TopologyBootstrapping || s.Seen.Phase == observev1alpha1.TopologyEmpty:
		return no(v1alpha1.ReasonBootstrapping, "members start for the first time")
	case s.Leads():
		return no(v1alpha1.ReasonNoLeader, fmt.Sprintf(
			"member %s is the leader and takes no writes: its server starts again, or another member replaces it", s.Seen.Leader))
	default:
		return no(v1alpha1.ReasonNoLeader, fmt.Sprintf(
			"there is no leader: a member that can becomes the leader within the time of spec.availability.profile; if none does, run kubectl logs -n %s -l %s=%s -c %s",
			s.Namespace, observev1alpha1.LabelDatabase, s.Base(), s.Traits.App))
	}
}

// elsewhere is where writes are taken while this Database only follows; nothing when they are taken here.
func elsewhere(s *facts.Cluster) xpv2.Condition {
	switch {
	case s.Standby():
		return no(v1alpha1.ReasonStandby, "this Database is a standby of another one and takes no writes: clients read at status.endpoints.readOnly; to let it take writes, set spec.promote")
	case s.Importing() && s.Dumps() != nil:
		return no(v1alpha1.ReasonImporting, "this Database is filled from dumps, and takes no writes before all are restored: see the condition Imported")
	case s.Importing():
		return no(v1alpha1.ReasonImporting, "this Database is filled from another server, which takes the writes until spec.cutOver: see the condition Imported")
	default:
		return xpv2.Condition{}
	}
}

// withoutMembers is why there is no leader where no member was composed.
func withoutMembers(s *decision.Pass) xpv2.Condition {
	if len(s.Problems) > 0 {
		return no(s.Problems[0].Reason, "there are no members, because the spec is not accepted: see the condition Accepted")
	}
	if m := members.Missing(s); m != nil {
		return no(m.Reason, m.Message)
	}
	return no(v1alpha1.ReasonMakingReady, "members are being created: see the condition Composed")
}

// takesWrites reports whether a leader takes writes, as far as is known. Its server may have ended, while it holds the lock.
func takesWrites(s *facts.Cluster) bool {
	if !s.Leads() {
		return false
	}
	ended := []string{observev1alpha1.MemberStarting, observev1alpha1.MemberStopped, observev1alpha1.MemberFailed}
	return !slices.ContainsFunc(s.Seen.Members, func(m observev1alpha1.TopologyMember) bool {
		return m.Name == s.Seen.Leader && !m.Ready && slices.Contains(ended, m.State)
	})
}

// fencedAvailability reports whether writes are taken while clients are being switched to another generation, or nothing while they
// are not.
func fencedAvailability(s *facts.Cluster) xpv2.Condition {
	switch {
	case s.Fenced() && !s.Leads():
		return no(v1alpha1.ReasonRestoreFencing, "clients are being switched to another generation: see the conditions Restored and Upgraded")
	case cannotFence(s) != nil:
		return yes(v1alpha1.ReasonLeading, "a leader takes writes, although it should stop for an upgrade or a restore: see the conditions Upgraded and Restored")
	case s.Fence().ID != "" && decision.RestoreStep(s) != nil:
		return no(v1alpha1.ReasonRestoreFencing, "writes wait until clients are switched to another generation: see the condition Restored")
	case s.Fence().ID != "":
		return no(v1alpha1.ReasonUpgradeSwitching, "writes wait until the data is upgraded and clients are switched to it: see the condition Upgraded")
	default:
		return xpv2.Condition{}
	}
}

func about(m observev1alpha1.TopologyMember) string {
	return fmt.Sprintf("member %s: %s", m.Name, strings.TrimSpace(m.Message))
}

// blocked is the first member that is blocked, but first of all one that waits for the former leader: that explains the most.
func blocked(s *facts.Cluster) *observev1alpha1.TopologyMember {
	all := filtered(s.Seen.Members, func(m observev1alpha1.TopologyMember) bool { return !m.Ready && m.Reason != "" })
	if len(all) == 0 {
		return nil
	}
	waits := func(m observev1alpha1.TopologyMember) bool {
		return m.Reason == string(v1alpha1.ReasonWaitingForFormerLeader)
	}
	return &all[max(0, slices.IndexFunc(all, waits))]
}

// filtered returns the members that match.
func filtered(ms []observev1alpha1.TopologyMember, match func(observev1alpha1.TopologyMember) bool) []observev1alpha1.TopologyMember {
	return slices.DeleteFunc(slices.Clone(ms), func(m observev1alpha1.TopologyMember) bool { return !match(m) })
}

// highlyAvailable reports whether a standby can become the leader without losing commits.
func highlyAvailable(s *decision.Pass) xpv2.Condition {
	switch {
	case len(s.Problems) > 0 && len(s.Sets) == 0, !s.HasTopology && len(s.Sets) > 0:
		return unknown(v1alpha1.ReasonAwaitingTopology, "the state of members is unknown: see the condition Available")
	case s.Asleep():
		return no(v1alpha1.ReasonHibernated, "members are stopped or being started: see the condition Updated")
	case s.Spec.Replicas == 1 && len(s.Sets) <= 1:
		least := 2
		if s.Traits.Majority {
			least = leastOfMajority
		}
		return no(v1alpha1.ReasonSingleMember, fmt.Sprintf(
			"there is one member: writes fail while it or its node is down; raise spec.replicas to %d or more", least))
	case !s.Leads():
		return no(v1alpha1.ReasonNoLeader, "there is no leader: see the condition Available")
	case s.Fence().ID != "" && decision.RestoreStep(s.Cluster) != nil:
		return no(v1alpha1.ReasonRestoreFencing, "no standby can become the leader while clients are switched to another generation: see the condition Restored")
	case s.Fence().ID != "":
		return no(v1alpha1.ReasonUpgradeSwitching, "no standby can become the leader while the data is upgraded: see the condition Upgraded")
	case s.Seen.Paused:
		return no(v1alpha1.ReasonPaused, "failover is paused by hand: "+s.Traits.Resume)
	default:
		return standbys(s)
	}
}

// leastOfMajority members survive the loss of one, where a majority has to be left.
const leastOfMajority = 3

// standbys that can become the leader, while one may.
func standbys(s *decision.Pass) xpv2.Condition {
	candidates, missing, m, lost := candidates(s.Decision), missing(s.Cluster), blocked(s.Cluster), member(s.Cluster, v1alpha1.ReasonStandbyLost)
	apart, n := member(s.Cluster, v1alpha1.ReasonMembersApart), len(filtered(s.Seen.Members, running))
	switch {
	case lost != nil && len(candidates) == 0:
		return no(v1alpha1.ReasonStandbyLost, about(*lost))
	case lost != nil:
		return no(v1alpha1.ReasonStandbyLost, about(*lost)+"; another standby can become the leader")
	case divided(s.Cluster):
		return no(v1alpha1.ReasonMembersApart, about(*apart))
	case len(candidates) == 0 && m != nil:
		return no(v1alpha1.ReasonNoStandby, about(*m))
	case len(candidates) == 0:
		return no(v1alpha1.ReasonNoStandby, "no standby could become the leader without losing commits: standbys are being created, copied or restarted")
	case s.Traits.Majority && s.Spec.Replicas < leastOfMajority:
		return no(v1alpha1.ReasonTooFewMembers, "two members survive the loss of none of them, because the other one is no majority and takes no writes: raise spec.replicas to 3")
	case s.Traits.Majority && n < leastOfMajority:
		return no(v1alpha1.ReasonTooFewMembers, also("without another member the rest are no majority and take no writes; members are missing: "+strings.Join(missing, ", "), m, apart))
	case len(missing) > 0:
		return yes(v1alpha1.ReasonMembersMissing, also("a standby can become the leader, but members are missing: "+strings.Join(missing, ", "), m, apart))
	default:
		return yes(v1alpha1.ReasonStandbyInSync, also(inSync(s), apart))
	}
}

// divided reports whether the members would have no majority without the leader, as far as is known: each one that reports
// that it is apart may hear from no other one that does.
func divided(s *facts.Cluster) bool {
	all := filtered(s.Seen.Members, running)
	apart := filtered(all, func(m observev1alpha1.TopologyMember) bool { return m.Reason == string(v1alpha1.ReasonMembersApart) })
	// Without the leader, and with one that is apart. Of two the other one may not have reported it yet.
	together := len(all) - max(len(apart), 2)
	return len(apart) > 0 && 2*together <= len(all)
}

// also says what a member reports, of each that there is.
func also(message string, ms ...*observev1alpha1.TopologyMember) string {
	all := []string{message}
	for _, m := range ms {
		if m != nil && !slices.Contains(all, about(*m)) {
			all = append(all, about(*m))
		}
	}
	return strings.Join(all, "; ")
}

// inSync is what a standby in sync can do.
func inSync(s *decision.Pass) string {
	if s.Standby() {
		return "another member has what the leader replayed, and can replace it at once"
	}
	message := "a standby can become the leader at once, with every acknowledged commit"
	if n := s.Spec.Replicas; s.Traits.Majority && n%2 == 0 {
		message += fmt.Sprintf("; %d members survive the loss of %d, as %d do: an odd number is the better choice", n, (n-1)/2, n-1)
	}
	return message
}

// member that reports a reason, whether it is ready or not; nil when there is none.
func member(s *facts.Cluster, reason xpv2.ConditionReason) *observev1alpha1.TopologyMember {
	i := slices.IndexFunc(s.Seen.Members, func(m observev1alpha1.TopologyMember) bool { return m.Reason == string(reason) })
	if i < 0 {
		return nil
	}
	return &s.Seen.Members[i]
}

// candidates that can become the leader at once: where commits are synchronous, the synchronous standbys, else standbys without lag.
func candidates(s *decision.Decision) []observev1alpha1.TopologyMember {
	synchronous := s.Synchronous(s.Holds) && !s.Standby()
	return filtered(s.Seen.Members, func(m observev1alpha1.TopologyMember) bool {
		isCandidate := m.Role != observev1alpha1.RoleLeader && m.Lag == observev1alpha1.LagInSync
		if synchronous {
			isCandidate = m.Role == observev1alpha1.RoleSyncStandby
		}
		return isCandidate && m.Ready && m.State == observev1alpha1.MemberStreaming
	})
}

// missing members are neither a running leader nor a streaming standby.
func missing(s *facts.Cluster) []string {
	var names []string
	for _, letter := range s.Expected() {
		if m := s.SeenMember(letter); !running(m) {
			names = append(names, m.Name)
		}
	}
	return names
}

// running member: a leader, or a standby that streams.
func running(m observev1alpha1.TopologyMember) bool {
	return m.State == observev1alpha1.MemberRunning || m.State == observev1alpha1.MemberStreaming
}

// consumersReady reports whether every consumer can log in.
func consumersReady(s *decision.Pass) xpv2.Condition {
	var pending []string
	for _, c := range s.Spec.Consumers {
		if !access.LoggedIn(s.Cluster, c) {
			pending = append(pending, c.Name)
		}
	}
	trouble := ""
	if o := s.Observed[names.Access]; o != nil {
		synced := compose.Condition(o.Map(), string(xpv2.TypeSynced))
		if compose.Text(synced, "status") == string(corev1.ConditionFalse) {
			trouble = compose.Text(synced, "message")
		}
	}
	missing := missingExtensions(s.Cluster)
	switch {
	case s.Fenced():
		return no(v1alpha1.ReasonRestoreFencing, "clients are being switched to another generation: see the conditions Restored and Upgraded")
	case s.Asleep():
		return no(v1alpha1.ReasonHibernated, "consumers cannot log in while members are stopped: set spec.hibernated to false to start them")
	case s.Standby():
		return no(v1alpha1.ReasonStandby, "the logins of a standby are the primary's, with the passwords that they have there: the Secrets of this Database work after its promotion")
	case s.Importing() && s.Dumps() != nil:
		return no(v1alpha1.ReasonImporting, "consumers cannot log in before every dump is restored, so that nothing but the import writes: see the condition Imported")
	case s.Importing():
		return no(v1alpha1.ReasonImporting, "consumers cannot log in before the cut-over, so that nothing but the import writes: see the condition Imported")
	case !s.Leads() && (len(pending) > 0 || trouble != ""):
		return no(v1alpha1.ReasonConsumersPending, "logins are created when there is a leader: see the condition Available")
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

// notManaged is why the leader could not create what only a superuser may, if it reports that, with its own reason.
func notManaged(s *facts.Cluster) string {
	for _, m := range s.Seen.Members {
		if m.Name == s.Seen.Leader && m.Reason == s.Traits.Unmanaged {
			return "; the leader: " + m.Message
		}
	}
	return ""
}

// missingExtensions by database, as the Access reports.
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
		return yes(v1alpha1.ReasonProtected, "deletion of this Database is refused: to delete it, set spec.deletionProtection to false first; its volumes stay even then")
	}
	return no(v1alpha1.ReasonUnprotected, "this Database can be deleted; its volumes stay")
}

// updated reports whether every member runs what the spec asks for and was healthy with it, and if not, what it waits for.
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
		return no(v1alpha1.ReasonNotAccepted, "the spec is not applied: see the condition Accepted")
	case order.Hibernated(s.Cluster):
		return yes(v1alpha1.ReasonHibernated, "every member is stopped, as spec.hibernated requests; other changes of the spec are applied when members start")
	case s.Asleep():
		return no(s.Order.Reason, s.Order.Message)
	case len(missing) > 0 && members.Missing(s) != nil:
		return no(members.Missing(s).Reason, members.Missing(s).Message)
	case len(missing) > 0:
		return no(v1alpha1.ReasonAddingMembers, "members are being created: "+strings.Join(missing, ", "))
	case !s.Order.Done && s.Order.Failed:
		return no(s.Order.Reason, s.Order.Message+
			". The other members stay unchanged. Correct the field of the spec that causes this, or revert it")
	case !s.Order.Done:
		return no(s.Order.Reason, s.Order.Message)
	case blocked >= 0:
		o := s.Before.WaitingFor(arriving[blocked])
		return no(o.Reason, o.Message)
	case len(arriving) > 0:
		// They are not named: they change one after the other, and each write would start another reconcile.
		return no(v1alpha1.ReasonAwaitingStandby,
			"every member has its new configuration: waiting until all run it and have every commit: see status.members")
	case after:
		return no(g.Reason, "every member matches the spec; "+g.Message)
	case len(pendingRestart(s.Cluster)) > 0:
		return no(v1alpha1.ReasonRestartPending, fmt.Sprintf(
			"parameters wait for a restart although members were restarted for them: %s: correct them in spec.config", strings.Join(pendingRestart(s.Cluster), ", ")))
	default:
		return yes(v1alpha1.ReasonUpdated, "every member matches the spec")
	}
}

func pendingRestart(s *facts.Cluster) []string {
	var words []string
	for _, m := range s.Seen.Members {
		if len(m.PendingRestart) > 0 {
			words = append(words, fmt.Sprintf("%s of %s", strings.Join(m.PendingRestart, ", "), m.Name))
		}
	}
	return words
}
