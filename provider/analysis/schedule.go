// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// remedies for what the scheduler says, in the order they are given.
var remedies = []struct{ word, remedy string }{ //nolint:gochecknoglobals // A constant table.
	{"Insufficient cpu", "lower spec.resources.cpu"},
	{"Insufficient memory", "lower spec.resources.memory"},
	{"taint", "tolerate the taint in spec.scheduling.tolerations"},
	{"node affinity", "correct spec.scheduling.nodeSelector"},
	{"node selector", "correct spec.scheduling.nodeSelector"},
	{"topology spread", "set spec.availability.zones to Preferred"},
	{"unschedulable", "uncordon nodes"},
	{"persistentvolumeclaim", "make the claim, or correct spec.model.volume.claimName"},
	{"unbound immediate PersistentVolumeClaims", "see the events of the claim: its storage class must be able to provide the volume"},
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
func unscheduled(p *corev1.Pod) *cause {
	if leaving(p) {
		return nil
	}

	for _, c := range p.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
			continue
		}

		return misfit(p, objections(c.Message, p))
	}

	return nil
}

// objections of the scheduler, each once and sorted, without the number of nodes
// they hold for: it changes with the cluster, and not with the cause.
func objections(message string, p *corev1.Pod) []string {
	message = bounded(message, maxHeard)

	if at := afterthought.FindStringIndex(message); at != nil {
		message = message[:at[0]]
	}

	var out []string

	for part := range strings.SplitSeq(scope.ReplaceAllString(message, ""), ", ") {
		if o := steady(nodes.ReplaceAllString(part, ""), p); o != "" {
			out = append(out, o)
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// misfit is the cause for the scheduler's objections.
func misfit(p *corev1.Pod, objections []string) *cause {
	said := bounded(strings.Join(objections, ", "), maxDetail)

	for _, o := range objections {
		device, ok := strings.CutPrefix(o, "Insufficient ")
		if !ok || !strings.Contains(device, "/") {
			continue
		}

		return &cause{
			reason: v1alpha1.ReasonInsufficientGPU,
			what:   fmt.Sprintf("no node has %s %s free for a replica: %s", asked(p, device), device, said),
			remedy: "lower spec.resources.gpuCount, name another device in spec.resources.gpu, or add nodes that have it",
		}
	}

	var do []string

	for _, r := range remedies {
		if strings.Contains(said, r.word) && !slices.Contains(do, r.remedy) {
			do = append(do, r.remedy)
		}
	}

	return &cause{
		reason: v1alpha1.ReasonUnschedulable,
		what:   "no node takes a replica: " + said,
		remedy: strings.Join(append(do, "or add nodes that fit"), ", "),
	}
}

// asked is how much of a device a pod wants.
func asked(p *corev1.Pod, device string) string {
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		if q, ok := c.Resources.Limits[corev1.ResourceName(device)]; ok {
			return q.String()
		}
	}

	return "enough"
}
