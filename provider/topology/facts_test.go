// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

var now = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

// statuses as Patroni 4.1 writes them.
const (
	leads = `{"conn_url":"postgres://orders-db-a-0.orders-db-pods.shop.svc:5432/postgres","api_url":"https://orders-db-a-0.orders-db-pods.shop.svc:8008/patroni",` +
		`"state":"running","role":"primary","version":"4.1.5","xlog_location":%d,"timeline":3}`
	follows = `{"conn_url":"postgres://x:5432/postgres","api_url":"https://x:8008/patroni","state":"running","role":"replica","version":"4.1.5",` +
		`"xlog_location":%d,"replay_lsn":%[1]d,"receive_lsn":%[1]d,"replication_state":"streaming","timeline":3}`
	pends = `{"state":"running","role":"replica","xlog_location":50331648,"replication_state":"streaming","timeline":3,"pending_restart":true,` +
		`"pending_restart_reason":{"shared_buffers":{"old_value":"128MB","new_value":"256MB"},"max_connections":{"old_value":"100","new_value":"200"}}}`
	copies = `{"state":"creating replica","role":"uninitialized","version":"4.1.5"}`
	starts = `{"state":"starting","role":"replica","version":"4.1.5"}`
	ended  = `{"state":"crashed","role":"demoted","version":"4.1.5"}`
)

const at = int64(50331648)

// pod of a member, through the cache.
func pod(letter, status string, change ...func(*corev1.Pod)) corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "orders-db-" + letter + "-0", UID: types.UID(letter + "-1"),
			Labels: map[string]string{
				v1alpha1.LabelDatabase: "orders-db", v1alpha1.LabelMember: "orders-db-" + letter, v1alpha1.LabelScope: "orders-db-3f2a9c1b",
				labelRevision: "orders-db-" + letter + "-5d4f", labelApp: "postgres", "app": "orders",
			},
			Annotations: map[string]string{v1alpha1.AnnotationMember: `{"version":"17.6","disk":"Ok"}`},
		},
		Spec: corev1.PodSpec{NodeName: "node-" + letter, Containers: []corev1.Container{{Name: "postgres", Image: "postgres:17"}}},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "postgres", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
	if status != "" {
		p.Annotations[members.AnnotationStatus] = status
	}
	for _, c := range change {
		c(p)
	}
	o, err := twice(slimPod, p)
	if err != nil {
		panic(err)
	}
	return *o.(*corev1.Pod)
}

// twice goes through a transform as what is streamed does.
func twice(transform func(any) (any, error), o any) (any, error) {
	once, err := transform(o)
	if err != nil {
		return nil, err
	}
	return transform(once)
}

func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func going(p *corev1.Pod) {
	t := metav1.NewTime(now)
	p.DeletionTimestamp = &t
}

func waiting(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		unready(p)
		p.Status.ContainerStatuses[0].Ready = false
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
}

// restarted is a container that began later than Patroni last wrote, or as much earlier as after is negative.
func restarted(after time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		wrote := metav1.NewTime(now.Add(-time.Minute))
		p.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "Patroni", Time: &wrote, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{".":{},"f:status":{}}}}`)},
			{Manager: "kubelet", Time: new(metav1.NewTime(now)), Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:phase":{}}}`)},
			{Manager: "capstan-member", Time: new(metav1.NewTime(now)), FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:capstan.dev/member-report":{}}}}`)},
		}
		s := &p.Status.ContainerStatuses[0]
		s.Ready, s.State.Running = false, &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(wrote.Add(after))}
		unready(p)
	}
}

func node(letter string, change ...func(*corev1.Node)) corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-" + letter, Labels: map[string]string{corev1.LabelTopologyZone: "zone-" + letter, "more": "x"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(now)}}},
	}
	for _, c := range change {
		c(n)
	}
	o, err := slimNode(n)
	if err != nil {
		panic(err)
	}
	return *o.(*corev1.Node)
}

// pooled nodes are reserved, by a label and a taint.
func pooled(pool string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Labels["pool"] = pool
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: pool, Effect: corev1.TaintEffectNoSchedule}}
	}
}

