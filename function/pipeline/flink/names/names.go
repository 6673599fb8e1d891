// SPDX-License-Identifier: Apache-2.0

// Package names has the names of everything that belongs to a stream with Flink: objects, labels and annotations.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/function/compose"
)

// Names of the objects within the composition. Crossplane knows an object by them, so that another name would make another object.
const (
	Autoscaler       = "flink-autoscaler"
	DisruptionBudget = "flink-disruptionbudget"
	Job              = "flink-job"
	JobManager       = "flink-jobmanager"
	Monitor          = "flink-monitor"
	NetworkPolicy    = "flink-networkpolicy"
	// Service has the note of the settings, as for other Pipelines.
	Service        = "service"
	ServiceAccount = "flink-serviceaccount"
	Stable         = "flink-stable"
	State          = "flink-state"
	TaskManagers   = "flink-taskmanagers"

	ConfigPrefix = "flink-config-"
)

// Annotations and keys of composed objects.
const (
	// AnnotationLedger holds, on the Service, what is remembered of the revisions.
	AnnotationLedger = "capstan.dev/ledger"
	// AnnotationRevision is, on the ConfigMap of the stable spec, the hash of everything of it that reaches the pods.
	AnnotationRevision = "capstan.dev/revision"
	// AnnotationPlan has, on pods, the Plan of their companions.
	AnnotationPlan = runner.AnnotationPlan
	// SpecKey is the key of the ConfigMap with the stable spec, as JSON.
	SpecKey = "spec.json"

	labelName      = "app.kubernetes.io/name"
	labelManagedBy = "app.kubernetes.io/managed-by"
)

// Names is what the names of a stream's objects are made of.
type Names struct{ Name, Namespace string }

// Labels of every composed object.
func (n Names) Labels() map[string]string {
	return map[string]string{labelName: n.Name, labelManagedBy: "capstan", runner.LabelPipeline: n.Name}
}

// Role selects the pods with a role.
func (n Names) Role(role string) map[string]string {
	return map[string]string{runner.LabelPipeline: n.Name, flink.LabelRole: role}
}

// Pods selects the pods of both roles.
func (n Names) Pods() map[string]string { return map[string]string{runner.LabelPipeline: n.Name} }

// PodLabels of a role in a revision.
func (n Names) PodLabels(role string, revision int32) map[string]string {
	l := n.Labels()
	l[flink.LabelRole], l[flink.LabelRevision] = role, strconv.Itoa(int(revision))
	return l
}

// Flink is the name of the objects that both roles share. An Algorithm of the same name has other names.
func (n Names) Flink() string { return n.Name + "-flink" }

// JobManager is the name of the StatefulSet, and of the Service by which TaskManagers find its pod.
func (n Names) JobManager() string { return n.Name + "-jobmanager" }

// Host of the JobManager.
func (n Names) Host() string { return fmt.Sprintf("%s.%s.svc", n.JobManager(), n.Namespace) }

// TaskManager is the name of the Deployment.
func (n Names) TaskManager() string { return n.Name + "-taskmanager" }

// State is the name of the claim of the state folder.
func (n Names) State() string { return n.Name + "-flink-state" }

// Stable is the name of the ConfigMap with the stable spec.
func (n Names) Stable() string { return n.Name + "-flink-stable" }

// Config is the name of the ConfigMap whose content has a hash.
func (n Names) Config(hash string) string { return compose.Name(n.Flink(), "config", hash) }

// JobID is the identity of the job for Flink. It never changes, so that state is always found below the same folder.
func (n Names) JobID() string {
	sum := sha256.Sum256([]byte(n.Namespace + "/" + n.Name))
	return hex.EncodeToString(sum[:16])
}

// Metadata of an object of the stream.
func (n Names) Metadata(name string) *applymetav1.ObjectMetaApplyConfiguration {
	return applymetav1.ObjectMeta().WithName(name).WithNamespace(n.Namespace).WithLabels(n.Labels())
}
