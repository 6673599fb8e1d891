// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// downloadSeconds is the time for an image and a model to arrive before a replica
// starts. When it and the time to start are over, an update counts as stalled.
const downloadSeconds = 600

// deploymentSpec is what a Deployment is asked for by. Its template stays as it
// was pinned: to decode it into a type would drop what a later version of this
// function has put into it.
type deploymentSpec struct {
	*applyappsv1.DeploymentSpecApplyConfiguration `json:",inline"`

	Template map[string]any `json:"template"`
}

// deployment runs the pods of a revision in a slot.
func (s *state) deployment(r run) {
	slot, resource := r.slot, deploymentOf(r.slot)

	rec, ok := s.record(r.revision)
	// Pods of an unknown revision stay as they are, and so do those that could not
	// start anew without what was refused.
	if !ok || s.lacksDependency(r) {
		if s.slots[slot].exists {
			s.keep(resource)
		}

		return
	}

	spec := applyappsv1.DeploymentSpec().
		WithSelector(applymetav1.LabelSelector().WithMatchLabels(s.selector(slot))).
		WithStrategy(strategy()).
		WithProgressDeadlineSeconds(*s.spec.Probes.StartupSeconds + downloadSeconds).
		WithRevisionHistoryLimit(2)
	spec.Replicas = r.size

	if s.awaitsAccount(slot) {
		spec.WithPaused(true)
	}

	annotations := map[string]string{annotationRevision: r.revision}

	if rec.Model != nil {
		raw, _ := json.Marshal(rec.Model) //nolint:errchkjson // Text always marshals.
		annotations[annotationModel] = string(raw)
	}

	metadata := applymetav1.ObjectMeta().
		WithName(s.slotName(slot)).
		WithNamespace(s.namespace).
		WithLabels(s.slotLabels(slot)).
		WithAnnotations(annotations)

	if v := s.seen(r); v != "" {
		metadata.WithResourceVersion(v)
	}

	s.askOf(r, resource, compose.NewManifest("apps/v1", "Deployment", metadata,
		deploymentSpec{DeploymentSpecApplyConfiguration: spec, Template: labelled(rec.Template, slot)}))
}

// seen version of a Deployment whose size is given back as it was seen, although
// an autoscaler may write another at the same moment. With it the API server
// refuses a size that is out of date, and Crossplane looks again. A Crossplane
// that is short of CPU may see what was a minute ago.
func (s *state) seen(r run) string {
	o := s.Observed[deploymentOf(r.slot)]
	if o == nil || s.spec.Scaling == nil || r.size == nil || r.slot != s.decision.live.slot {
		return ""
	}

	return compose.Text(o.Map(), "metadata", "resourceVersion")
}

// awaitsAccount tells whether the first pods have to wait for their
// ServiceAccount. Crossplane applies objects in no order, and a Deployment whose
// pods were refused once for want of it keeps telling so, whatever else refuses
// them later.
func (s *state) awaitsAccount(slot string) bool {
	return s.spec.ServiceAccountName == "" && s.Observed[nameServiceAccount] == nil && s.slots[slot].total == 0
}

// lacksDependency tells whether something that pods of the revision that the spec
// asks for need to start is left out.
func (s *state) lacksDependency(r run) bool {
	if r.revision != s.target {
		return false
	}

	account := s.spec.ServiceAccountName == "" && s.withholding.LeavesOut(nameServiceAccount)
	files := s.spec.Config != nil && s.withholding.LeavesOut(s.configResource())

	return account || files
}

// strategy never goes below the asked number. A quarter more, rounded up, makes
// one more pod for a small Algorithm.
func strategy() *applyappsv1.DeploymentStrategyApplyConfiguration {
	return applyappsv1.DeploymentStrategy().
		WithType(appsv1.RollingUpdateDeploymentStrategyType).
		WithRollingUpdate(applyappsv1.RollingUpdateDeployment().
			WithMaxUnavailable(intstr.FromInt32(0)).
			WithMaxSurge(intstr.FromString("25%")))
}