func lost(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

// well is a Database of three members.
func well(change ...func(*view)) *view {
	v := &view{
		parameters: v1alpha1.TopologyParameters{
			Database: "orders-db", Scope: "orders-db-3f2a9c1b", Members: []string{"orders-db-a", "orders-db-b", "orders-db-c"},
		},
		pods:  []corev1.Pod{pod("a", fmt.Sprintf(leads, at)), pod("b", fmt.Sprintf(follows, at)), pod("c", fmt.Sprintf(follows, at))},
		nodes: []corev1.Node{node("a"), node("b"), node("c")},
		records: map[string]map[string]string{
			members.SuffixLeader: {members.AnnotationLeader: "orders-db-a-0", annotationTTL: "30", members.AnnotationAcquired: "2026-11-22T07:00:00.123456+00:00"},
			members.SuffixConfig: {members.AnnotationInitialize: "7575"},
			suffixSync:           {members.AnnotationLeader: "orders-db-a-0", annotationSyncStandby: "orders-db-b-0"},
		},
		recalled: recollection{lag: map[string]string{"orders-db-b-0": v1alpha1.LagInSync, "orders-db-c-0": v1alpha1.LagInSync}},
		now:      now,
	}
	for _, l := range []string{"a", "b", "c"} {
		c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelMember: "orders-db-" + l}}}
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("50Gi")}
		v.claims = append(v.claims, c)
	}
	for _, c := range change {
		c(v)
	}
	return v
}

func saw(letter, role, state, lag string, change ...func(*v1alpha1.TopologyMember)) v1alpha1.TopologyMember {
	m := v1alpha1.TopologyMember{
		Name: "orders-db-" + letter, Role: role, State: state, Ready: true, Node: "node-" + letter, Zone: "zone-" + letter, Lag: lag,
		Revision: "orders-db-" + letter + "-5d4f", Version: "17.6", Disk: "Ok", VolumeSize: "50Gi",
	}
	for _, c := range change {
		c(&m)
	}
	return m
}

func notReady(m *v1alpha1.TopologyMember) { m.Ready = false }

