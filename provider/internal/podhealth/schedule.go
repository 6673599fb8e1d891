// SPDX-License-Identifier: Apache-2.0

package podhealth

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// A Placement says what helps when no node takes a pod.
type Placement struct {
	// Subject that no node takes, for instance "a replica".
	Who string

	// Special is read first: what its owner says differently about the objections of the scheduler, or nil. Said is all of them.
	Special func(p *corev1.Pod, objections []string, said string) *Hindrance

	// Remedies in the order they are given, each once, for words of the scheduler.
	Remedies []struct{ Word, Remedy string }
}

var (
	// scope is the beginning of what the scheduler says: of how many nodes.
	scope = regexp.MustCompile(`^\d+/\d+ nodes are available: `)
	// nodes is how many nodes a reason holds for.
	nodes = regexp.MustCompile(`^\d+ `)
	// afterthought is where the scheduler continues with preemption and claims, which repeats the reasons.
	afterthought = regexp.MustCompile(`\s(preemption:|no new claims to deallocate)`)
)

// Unscheduled finds that no node takes the pod.
func (l *Placement) Unscheduled(p *corev1.Pod) *Hindrance {
	if Leaving(p) {
		return nil
	}
	for _, c := range p.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
			continue
		}
		return l.misfit(p, objections(c.Message, p))
	}
	return nil
}

// objections of the scheduler, each once and sorted, without the number of nodes they hold for: it changes with the cluster, and
// not with the cause.
func objections(message string, p *corev1.Pod) []string {
	message = words.Bounded(message, words.MaxHeard)
	if at := afterthought.FindStringIndex(message); at != nil {
		message = message[:at[0]]
	}
	var out []string
	for part := range strings.SplitSeq(scope.ReplaceAllString(message, ""), ", ") {
		if o := words.Steady(nodes.ReplaceAllString(part, ""), p.GetName()); o != "" {
			out = append(out, o)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// misfit is what blocks a pod to which the scheduler objects.
func (l *Placement) misfit(p *corev1.Pod, objections []string) *Hindrance {
	said := words.Bounded(strings.Join(objections, ", "), words.MaxDetail)
	if h := l.Special(p, objections, said); h != nil {
		return h
	}
	var do []string
	for _, r := range l.Remedies {
		if strings.Contains(said, r.Word) && !slices.Contains(do, r.Remedy) {
			do = append(do, r.Remedy)
		}
	}
	return &Hindrance{
		Reason: v1alpha1.ReasonUnschedulable,
		What:   "no node takes " + l.Who + ": " + said,
		Remedy: strings.Join(append(do, "or add nodes that fit"), ", "),
	}
}

// WithoutDevice is a Special that finds a pod which waits for a GPU or another device, in the fields of spec.resources. The text for who
// is as in Placement.
func WithoutDevice(who string) func(p *corev1.Pod, objections []string, said string) *Hindrance {
	return func(p *corev1.Pod, objections []string, said string) *Hindrance {
		for _, o := range objections {
			if strings.Contains(o, "cannot allocate all claims") {
				return &Hindrance{
					Reason: v1alpha1.ReasonInsufficientGPU,
					What:   "no node has the devices free that " + who + " claims: " + said,
					Remedy: "lower count or correct selectors in spec.resources.deviceRequest, or add nodes that have such devices",
				}
			}
			device, ok := strings.CutPrefix(o, "Insufficient ")
			if !ok || !strings.Contains(device, "/") {
				continue
			}
			count := "enough"
			for _, c := range slices.Backward(slices.Concat(p.Spec.Containers, p.Spec.InitContainers)) {
				if q, ok := c.Resources.Limits[corev1.ResourceName(device)]; ok {
					count = q.String()
				}
			}
			return &Hindrance{
				Reason: v1alpha1.ReasonInsufficientGPU,
				What:   fmt.Sprintf("no node has %s %s free for %s: %s", count, device, who, said),
				Remedy: "lower spec.resources.gpuCount, name another device in spec.resources.gpu, or add nodes that have it",
			}
		}
		return nil
	}
}
