// SPDX-License-Identifier: Apache-2.0

package podhealth

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// remedies for what the scheduler says, in the order they are given.
var remedies = []struct{ word, remedy string }{
	{"Insufficient cpu", "ask for less CPU"},
	{"Insufficient memory", "ask for less memory"},
	{"volume node affinity", "bring back a node that reaches the volume: it is bound to a zone or a node"},
	{"topology spread", "bring back or add a node, or zone, that has no member yet"},
	{"taint", "take away the taint"},
	{"unschedulable", "uncordon nodes"},
	{"Too many pods", "make room on the nodes"},
}

var (
	// scope is the beginning of what the scheduler says: of how many nodes.
	scope = regexp.MustCompile(`^\d+/\d+ nodes are available: `)
	// nodes is how many nodes a reason holds for.
	nodes = regexp.MustCompile(`^\d+ `)
	// afterthought is where the scheduler goes on to tell about preemption and
	// claims, which repeats the reasons.
	afterthought = regexp.MustCompile(`\s(preemption:|no new claims to deallocate)`)
)

// unscheduled finds a pod that no node takes.
func unscheduled(p *corev1.Pod) *Hindrance {
	for _, c := range p.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
			continue
		}

		said := Bounded(strings.Join(objections(c.Message, p.GetName()), ", "), maxDetail)

		if strings.Contains(said, "unbound immediate PersistentVolumeClaims") || strings.Contains(said, "persistentvolumeclaim") {
			return &Hindrance{
				Reason: v1alpha1.ReasonVolumePending,
				What:   "the volume is not there yet: " + said,
				Remedy: "see the events of the claim: its storage class must be able to provide the volume",
			}
		}

		var do []string

		for _, r := range remedies {
			if strings.Contains(said, r.word) {
				do = append(do, r.remedy)
			}
		}

		return &Hindrance{
			Reason: v1alpha1.ReasonUnschedulable,
			What:   "no node takes the pod: " + said,
			Remedy: strings.Join(append(do, "or add nodes that fit"), ", "),
		}
	}

	return nil
}

// objections of the scheduler, each once and sorted, without the number of nodes
// they hold for: it changes with the cluster, and not with the cause.
func objections(message, pod string) []string {
	message = Bounded(message, maxHeard)

	if at := afterthought.FindStringIndex(message); at != nil {
		message = message[:at[0]]
	}

	var out []string

	for part := range strings.SplitSeq(scope.ReplaceAllString(message, ""), ", ") {
		if o := Steady(nodes.ReplaceAllString(part, ""), pod); o != "" {
			out = append(out, o)
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}
