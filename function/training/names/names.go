// SPDX-License-Identifier: Apache-2.0

// Package names has the names of everything that belongs to a Training: objects, labels and annotations.
package names

import (
	"fmt"
	"strconv"
	"strings"

	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/function/compose"
)

// Names of the objects within the composition. Crossplane knows an object by them, so that another name would make another object.
const (
	Checkpoints    = "checkpoints"
	Monitor        = "monitor"
	NetworkPolicy  = "networkpolicy"
	Run            = "run"
	Service        = "service"
	ServiceAccount = "serviceaccount"

	ClaimPrefix        = "claim-"
	ConfigPrefix       = "config-"
	JobPrefix          = "job-"
	ModelAliasPrefix   = "modelalias-"
	ModelVersionPrefix = "modelversion-"
	PlanPrefix         = "plan-"
)

// Labels and annotations of composed objects and of pods.
const (
	labelName      = "app.kubernetes.io/name"
	labelManagedBy = "app.kubernetes.io/managed-by"
	// LabelTraining selects the pods of all runs.
	LabelTraining = crew.LabelTraining
	// LabelRun has the number of a run, on its Job, plan and pods.
	LabelRun = crew.LabelRun
	// AnnotationRevision is, on a Job and the Run, the hash of everything of the spec that reaches its pods.
	AnnotationRevision = "capstan.dev/revision"
	// AnnotationRerun is, on a Job and the Run, the last request to start again that was carried out.
	AnnotationRerun = "capstan.dev/rerun"
	// AnnotationCycle is, on a Job and the Run, the number of the run whose folder has the checkpoints.
	AnnotationCycle = "capstan.dev/cycle"
	// AnnotationLedger holds, on the Service, what is remembered of the runs.
	AnnotationLedger = "capstan.dev/ledger"
)

// Job of a run within the composition.
func Job(run int32) string { return JobPrefix + number(run) }

// PlansOf a run begin with this within the composition.
func PlansOf(run int32) string { return PlanPrefix + number(run) + "-" }

// ModelVersion of a run within the composition.
func ModelVersion(run int32) string { return ModelVersionPrefix + number(run) }

// RunOf a name within the composition, after a prefix, or 0 if it has no number there.
func RunOf(prefix, resource string) int32 {
	rest, ok := strings.CutPrefix(resource, prefix)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(rest, 10, 32)
	if err != nil || n < 1 {
		return 0
	}
	return int32(n)
}

func number(run int32) string { return strconv.Itoa(int(run)) }

// Names is what the names of a Training's objects are made of.
type Names struct{ Name, Namespace string }

// Labels of every composed object.
func (n Names) Labels() map[string]string {
	return map[string]string{labelName: n.Name, labelManagedBy: "capstan", LabelTraining: n.Name}
}

// RunLabels of the objects of a run, and of its pods.
func (n Names) RunLabels(run int32) map[string]string {
	l := n.Labels()
	l[LabelRun] = number(run)
	return l
}

// Pods selects the pods of all runs.
func (n Names) Pods() map[string]string { return map[string]string{LabelTraining: n.Name} }

// RunPods selects the pods of a run.
func (n Names) RunPods(run int32) map[string]string {
	l := n.Pods()
	l[LabelRun] = number(run)
	return l
}

// Crew is the name of the objects that all runs share: the Service by which members find each other, the account, the policy and the
// Run. An Algorithm of the same name has other names.
func (n Names) Crew() string { return n.Name + "-crew" }

// Domain of the host names of the pods.
func (n Names) Domain() string { return fmt.Sprintf("%s.%s.svc", n.Crew(), n.Namespace) }

// Job of a run.
func (n Names) Job(run int32) string { return fmt.Sprintf("%s-r%d", n.Name, run) }

// Plan is the name of the ConfigMap with the plan of a run, whose content has a hash.
func (n Names) Plan(run int32, hash string) string { return compose.Name(n.Job(run), hash) }

// Config is the name of the ConfigMap whose content has a hash.
func (n Names) Config(hash string) string { return compose.Name(n.Crew(), "config", hash) }

// DeviceClaim is the name of the ResourceClaimTemplate whose content has a hash.
func (n Names) DeviceClaim(hash string) string { return compose.Name(n.Crew(), "devices", hash) }

// CheckpointClaim is the name of the claim of checkpoints.
func (n Names) CheckpointClaim() string { return n.Name + "-checkpoints" }

// ModelVersion is the name of the version that a run is registered as.
func (n Names) ModelVersion(run int32) string { return compose.Name(n.Job(run), "model") }

// ModelAlias is the name of an alias of a model, which has a hash.
func (n Names) ModelAlias(hash string) string { return compose.Name(n.Crew(), "model", hash) }

// Metadata of an object of the Training.
func (n Names) Metadata(name string) *applymetav1.ObjectMetaApplyConfiguration {
	return applymetav1.ObjectMeta().WithName(name).WithNamespace(n.Namespace).WithLabels(n.Labels())
}
