// SPDX-License-Identifier: Apache-2.0

package algorithm

import "github.com/capstan-dev/capstan/function/compose"

// Names of the objects within the composition. Crossplane knows an object by
// them, so that another name would make another object. Those that belong to a
// slot carry it: a rollout runs two revisions side by side.
const (
	nameAnalysis       = "analysis"
	nameAutoscaler     = "hpa-" + slot
	nameBudget         = "pdb-" + slot
	nameConfigPrefix   = "config-"
	nameDeployment     = "deployment-" + slot
	nameNetworkPolicy  = "networkpolicy"
	nameService        = "service"
	nameServiceAccount = "serviceaccount"
)

// slot that runs.
const slot = "a"

// Labels and annotations of composed objects and of pods.
const (
	labelName      = "app.kubernetes.io/name"
	labelManagedBy = "app.kubernetes.io/managed-by"
	labelAlgorithm = "capstan.dev/algorithm"
	labelSlot      = "capstan.dev/slot"

	// annotationRevision names, on the Deployment, everything that reaches its
	// pods. It tells whether the observed Deployment is the one that was asked
	// for, which no comparison could: admission may change any other field.
	annotationRevision = "capstan.dev/revision"
)

const (
	containerName = "algorithm"
	portName      = "http"
)

// slotName of an object that belongs to the slot.
func (s *state) slotName() string { return compose.Name(s.name, slot) }

// labels of every composed object.
func (s *state) labels() map[string]string {
	return map[string]string{
		labelName:      s.name,
		labelManagedBy: "capstan",
		labelAlgorithm: s.name,
	}
}

// slotLabels of what belongs to the slot.
func (s *state) slotLabels() map[string]string {
	l := s.labels()
	l[labelSlot] = slot

	return l
}

// selector of the slot's pods.
func (s *state) selector() map[string]string {
	return map[string]string{labelAlgorithm: s.name, labelSlot: slot}
}
