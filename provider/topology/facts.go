// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"maps"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

// Facts in view. They depend on no order, and on the time only for how a failover came about.
func (v *view) facts() v1alpha1.TopologyObservation {
	out := v1alpha1.TopologyObservation{
		SystemIdentifier: v.records[members.SuffixConfig][members.AnnotationInitialize],
		Paused:           v.records[members.SuffixConfig][annotationPause] != "",
		Leader:           v.leader(),
		LastFailover:     v.was.LastFailover,
	}
	out.Switchovers = v.switchovers()
	out.Zones, out.Nodes = v.room()
	out.Volumes = v.volumes()
	for _, name := range v.members() {
		m := v.member(name, out.Leader)
		out.Members = append(out.Members, m)
		if name != out.Leader || name == "" {
			continue
		}
		if p := v.pod(name); p != nil {
			out.Timeline = join(p.GetAnnotations()[annotationFacts]).Timeline
		}
	}

	// Between two leaders the timeline is the one of the last.
	if out.Timeline == 0 && out.SystemIdentifier != "" && out.SystemIdentifier == v.was.SystemIdentifier {
		out.Timeline = v.was.Timeline
	}
	out.Backup, out.RestorePoints = v.backup(out.Leader), v.restorePoints(out.Leader)
	out.Upgrade = v.upgrade()
	out.Following, out.Import = v.following(out.Leader), v.imports(out.Leader)
	out.Phase = v.phase(out)
	out.LastFailover = v.failover(out)
	return out
}

func (v *view) phase(o v1alpha1.TopologyObservation) string {
	switch {
	case len(v.pods) == 0:
		return v1alpha1.TopologyEmpty
	case o.Leader == "" && o.SystemIdentifier == "":
		return v1alpha1.TopologyBootstrapping
	case o.Leader == "":
		return v1alpha1.TopologyNoLeader
	}
	for _, name := range v.parameters.Members {
		i := slices.IndexFunc(o.Members, func(m v1alpha1.TopologyMember) bool { return m.Name == name })
		if i < 0 || !o.Members[i].Ready || o.Members[i].Role == "" || name != o.Leader && o.Members[i].State != v1alpha1.MemberStreaming {
			return v1alpha1.TopologyDegraded
		}
	}
	return v1alpha1.TopologyRunning
}

// holdsData reports whether a claim is for data, and not for the write-ahead log alone.
func holdsData(c *corev1.PersistentVolumeClaim) bool {
	return c.GetLabels()[v1alpha1.LabelVolume] == ""
}

