// SPDX-License-Identifier: Apache-2.0

package findings

import (
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
)

// A trouble of pods in one place, with any details.
type trouble struct {
	place

	reason xpv2.ConditionReason
}

// fewest pods with a trouble that are not just a few, and the part of all pods that is not.
const (
	fewest = 2
	part   = 4
)

// A hit is the pods that have a trouble, by their index.
type hit map[int]bool

// extent of a trouble among the pods of its place. One pod on a bad node, or one that is unlucky, says little about what all of
// them run.
func (h hit) extent(where place, pods []corev1.Pod) v1alpha1.FindingExtent {
	all, elsewhere := 0, false
	node, one := "", true
	for i := range pods {
		if h[i] {
			one = one && (node == "" || node == pods[i].Spec.NodeName)
			node = pods[i].Spec.NodeName
		}
	}
	for i := range pods {
		p := &pods[i]
		if placeOf(p) != where || podhealth.Leaving(p) {
			continue
		}
		all++
		elsewhere = elsewhere || !h[i] && p.Spec.NodeName != node && podhealth.Is(p, corev1.PodReady)
	}
	switch {
	case one && node != "" && elsewhere:
		return v1alpha1.FindingOnNode
	case all > 1 && len(h) < max(fewest, (all+part-1)/part):
		return v1alpha1.FindingOfFew
	default:
		return ""
	}
}
