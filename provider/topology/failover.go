// SPDX-License-Identifier: Apache-2.0

package topology

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

// failover is the last change of the leader: one that is observed now, or the known one with what becomes known later about its
// cause. That a node is lost, for instance, is known only after another member was promoted.
func (v *view) failover(o v1alpha1.TopologyObservation) *v1alpha1.Failover {
	last, before := v.was.LastFailover, v.before()
	if o.Leader != "" && before != "" && o.Leader != before && v.sameData(o) {
		at := v.acquired()
		if at.IsZero() || at.After(v.now) {
			at = v.now
		}
		return &v1alpha1.Failover{At: metav1.NewTime(at).Rfc3339Copy(), From: before, To: o.Leader, Cause: v.cause(before)}
	}
	if last == nil || last.Cause != v1alpha1.CauseUnknown && last.Cause != v1alpha1.CauseCrashed ||
		v.now.Sub(last.At.Time) > recently {
		return last
	}
	if c := v.cause(last.From); c == v1alpha1.CauseNodeLost || last.Cause == v1alpha1.CauseUnknown && c != v1alpha1.CauseSwitchover {
		last = last.DeepCopy()
		last.Cause = c
	}
	return last
}

// before is the leader before this look, or "".
func (v *view) before() string {
	switch {
	case v.was.Leader != "":
		return v.was.Leader
	case v.recalled.led.member != "":
		return v.recalled.led.member
	case v.was.LastFailover != nil:
		return v.was.LastFailover.To
	}
	return ""
}

// sameData reports whether the data are the same as before. When they were recreated there was no failover.
func (v *view) sameData(o v1alpha1.TopologyObservation) bool {
	return v.was.SystemIdentifier == "" || v.was.SystemIdentifier == o.SystemIdentifier
}

// cause of a change of the leader, concluded from how the previous one is now and how it was. A leader that hands over because
// its pod is deleted counts as PodDeleted.
func (v *view) cause(before string) string {
	p := v.pod(before)
	was := v.recalled.how(before)
	node := was.node
	if p != nil && p.Spec.NodeName != "" && (was.uid == "" || was.uid == p.GetUID()) {
		node = p.Spec.NodeName
	}
	if n := v.node(node); node != "" && (n == nil || !ready(n)) {
		return v1alpha1.CauseNodeLost
	}
	switch {
	case p == nil, p.DeletionTimestamp != nil, was.uid != "" && p.GetUID() != was.uid:
		return v1alpha1.CausePodDeleted
	case v.recalled.asked:
		return v1alpha1.CauseSwitchover
	}
	switch told := join(p.GetAnnotations()[annotationFacts]); {
	case !running(p), v.recalled.crashed, was.uid != "" && restarts(p) > was.restarts,
		told.State == members.StateCrashed, told.State == members.StateStopped, told.State == members.StateStartFailed, told.State == members.StateStarting:
		return v1alpha1.CauseCrashed
	case told.State == members.StateRunning && told.Role == members.StatusReplica && podhealth.Is(p, corev1.PodReady):
		return v1alpha1.CauseSwitchover
	default:
		return v1alpha1.CauseUnknown
	}
}

// ledBy is the state of a leader.
func ledBy(p *corev1.Pod) led {
	return led{member: memberOf(p), uid: p.GetUID(), node: p.Spec.NodeName, restarts: restarts(p)}
}

func restarts(p *corev1.Pod) int32 {
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == container(p) {
			return s.RestartCount
		}
	}
	return 0
}