// volumes are the members that have one with data.
func (v *view) volumes() []string {
	names := map[string]bool{}
	for i := range v.claims {
		if c := &v.claims[i]; holdsData(c) {
			names[c.GetLabels()[v1alpha1.LabelMember]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// member of a name.
func (v *view) member(name, leader string) v1alpha1.TopologyMember {
	m := v1alpha1.TopologyMember{Name: name, State: v1alpha1.MemberStopped}
	for i := range v.claims {
		if c := &v.claims[i]; holdsData(c) && c.GetLabels()[v1alpha1.LabelMember] == name {
			if size, ok := c.Status.Capacity[corev1.ResourceStorage]; ok {
				m.VolumeSize = size.String()
			}
		}
	}
	p := v.pod(name)
	if p == nil {
		if h := v.absent[name]; h != nil {
			m.Reason, m.Message = string(h.Reason), h.Message()
		}
		return m
	}
	m.Node = p.Spec.NodeName
	m.Ready = podhealth.Is(p, corev1.PodReady) && p.DeletionTimestamp == nil
	m.Revision = p.GetLabels()[labelRevision]
	n := v.node(m.Node)
	if n != nil {
		m.Zone, m.Cordoned = n.GetLabels()[corev1.LabelTopologyZone], n.Spec.Unschedulable
	}
	told := join(p.GetAnnotations()[annotationFacts])
	h := hindrance(p)
	m.State = v.state(p, told, name == leader)
	m.Role = v.role(p, m.State, name == leader)
	m.PendingRestart = told.Restart
	if name != leader {
		m.Lag = v.lag(p)
	}
	r := report(p)
	reported(&m, &r)
	if h != nil && (r.Reason == "" || m.State == v1alpha1.MemberStarting) {
		m.Reason, m.Message = string(h.Reason), h.Message()
	}
	if h != nil && m.State != v1alpha1.MemberRunning && m.State != v1alpha1.MemberStreaming {
		m.State = v1alpha1.MemberFailed
	}
	return m
}

// reported is what a member says of itself.
func reported(m *v1alpha1.TopologyMember, r *v1alpha1.MemberReport) {
	m.Version, m.Disk, m.WALDisk, m.Reason, m.Message, m.Queries = r.Version, r.Disk, r.WALDisk, r.Reason, r.Message, r.Queries
	if r.Reinitialize.ID != "" {
		m.Reinitialize = &r.Reinitialize
	}
	if r.Fence.ID != "" {
		m.Fence = &r.Fence
	}
	if r.Volume != (v1alpha1.VolumeReport{}) {
		m.Volume = &r.Volume
	}
	if r.WALVolume != (v1alpha1.VolumeReport{}) {
		m.WALVolume = &r.WALVolume
	}
}

// state of a member. Of one that cannot be heard nothing is believed.
func (v *view) state(p *corev1.Pod, told said, leads bool) string {
	switch {
	case !v.heard(p), v.recalled.silent[p.GetName()]:
		return v1alpha1.MemberUnknown
	case p.Status.Phase == corev1.PodFailed, p.Status.Phase == corev1.PodSucceeded:
		return v1alpha1.MemberStopped
	case !running(p):
		// What the pod says was about a container that is no more.
		if p.DeletionTimestamp != nil {
			return v1alpha1.MemberStopped
		}
		return v1alpha1.MemberStarting
	}
	switch told.State {
	case members.StateRunning:
		switch {
		case leads:
			return v1alpha1.MemberRunning
		case told.primary():
			// It says that it is the leader, and another one is, or none.
			return v1alpha1.MemberUnknown
		case report(p).Reason == members.ReasonStandbyLost:
			// It streams for a moment at each try, until the leader refuses.
			return v1alpha1.MemberStarting
		case told.Replication == members.Streaming:
			return v1alpha1.MemberStreaming
		default:
			return v1alpha1.MemberStarting
		}
	case members.StateStopping, members.StateStopped, members.StateCrashed:
		return v1alpha1.MemberStopped
	case members.StateStartFailed, "initdb failed", "custom bootstrap failed", "restart failed", "stop failed":
		return v1alpha1.MemberFailed
	default:
		return v1alpha1.MemberStarting
	}
}

func (v *view) role(p *corev1.Pod, state string, leads bool) string {
	switch {
	case leads:
		return v1alpha1.RoleLeader
	case state != v1alpha1.MemberStreaming && state != v1alpha1.MemberStarting,
		state == v1alpha1.MemberStarting && join(p.GetAnnotations()[annotationFacts]).State != members.StateRunning:
		return ""
	}
	if state == v1alpha1.MemberStreaming && join(p.GetAnnotations()[annotationFacts]).Synchronous {
		return v1alpha1.RoleSyncStandby
	}
	sync := v.records[suffixSync]
	if sync[members.AnnotationLeader] != "" && slices.Contains(names(sync[annotationSyncStandby]), p.GetName()) {
		return v1alpha1.RoleSyncStandby
	}
	return v1alpha1.RoleReplica
}

// lag of a standby: the one that it reports, or the one in the memory, or while it knows none the one of before.
func (v *view) lag(p *corev1.Pod) string {
	switch reported := join(p.GetAnnotations()[annotationFacts]).Lag; reported {
	case members.LagInSync, members.LagBehind, members.LagFarBehind:
		return reported
	}
	if p.GetAnnotations()[annotationPosition] == "" {
		return v1alpha1.LagUnknown
	}
	if c := v.recalled.lag[p.GetName()]; c != "" {
		return c
	}
	for _, m := range v.was.Members {
		if m.Name == memberOf(p) && m.Lag != "" {
			return m.Lag
		}
	}
	return v1alpha1.LagUnknown
}

// room is in which zones nodes take members, and how many do.
func (v *view) room() ([]string, int32) {
	var (
		zones []string
		n     int32
	)
	for i := range v.nodes {
		if !v.takes(&v.nodes[i]) {
			continue
		}
		n = min(n+1, maxNodes)
		if z := v.nodes[i].GetLabels()[corev1.LabelTopologyZone]; z != "" {
			zones = append(zones, z)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones), n
}

// takes reports whether a member could come to a node.
func (v *view) takes(n *corev1.Node) bool {
	for key, value := range v.parameters.NodeSelector {
		if got, ok := n.GetLabels()[key]; !ok || got != value {
			return false
		}
	}
	if terms := v.parameters.NodeTerms; len(terms) > 0 && !slices.ContainsFunc(terms, func(t v1alpha1.NodeTerm) bool { return meets(n, t) }) {
		return false
	}
	return ready(n) && !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, v.repels)
}

// operators of expressions about nodes, as selectors know them.
var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn, corev1.NodeSelectorOpExists: selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist, corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

// meets reports whether a node meets a term, as the scheduler sees it: a term without expressions is met by none.
func meets(n *corev1.Node, t v1alpha1.NodeTerm) bool {
	for _, e := range t.MatchExpressions {
		r, err := labels.NewRequirement(e.Key, operators[e.Operator], e.Values)
		if err != nil || !r.Matches(labels.Set(n.GetLabels())) {
			return false
		}
	}
	return len(t.MatchExpressions) > 0
}

// repels reports whether a taint keeps members away.
func (v *view) repels(taint corev1.Taint) bool {
	if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
		return false
	}
	return !slices.ContainsFunc(v.parameters.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(logr.Discard(), &taint, false) // Operators that compare are refused in a spec.
	})
}