func want(change ...func(*v1alpha1.TopologyObservation)) v1alpha1.TopologyObservation {
	o := v1alpha1.TopologyObservation{
		Phase: v1alpha1.TopologyRunning, Leader: "orders-db-a", Timeline: 3, SystemIdentifier: "7575",
		Zones: []string{"zone-a", "zone-b", "zone-c"}, Nodes: 3,
		Volumes: []string{"orders-db-a", "orders-db-b", "orders-db-c"},
		Members: []v1alpha1.TopologyMember{
			saw("a", v1alpha1.RoleLeader, v1alpha1.MemberRunning, ""),
			saw("b", v1alpha1.RoleSyncStandby, v1alpha1.MemberStreaming, v1alpha1.LagInSync),
			saw("c", v1alpha1.RoleReplica, v1alpha1.MemberStreaming, v1alpha1.LagInSync),
		},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// labelled node: keys and values.
func labelled(pairs ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for i := 0; i < len(pairs); i += 2 {
			n.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func TestFacts(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     *view
		want   v1alpha1.TopologyObservation
	}{
		"Well": {reason: "One leads, two follow, one of them in step.", in: well(), want: want()},
		"Quorum": {
			reason: "With a quorum there are several that may lead.",
			in:     well(func(v *view) { v.records[suffixSync][annotationSyncStandby] = "orders-db-b-0,orders-db-c-0" }),
			want:   want(func(o *v1alpha1.TopologyObservation) { o.Members[2].Role = v1alpha1.RoleSyncStandby }),
		},
		"Empty": {
			reason: "Before there is a member there are nodes, and what should be.",
			in: &view{
				parameters: v1alpha1.TopologyParameters{Database: "orders-db", Members: []string{"orders-db-a"}},
				nodes:      []corev1.Node{node("a")}, now: now,
			},
			want: v1alpha1.TopologyObservation{
				Phase: v1alpha1.TopologyEmpty, Zones: []string{"zone-a"}, Nodes: 1,
				Members: []v1alpha1.TopologyMember{{Name: "orders-db-a", State: v1alpha1.MemberStopped}},
			},
		},
		"Reserved": {
			reason: "Nodes count that members may run on, and no others.",
			in: &view{
				parameters: v1alpha1.TopologyParameters{
					Database: "orders-db", NodeSelector: map[string]string{"pool": "databases"},
					Tolerations: []corev1.Toleration{{Key: "dedicated", Value: "databases", Effect: corev1.TaintEffectNoSchedule}},
				},
				nodes: []corev1.Node{node("a"), node("b", pooled("databases")), node("c", pooled("databases")), node("d", pooled("batch"))}, now: now,
			},
			want: v1alpha1.TopologyObservation{Phase: v1alpha1.TopologyEmpty, Zones: []string{"zone-b", "zone-c"}, Nodes: 2},
		},
		"Terms": {
			reason: "A node has to meet one of the terms, and all of it.",
			in: &view{
				parameters: v1alpha1.TopologyParameters{Database: "orders-db", NodeTerms: []v1alpha1.NodeTerm{
					{MatchExpressions: []v1alpha1.NodeRequirement{
						{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"nvme"}}, {Key: "cores", Operator: corev1.NodeSelectorOpGt, Values: []string{"7"}},
					}},
					{MatchExpressions: []v1alpha1.NodeRequirement{
						{Key: "arm", Operator: corev1.NodeSelectorOpExists},
						{Key: "cores", Operator: corev1.NodeSelectorOpLt, Values: []string{"7"}},
						{Key: "old", Operator: corev1.NodeSelectorOpDoesNotExist},
						{Key: "disk", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"hdd"}},
					}},
				}},
				nodes: []corev1.Node{
					node("a"), node("b", labelled("disk", "nvme", "cores", "8")), node("c", labelled("disk", "nvme", "cores", "7")),
					node("d", labelled("arm", "", "cores", "4")), node("e", labelled("arm", "", "cores", "4", "old", "")),
					node("f", labelled("arm", "", "cores", "4", "disk", "hdd")), node("g", labelled("arm", "", "cores", "many")),
				}, now: now,
			},
			want: v1alpha1.TopologyObservation{Phase: v1alpha1.TopologyEmpty, Zones: []string{"zone-b", "zone-d"}, Nodes: 2},
		},
		"TermUnknown": {
			reason: "An expression that cannot be read is met by no node.",
			in: &view{
				parameters: v1alpha1.TopologyParameters{Database: "orders-db", NodeTerms: []v1alpha1.NodeTerm{
					{MatchExpressions: []v1alpha1.NodeRequirement{{Key: "a b", Operator: corev1.NodeSelectorOpDoesNotExist}}}, {},
				}},
				nodes: []corev1.Node{node("a")}, now: now,
			},
			want: v1alpha1.TopologyObservation{Phase: v1alpha1.TopologyEmpty},
		},
		"Repelled": {
			reason: "Without a toleration reserved nodes do not count.",
			in: &view{
				parameters: v1alpha1.TopologyParameters{Database: "orders-db"}, nodes: []corev1.Node{node("a"), node("b", pooled("databases"))}, now: now,
			},
			want: v1alpha1.TopologyObservation{Phase: v1alpha1.TopologyEmpty, Zones: []string{"zone-a"}, Nodes: 1},
		},
		"Bootstrapping": {
			reason: "Nobody ever led.",
			in: well(func(v *view) {
				v.records = map[string]map[string]string{}
				v.recalled.lag = nil
				v.pods = []corev1.Pod{pod("a", `{"state":"initializing new cluster","role":"uninitialized"}`, unready), pod("b", "", unready), pod("c", "", unready)}
			}),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase, o.Leader, o.Timeline, o.SystemIdentifier = v1alpha1.TopologyBootstrapping, "", 0, ""
				for i, l := range []string{"a", "b", "c"} {
					o.Members[i] = saw(l, "", v1alpha1.MemberStarting, v1alpha1.LagUnknown, notReady)
				}
			}),
		},
		"Copying": {
			reason: "A member that is being copied follows nobody yet.",
			in:     well(func(v *view) { v.pods[2] = pod("c", copies, unready) }),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase = v1alpha1.TopologyDegraded
				o.Members[2] = saw("c", "", v1alpha1.MemberStarting, v1alpha1.LagUnknown, notReady)
			}),
		},
		"StandbyLost": {
			reason: "A member that its leader has outrun streams for a moment at each try, and is no standby.",
			in: well(func(v *view) {
				v.pods[1] = pod("b", fmt.Sprintf(follows, at), func(p *corev1.Pod) {
					p.Annotations[v1alpha1.AnnotationMember] = `{"reason":"StandbyLost","message":"it is copied again"}`
				})
			}),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase = v1alpha1.TopologyDegraded
				m := &o.Members[1]
				m.State, m.Reason, m.Message, m.Version, m.Disk = v1alpha1.MemberStarting, "StandbyLost", "it is copied again", "", ""
			}),
		},
		"PendingRestart": {
			reason: "Parameters that wait are named, sorted.",
			in:     well(func(v *view) { v.pods[2] = pod("c", pends) }),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Members[2].PendingRestart = []string{"max_connections", "shared_buffers"}
			}),
		},
		"NoLeader": {
			reason: "The lead is over, and nobody has it; the timeline is the last one's.",
			in: well(func(v *view) {
				v.recalled.expired = true
				v.was = v1alpha1.TopologyObservation{Timeline: 3, SystemIdentifier: "7575", Leader: "orders-db-a"}
			}),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase, o.Leader = v1alpha1.TopologyNoLeader, ""
				o.Members[0] = saw("a", "", v1alpha1.MemberUnknown, v1alpha1.LagUnknown)
			}),
		},
		"LeaderGone": {
			reason: "A lead without a pod is none.",
			in:     well(func(v *view) { v.pods = v.pods[1:] }),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase, o.Leader, o.Timeline = v1alpha1.TopologyNoLeader, "", 0
				o.Members[0] = v1alpha1.TopologyMember{Name: "orders-db-a", State: v1alpha1.MemberStopped, VolumeSize: "50Gi"}
			}),
		},
		"TwoSayTheyLead": {
			reason: "Who says that it leads and does not is not believed.",
			in:     well(func(v *view) { v.pods[1] = pod("b", fmt.Sprintf(leads, at)) }),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase = v1alpha1.TopologyDegraded
				o.Members[1] = saw("b", "", v1alpha1.MemberUnknown, v1alpha1.LagInSync)
			}),
		},
		"Paused": {
			reason: "A paused cluster looks healthy.",
			in:     well(func(v *view) { v.records[members.SuffixConfig][annotationPause] = "true" }),
			want:   want(func(o *v1alpha1.TopologyObservation) { o.Paused = true }),
		},
		"NodeLost": {
			reason: "What a member told before its node was lost is not believed, and no pod can come there.",
			in:     well(func(v *view) { v.nodes[2] = node("c", lost) }),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase, o.Zones, o.Nodes = v1alpha1.TopologyDegraded, []string{"zone-a", "zone-b"}, 2
				o.Members[2] = saw("c", "", v1alpha1.MemberUnknown, v1alpha1.LagInSync)
			}),
		},
		"Cordoned": {
			reason: "A cordoned node takes no pods, and its member is well.",
			in:     well(func(v *view) { v.nodes[1] = node("b", func(n *corev1.Node) { n.Spec.Unschedulable = true }) }),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Zones, o.Nodes = []string{"zone-a", "zone-c"}, 2
				o.Members[1].Cordoned = true
			}),
		},
		"Tainted": {
			reason: "Nodes of the control plane take no pods.",
			in: well(func(v *view) {
				v.nodes = append(v.nodes, node("d", func(n *corev1.Node) {
					n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
				}))
			}),
			want: want(),
		},
		"NoZones": {
			reason: "Where nodes have no zone there is none.",
			in: well(func(v *view) {
				for i := range v.nodes {
					v.nodes[i].Labels = nil
				}
			}),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Zones = nil
				for i := range o.Members {
					o.Members[i].Zone = ""
				}
			}),
		},
		"ImagePullFailed": {
			reason: "A container that never ran has told nothing.",
			in: well(func(v *view) {
				v.pods[2] = pod("c", "", waiting("ImagePullBackOff", `Back-off pulling image "postgres:17": ErrImagePull: rpc error: code = NotFound desc = failed to pull: not found`))
			}),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase = v1alpha1.TopologyDegraded
				o.Members[2] = saw("c", "", v1alpha1.MemberFailed, v1alpha1.LagUnknown, notReady)
				o.Members[2].Reason = "ImagePullFailed"
				o.Members[2].Message = `image "postgres:17" cannot be pulled: the registry has no such image or tag; see that the image is there, and that the platform's settings name it`
			}),
		},
		"VolumePending": {
			reason: "No node takes a pod whose volume is not there.",
			in: well(func(v *view) {
				v.pods[2] = pod("c", "", func(p *corev1.Pod) {
					p.Spec.NodeName = ""
					p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
						Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
						Message: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
					}}}
				})
				v.claims = v.claims[:2]
			}),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase = v1alpha1.TopologyDegraded
				o.Members[2] = saw("c", "", v1alpha1.MemberFailed, v1alpha1.LagUnknown, notReady)
				o.Members[2].Node, o.Members[2].Zone, o.Members[2].VolumeSize = "", "", ""
				o.Volumes = o.Volumes[:2]
				o.Members[2].Reason = "VolumePending"
				o.Members[2].Message = "the volume is not there yet: pod has unbound immediate PersistentVolumeClaims. not found; " +
					"see the events of the claim: its storage class must be able to provide the volume"
			}),
		},
		"OwnReason": {
			reason: "What a member says of itself is told, on one line and bounded.",
			in: well(func(v *view) {
				v.pods[2] = pod("c", "", unready, func(p *corev1.Pod) {
					p.Annotations[v1alpha1.AnnotationMember] = `{"version":"17.6","disk":"Ok","reason":"VolumeOfAnother","message":"the volume\nis of another"}`
				})
			}),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase = v1alpha1.TopologyDegraded
				o.Members[2] = saw("c", "", v1alpha1.MemberStarting, v1alpha1.LagUnknown, notReady)
				o.Members[2].Reason, o.Members[2].Message = "VolumeOfAnother", "the volume is of another"
			}),
		},
		"FormerContainer": {
			reason: "What a container wrote that ended is not believed of its successor, which has not written yet.",
			in:     well(func(v *view) { v.pods[1] = pod("b", fmt.Sprintf(follows, at), restarted(time.Second)) }),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase = v1alpha1.TopologyDegraded
				o.Members[1] = saw("b", "", v1alpha1.MemberStarting, v1alpha1.LagUnknown, notReady)
			}),
		},
		"SameContainer": {
			reason: "What the container itself wrote is believed, although it is not ready.",
			in:     well(func(v *view) { v.pods[1] = pod("b", fmt.Sprintf(follows, at), restarted(-time.Second)) }),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase = v1alpha1.TopologyDegraded
				notReady(&o.Members[1])
			}),
		},
		"ReadyContainer": {
			reason: "A container that is ready follows. Patroni does not write again what the pod has already.",
			in: well(func(v *view) {
				v.pods[1] = pod("b", fmt.Sprintf(follows, at), restarted(time.Second), func(p *corev1.Pod) {
					p.Status.ContainerStatuses[0].Ready, p.Status.Conditions[0].Status = true, corev1.ConditionTrue
				})
			}),
			want: want(),
		},
		"EndedContainer": {
			reason: "A container that ended has no role and no lag.",
			in:     well(func(v *view) { v.pods[1] = pod("b", fmt.Sprintf(follows, at), waiting("ContainerCreating", "")) }),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase = v1alpha1.TopologyDegraded
				o.Members[1] = saw("b", "", v1alpha1.MemberStarting, v1alpha1.LagUnknown, notReady)
			}),
		},
		"Silent": {
			reason: "A standby that reports no position while its leader writes may be gone: nothing is believed.",
			in: well(func(v *view) {
				v.recalled.silent = map[string]bool{"orders-db-b-0": true}
				v.recalled.lag["orders-db-b-0"] = v1alpha1.LagFarBehind
			}),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase = v1alpha1.TopologyDegraded
				o.Members[1] = saw("b", "", v1alpha1.MemberUnknown, v1alpha1.LagFarBehind)
			}),
		},
		"Extra": {
			reason: "A member that is no longer wanted is told as long as it is there.",
			in:     well(func(v *view) { v.parameters.Members = v.parameters.Members[:2] }),
			want:   want(),
		},
		"Garbage": {
			reason: "Annotations that cannot be read tell nothing.",
			in: well(func(v *view) {
				v.pods[2] = pod("c", "{", func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationMember] = "[]" })
			}),
			want: want(func(o *v1alpha1.TopologyObservation) {
				o.Phase = v1alpha1.TopologyDegraded
				o.Members[2] = saw("c", "", v1alpha1.MemberStarting, v1alpha1.LagUnknown)
				o.Members[2].Version, o.Members[2].Disk = "", ""
			}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.in.facts()); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}

			// In another order they are the same.
			rand.Shuffle(len(tc.in.pods), func(i, j int) { tc.in.pods[i], tc.in.pods[j] = tc.in.pods[j], tc.in.pods[i] })
			rand.Shuffle(len(tc.in.nodes), func(i, j int) { tc.in.nodes[i], tc.in.nodes[j] = tc.in.nodes[j], tc.in.nodes[i] })
			if diff := cmp.Diff(tc.want, tc.in.facts()); diff != "" {
				t.Errorf("\nThe order of objects makes a difference: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestFailover(t *testing.T) {
	// before is what was seen while a led.
	before := v1alpha1.TopologyObservation{Leader: "orders-db-a", SystemIdentifier: "7575", Timeline: 2}
	knew := led{member: "orders-db-a", uid: "a-1", node: "node-a"}

	// over makes b the leader.
	over := func(change ...func(*view)) *view {
		return well(append([]func(*view){func(v *view) {
			v.was, v.recalled.led = before, knew
			v.records[members.SuffixLeader][members.AnnotationLeader] = "orders-db-b-0"
			v.pods = []corev1.Pod{pod("a", fmt.Sprintf(follows, at)), pod("b", fmt.Sprintf(leads, at)), pod("c", fmt.Sprintf(follows, at))}
		}}, change...)...)
	}
	took := func(cause string) *v1alpha1.Failover {
		return &v1alpha1.Failover{
			At:   metav1.NewTime(time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)),
			From: "orders-db-a", To: "orders-db-b", Cause: cause,
		}
	}
	old := func(cause string, ago time.Duration) *v1alpha1.Failover {
		return &v1alpha1.Failover{At: metav1.NewTime(now.Add(-ago)), From: "orders-db-a", To: "orders-db-b", Cause: cause}
	}
	cases := map[string]struct {
		reason string
		in     *view
		want   *v1alpha1.Failover
	}{
		"None":       {reason: "The first leader takes over from nobody.", in: well()},
		"Same":       {reason: "The same one leads again.", in: well(func(v *view) { v.was, v.recalled.led = v1alpha1.TopologyObservation{SystemIdentifier: "7575"}, knew })},
		"Well":       {reason: "The former leader is well and follows: it handed over.", in: over(), want: took(v1alpha1.CauseSwitchover)},
		"Asked":      {reason: "Somebody asked for it.", in: over(func(v *view) { v.recalled.asked = true; v.pods[0] = pod("a", starts) }), want: took(v1alpha1.CauseSwitchover)},
		"PodGoing":   {reason: "The pod goes, and handed over because of it.", in: over(func(v *view) { v.recalled.asked = true; v.pods[0] = pod("a", ended, going) }), want: took(v1alpha1.CausePodDeleted)},
		"PodGone":    {reason: "There is no pod.", in: over(func(v *view) { v.pods = v.pods[1:] }), want: took(v1alpha1.CausePodDeleted)},
		"PodAnother": {reason: "There is another pod already.", in: over(func(v *view) { v.pods[0].UID = "a-2" }), want: took(v1alpha1.CausePodDeleted)},
		"NodeLost":   {reason: "Its node is not ready.", in: over(func(v *view) { v.nodes[0] = node("a", lost) }), want: took(v1alpha1.CauseNodeLost)},
		"NodeGone":   {reason: "Its node is gone, and its pod with it.", in: over(func(v *view) { v.nodes, v.pods = v.nodes[1:], v.pods[1:] }), want: took(v1alpha1.CauseNodeLost)},
		"Crashed":    {reason: "Its server ended.", in: over(func(v *view) { v.pods[0] = pod("a", ended, unready) }), want: took(v1alpha1.CauseCrashed)},
		"Restarted": {
			reason: "Its container was started again meanwhile.",
			in:     over(func(v *view) { v.pods[0].Status.ContainerStatuses[0].RestartCount = 1 }), want: took(v1alpha1.CauseCrashed),
		},
		"CrashSeen": {reason: "It is well again, and was seen to have ended.", in: over(func(v *view) { v.recalled.crashed = true }), want: took(v1alpha1.CauseCrashed)},
		"Frozen":    {reason: "It still says that it leads, and nothing else is known.", in: over(func(v *view) { v.pods[0] = pod("a", fmt.Sprintf(leads, at)) }), want: took(v1alpha1.CauseUnknown)},
		"AfterGap": {
			reason: "For a while nobody led.",
			in:     over(func(v *view) { v.was.Leader = "" }), want: took(v1alpha1.CauseSwitchover),
		},
		"AfterRestart": {
			reason: "Nothing is remembered but the status, whose last leader was another one.",
			in: over(func(v *view) {
				v.was = v1alpha1.TopologyObservation{SystemIdentifier: "7575", LastFailover: &v1alpha1.Failover{To: "orders-db-a"}}
				v.recalled.led = led{}
			}), want: took(v1alpha1.CauseSwitchover),
		},
		"OtherData": {reason: "What was made again takes over from nobody.", in: over(func(v *view) { v.was.SystemIdentifier = "1" })},
		"Kept": {
			reason: "It stays until the next.", want: old(v1alpha1.CausePodDeleted, time.Hour),
			in: over(func(v *view) {
				v.was = v1alpha1.TopologyObservation{Leader: "orders-db-b", SystemIdentifier: "7575", LastFailover: old(v1alpha1.CausePodDeleted, time.Hour)}
			}),
		},
		"NodeLostLater": {
			reason: "That a node is lost turns out after another member took over.", want: old(v1alpha1.CauseNodeLost, time.Minute),
			in: over(func(v *view) {
				v.was = v1alpha1.TopologyObservation{Leader: "orders-db-b", SystemIdentifier: "7575", LastFailover: old(v1alpha1.CauseUnknown, time.Minute)}
				v.recalled.led, v.recalled.previous = led{member: "orders-db-b"}, knew
				v.nodes[0] = node("a", lost)
			}),
		},
		"ThawedLater": {
			reason: "One that was frozen and follows later did not hand over.", want: old(v1alpha1.CauseUnknown, time.Minute),
			in: over(func(v *view) {
				v.was = v1alpha1.TopologyObservation{Leader: "orders-db-b", SystemIdentifier: "7575", LastFailover: old(v1alpha1.CauseUnknown, time.Minute)}
			}),
		},
		"TooLate": {
			reason: "What happens long afterwards is no cause.", want: old(v1alpha1.CauseUnknown, time.Hour),
			in: over(func(v *view) {
				v.was = v1alpha1.TopologyObservation{Leader: "orders-db-b", SystemIdentifier: "7575", LastFailover: old(v1alpha1.CauseUnknown, time.Hour)}
				v.nodes[0] = node("a", lost)
			}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.in.facts().LastFailover); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
