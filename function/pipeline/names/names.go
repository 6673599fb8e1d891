// SPDX-License-Identifier: Apache-2.0

// Package names has the names of everything that belongs to a Pipeline: objects, labels and annotations.
package names

import (
	"fmt"

	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/function/compose"
)

// Names of the objects within the composition. Crossplane knows an object by them, so that another name would make another object.
const (
	CronJob        = "cronjob"
	History        = "history"
	Monitor        = "monitor"
	NetworkPolicy  = "networkpolicy"
	Service        = "service"
	ServiceAccount = "serviceaccount"

	ClaimPrefix  = "claim-"
	ConfigPrefix = "config-"
	JobPrefix    = "job-"
)

// Labels and annotations of composed objects and of pods.
const (
	labelName      = "app.kubernetes.io/name"
	labelManagedBy = "app.kubernetes.io/managed-by"
	// LabelPipeline selects the pods of all runs.
	LabelPipeline = runner.LabelPipeline
	// LabelRun has the id of a run that Capstan itself makes the Job of.
	LabelRun = runner.LabelRun
	// AnnotationRevision is, on a Job, the hash of everything of the spec that reaches its pods.
	AnnotationRevision = "capstan.dev/revision"
	// AnnotationReason is, on a Job, why there is it: see runs.Kind.
	AnnotationReason = "capstan.dev/run-reason"
	// AnnotationLedger holds, on the Service, what is remembered of the runs.
	AnnotationLedger = "capstan.dev/ledger"
)

// Names is what the names of a Pipeline's objects are made of.
type Names struct{ Name, Namespace string }

// Labels of composed objects.
func (n Names) Labels() map[string]string {
	return map[string]string{LabelPipeline: n.Name, labelName: n.Name, labelManagedBy: "capstan"}
}

// RunLabels of a Job and its pods. A scheduled run has no id of its own.
func (n Names) RunLabels(id string) map[string]string {
	l := n.Labels()
	if id != "" {
		l[LabelRun] = id
	}
	return l
}

// Pods are the labels that select the pods of all runs.
func (n Names) Pods() map[string]string { return map[string]string{LabelPipeline: n.Name} }

// Shared is the name of the objects that all runs share: the Service, the account, the policy, the JobHistory and the Lineage.
func (n Names) Shared() string { return n.Name + "-pipeline" }

// Domain of the host names of the pods.
func (n Names) Domain() string { return fmt.Sprintf("%s.%s.svc", n.Shared(), n.Namespace) }

// longest base of a Job's name: numbers of attempts and of pods follow it, and a host name has 63 characters.
const longest = 52

// Run is the name of the Job of a run by id.
func (n Names) Run(id string) string {
	if name := n.Name + "-run-" + id; len(name) <= longest {
		return name
	}
	return n.Name + "-run-" + compose.Hash([]byte(id))
}

// Stream is the name of the Job of a start of a stream.
func (n Names) Stream(start int32) string { return fmt.Sprintf("%s-s%d", n.Name, start) }

// Config is the name of the ConfigMap whose content has a hash.
func (n Names) Config(hash string) string { return compose.Name(n.Shared(), "config", hash) }

// DeviceClaim is the name of the ResourceClaimTemplate whose content has a hash.
func (n Names) DeviceClaim(hash string) string { return compose.Name(n.Shared(), "devices", hash) }

// Metadata of an object of the Pipeline.
func (n Names) Metadata(name string) *applymetav1.ObjectMetaApplyConfiguration {
	return applymetav1.ObjectMeta().WithName(name).WithNamespace(n.Namespace).WithLabels(n.Labels())
}
