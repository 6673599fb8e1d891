// SPDX-License-Identifier: Apache-2.0

package algorithm

// Names of the objects within the composition. Crossplane knows an object by
// them, so that another name would make another object. Those of a slot are named
// in slots.go.
const (
	nameAnalysis           = "analysis"
	nameBudget             = "pdb"
	nameConfigPrefix       = "config-"
	nameModelAliasPrefix   = "modelalias-"
	nameModelCache         = "models"
	nameModelsKept         = "models-kept"
	nameModelVersionPrefix = "modelversion-"
	nameMonitor            = "servicemonitor"
	nameNetworkPolicy      = "networkpolicy"
	nameRevisionPrefix     = "revision-"
	nameRoute              = "route"
	nameRules              = "prometheusrule"
	nameService            = "service"
	nameServiceAccount     = "serviceaccount"
)

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

	// annotationModel holds, on the Deployment, which model of the registry its pods
	// serve.
	annotationModel = "capstan.dev/model"

	// annotationLedger holds, on the Algorithm's Service, what callers reach.
	annotationLedger = "capstan.dev/ledger"
)

const (
	containerName = "algorithm"
	portName      = "http"
	portMetrics   = "metrics"
)

// labels of every composed object.
func (s *state) labels() map[string]string {
	return map[string]string{
		labelName:      s.name,
		labelManagedBy: "capstan",
		labelAlgorithm: s.name,
	}
}
