// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

const (
	// labelRevision of a pod names the revision of its StatefulSet.
	labelRevision = "controller-revision-hash"

	// labelApp of a pod is also the name of the container that the server runs in: postgres or mysql.
	labelApp = "app.kubernetes.io/name"

	// maxNodes is as many as are counted.
	maxNodes = 9

	// Bounds of what members report of themselves, in bytes.
	maxReason, maxMessage = 64, 1024
)

// A view is all that facts are made of.
type view struct {
	parameters v1alpha1.TopologyParameters

	// was is what was seen the last time.
	was v1alpha1.TopologyObservation

	pods   []corev1.Pod
	claims []corev1.PersistentVolumeClaim
	nodes  []corev1.Node

	// records are the annotations of the members' ConfigMaps, by the end of their names.
	records map[string]map[string]string

	recalled recollection

	// absent are reasons why the pods of members are not there, by member.
	absent map[string]*podhealth.Hindrance

	now time.Time
}

// memberOf a pod.
func memberOf(p *corev1.Pod) string {
	if m := p.GetLabels()[v1alpha1.LabelMember]; m != "" {
		return m
	}
	return member(p.GetName())
}

// leader is the member that has the leader lock and whose pod is there, or "". A leader that does not renew the lock has to
// say itself that it is the primary, from a node that is heard.
func (v *view) leader() string {
	lock := v.records[members.SuffixLeader]
	pod := lock[members.AnnotationLeader]
	if pod == "" || v.recalled.expired {
		return ""
	}
	p := v.pod(member(pod))
	if p == nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return ""
	}
	if !renews(lock) && (!v.heard(p) || !running(p) || !join(p.GetAnnotations()[annotationFacts]).primary()) {
		return ""
	}
	return member(pod)
}

// heard reports whether the node of a pod is there and ready, if it has one: otherwise nothing new comes from the pod.
func (v *view) heard(p *corev1.Pod) bool {
	if p.Spec.NodeName == "" {
		return true
	}
	n := v.node(p.Spec.NodeName)
	return n != nil && ready(n)
}

// members by name: those that there should be, and those that have a pod.
func (v *view) members() []string {
	all := slices.Clone(v.parameters.Members)
	for i := range v.pods {
		all = append(all, memberOf(&v.pods[i]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (v *view) pod(name string) *corev1.Pod {
	for i := range v.pods {
		if memberOf(&v.pods[i]) == name {
			return &v.pods[i]
		}
	}
	return nil
}

func (v *view) node(name string) *corev1.Node {
	for i := range v.nodes {
		if v.nodes[i].GetName() == name {
			return &v.nodes[i]
		}
	}
	return nil
}

// container that the server of a member runs in. Others may come before it, which something in the cluster added.
func container(p *corev1.Pod) string { return p.GetLabels()[labelApp] }

// running reports whether the server's container runs.
func running(p *corev1.Pod) bool {
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == container(p) {
			return s.State.Running != nil
		}
	}
	return false
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// acquired is when the leader became it, by what it wrote, or zero.
func (v *view) acquired() time.Time {
	text := v.records[members.SuffixLeader][members.AnnotationAcquired]

	// Patroni writes a numeric zone, and microseconds.
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999-0700"} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t
		}
	}
	return time.Time{}
}
