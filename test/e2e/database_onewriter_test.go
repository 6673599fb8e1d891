// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/test/onewriter"
)

// probers ask every member ten times a second whether it takes a write. Each runs on the node of its member, so that a cut of the node does
// not come between them, and asks the member and not the Service.
type probers struct {
	d    *v1alpha1.Database
	pods []*corev1.Pod
	life int

	taken map[onewriter.Write]bool
}

// probe all members from now on. The table of rows has to be there.
func probe(t *testing.T, d *v1alpha1.Database) *probers {
	t.Helper()
	p := &probers{d: d, taken: map[onewriter.Write]bool{}}
	for _, m := range members(t.Context(), t, d) {
		p.start(t, m.Name, m.Spec.NodeName)
	}

	return p
}

// start a prober of a member on its node.
func (p *probers) start(t *testing.T, member, node string) {
	t.Helper()
	p.life++
	name := fmt.Sprintf("prober-%s-%d", member, p.life)
	pod := clientOf(p.d, name, "writer", writerImage())
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](120)
	pod.Spec.Containers[0].Args = []string{
		"--uri=$(URI)", "--name=" + name, "--for=3h", "--every=100ms",
		"--host=" + fmt.Sprintf("%s.%s-pods.%s.svc", member, p.d.Name, p.d.Namespace),
	}
	start(t, pod)
	p.pods = append(p.pods, pod)
}

// look at what members took so far. Probers of a node that was lost ended with it, and get successors.
func (p *probers) look(t *testing.T) {
	t.Helper()
	for i, pod := range p.pods {
		if pod == nil {
			continue
		}
		for _, l := range parse(logs(t.Context(), pod, "client", 0)) {
			if l.Taken != nil {
				p.taken[*l.Taken] = true
			}
		}
		now, err := get(t.Context(), &corev1.Pod{}, pod.Namespace, pod.Name)
		if err == nil && now.Status.Phase == corev1.PodRunning && len(now.Status.ContainerStatuses) == 1 && now.Status.ContainerStatuses[0].Ready {
			continue
		}
		t.Logf("%s ended", pod.Name)
		p.pods[i] = nil
		for _, m := range members(t.Context(), t, p.d) {
			if m.Spec.NodeName == pod.Spec.NodeSelector[corev1.LabelHostname] {
				p.start(t, m.Name, m.Spec.NodeName)
			}
		}
	}
	var writes []onewriter.Write
	for w := range p.taken {
		writes = append(writes, w)
	}
	for _, proof := range onewriter.Divided(writes) {
		t.Errorf("two members took writes at one time: %s", proof)
	}
}

// end the probing: of what a member took, nothing may be lost.
func (p *probers) end(t *testing.T) {
	t.Helper()
	p.look(t)
	by := map[string]int{}
	for w := range p.taken {
		by[w.Member]++
	}
	t.Logf("members took %v writes of probers", by)
	for _, pod := range p.pods {
		if pod == nil {
			continue
		}
		a := writer{pod: pod}.end(t)
		t.Logf("%s: %d rows acknowledged, %d refused, %d lost", pod.Name, a.Acknowledged, a.Failed, len(a.Lost))
		if len(a.Lost) > 0 {
			t.Errorf("%s was told of rows that are lost, so its member took them without its group: %v", pod.Name, a.Lost)
		}
	}
}
