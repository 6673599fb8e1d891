// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applyautoscalingv2 "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/measure"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/observed"
	"github.com/capstan-dev/capstan/function/podspec"
)

// serviceAccount without rights and without a token, so that what a right is given to some day is this Algorithm and not the
// default account of the namespace.
func serviceAccount(d *compose.Draft, p *pass) {
	if p.spec.Pod.ServiceAccountName == "" {
		d.Require(names.ServiceAccount, applycorev1.ServiceAccount(p.Name, p.Namespace).
			WithLabels(p.Labels()).
			WithAutomountServiceAccountToken(false))
	}
}

// config files in an immutable ConfigMap named by its content. Pods of the revision before keep theirs until they are gone (see
// lingering).
func config(d *compose.Draft, p *pass) {
	if p.spec.Config == nil {
		return
	}
	hash := podspec.ConfigHash(p.spec.Config)
	d.Require(names.ConfigPrefix+hash, podspec.ConfigMap(p.Config(hash), p.Namespace, p.Labels(), p.spec.Config))
}

// deviceClaim is the template of the claims of the replicas, which cannot change: it is named by its content, like the config.
func deviceClaim(d *compose.Draft, p *pass) {
	r := p.spec.Resources.DeviceRequest
	if r == nil {
		return
	}
	hash := podspec.DevicesHash(r)
	d.Require(names.ClaimPrefix+hash, podspec.ClaimTemplate(p.DeviceClaim(hash), p.Namespace, p.Labels(), r))
}

// deploymentSpec is the spec of a Deployment whose template stays as it was pinned: to decode it into a type would drop what a
// later version of this function has put into it.
type deploymentSpec struct {
	*applyappsv1.DeploymentSpecApplyConfiguration `json:",inline"`

	Template map[string]any `json:"template"`
}

// deployment of a revision in a slot. The Algorithm serves without the one that is not live.
func deployment(d *compose.Draft, p *pass, r rollout.Run) {
	slot, resource := p.rollout.Slots[r.Slot], names.Deployment(r.Slot)
	rec, ok := p.record(r.Revision)
	// Pods of an unknown revision stay as they are, and so do those that could not start again without what was refused.
	if !ok || r.Revision == p.target.revision && p.refused(d) {
		d.Keep(resource)
		return
	}
	spec := applyappsv1.DeploymentSpec().
		WithSelector(applymetav1.LabelSelector().WithMatchLabels(p.SlotPods(r.Slot))).
		// It never goes below the desired number. A quarter more, rounded up, makes one more pod for a small Algorithm.
		WithStrategy(applyappsv1.DeploymentStrategy().
			WithType(appsv1.RollingUpdateDeploymentStrategyType).
			WithRollingUpdate(applyappsv1.RollingUpdateDeployment().
				WithMaxUnavailable(intstr.FromInt32(0)).
				WithMaxSurge(intstr.FromString("25%")))).
		// When the time to download and the time to start are over, an update counts as stalled.
		WithProgressDeadlineSeconds(*p.spec.Probes.StartupSeconds + int32(rollout.DownloadTime/time.Second)).
		WithRevisionHistoryLimit(2)
	spec.Replicas = r.Size
	// The first pods wait for the ServiceAccount. Crossplane applies objects in no order, and a Deployment whose pods were
	// refused once for lack of it keeps reporting so, even if another cause refuses them later.
	if p.spec.Pod.ServiceAccountName == "" && p.Observed[names.ServiceAccount] == nil && slot.Total == 0 {
		spec.WithPaused(true)
	}
	metadata := applymetav1.ObjectMeta().WithName(p.OfSlot(r.Slot)).WithNamespace(p.Namespace).WithLabels(p.SlotLabels(r.Slot)).
		WithAnnotations(map[string]string{names.AnnotationRevision: r.Revision})
	if rec.Model != nil {
		raw, _ := json.Marshal(rec.Model) //nolint:errchkjson // Text always marshals.
		metadata.WithAnnotations(map[string]string{names.AnnotationModel: string(raw)})
	}
	live := r.Slot == p.decision.Live.Slot
	// A size that is given back as it was seen, although an autoscaler may write another at the same moment: with the version the
	// API server refuses one that is out of date, and Crossplane looks again. A Crossplane that is short of CPU may see what was
	// a minute ago.
	if o := p.Observed[resource]; o != nil && r.Least != nil && r.Size != nil {
		if v := compose.TextOf(o, "metadata", "resourceVersion"); v != "" {
			metadata.WithResourceVersion(v)
		}
	}
	d.Add(resource, compose.NewManifest("apps/v1", "Deployment", metadata,
		deploymentSpec{DeploymentSpecApplyConfiguration: spec, Template: labelled(rec.Template, r.Slot)}), !live)
}

// idleDeployments stay in slots without a revision once their pods are gone. Nothing but their name counts, so that they keep what they
// have.
func idleDeployments(d *compose.Draft, p *pass) {
	for _, slot := range names.Slots {
		resource := names.Deployment(slot)
		o := p.Observed[resource]
		if o == nil || d.Has(resource) || !isIdle(o) && observed.NewDeployment(o).HoldsRoom() {
			continue
		}
		kept := compose.Keep(o)
		metadata := maps.Clone(compose.Map(kept, "metadata"))
		// Removed, the revision would stay where another manager owns it as well, such as a tool that restored a backup.
		metadata["annotations"] = map[string]any{names.AnnotationIdle: "true", names.AnnotationRevision: ""}
		// Of a Deployment that such a tool restored, Crossplane owns no spec.
		spec := map[string]any{}
		maps.Copy(spec, compose.Map(kept, "spec"))
		spec["replicas"] = 0
		kept["metadata"], kept["spec"] = metadata, spec
		d.Edit(resource, kept)
	}
}

// refused reports whether something that pods of the target need to start is left out.
func (p *pass) refused(d *compose.Draft) bool {
	account := p.spec.Pod.ServiceAccountName == "" && d.LeavesOut(names.ServiceAccount)
	claim := p.spec.Resources.DeviceRequest != nil && d.LeavesOut(names.ClaimPrefix+podspec.DevicesHash(p.spec.Resources.DeviceRequest))
	return account || claim || p.spec.Config != nil && d.LeavesOut(names.ConfigPrefix+podspec.ConfigHash(p.spec.Config))
}

// autoscalers of the slots that requests reach. Each follows the load: how much of it a replica bears is known, so that the right
// number of replicas is too. The latency is the guard of the live slot: load is followed before it shows in the latency, and the
// latency brings more replicas where what was learned about the load is no longer true. More replicas of a candidate would hide
// that it is slow.
//
// A metric that is lost freezes the number of replicas; an absent one is never zero (see package/monitoring).
func autoscalers(d *compose.Draft, p *pass) {
	for _, r := range p.runs() {
		if r.Least != nil {
			autoscaler(d, p, r)
		}
	}
}

func autoscaler(d *compose.Draft, p *pass, r rollout.Run) {
	sc, slot := p.spec.Scaling, r.Slot
	unguarded := p.learned.LoadIndependent || slot != p.decision.Live.Slot
	metrics := measure.ScalingMetrics(&p.spec, p.load(), unguarded, p.guarded(), p.Name, slot)
	if len(metrics) == 0 {
		// The metric of the load is not known yet. An autoscaler that scales keeps the metrics that it has.
		metrics = measure.Kept(&p.spec, p.scaler(slot).Metrics())
	}
	if len(metrics) == 0 {
		return
	}
	scale(d, p, slot, applyautoscalingv2.HorizontalPodAutoscalerSpec().
		WithScaleTargetRef(applyautoscalingv2.CrossVersionObjectReference().
			WithAPIVersion("apps/v1").
			WithKind("Deployment").
			WithName(p.OfSlot(slot))).
		WithMinReplicas(*r.Least).
		WithMaxReplicas(sc.MaxReplicas).
		WithMetrics(metrics...).
		WithBehavior(behavior(*sc.ScaleDownAfterSeconds)))
}

type autoscalerSpec struct {
	ForProvider struct {
		Autoscaler  *applyautoscalingv2.HorizontalPodAutoscalerSpecApplyConfiguration `json:"autoscaler"`
		ReportNeeds *bool                                                             `json:"reportNeeds,omitempty"`
	} `json:"forProvider"`
}

// scale a slot by an autoscaler. An Autoscaler keeps it where the provider is installed: composed directly, it would have
// Crossplane look at the Algorithm each time it reports its numbers, every quarter of a minute. What an earlier version composed
// stays in the plan until the provider has taken it over and Crossplane does not observe it any more: what is observed and left
// out would be deleted, and nothing would scale until the provider made another one.
//
// The load of both revisions counts while requests reach both: only then the provider reports it, so that it is quiet otherwise.
func scale(d *compose.Draft, p *pass, slot string, spec *applyautoscalingv2.HorizontalPodAutoscalerSpecApplyConfiguration) {
	resource, direct := names.Autoscaler(slot), names.ComposedAutoscaler(slot)
	if p.available(observev1alpha1.AutoscalerGroupVersionKind, resource) {
		apiVersion, kind := observev1alpha1.AutoscalerGroupVersionKind.ToAPIVersionAndKind()
		var s autoscalerSpec
		s.ForProvider.Autoscaler = spec
		if p.decision.Ledger.Shared() {
			s.ForProvider.ReportNeeds = new(true)
		}
		d.Require(resource, compose.NewManifest(apiVersion, kind, p.Metadata(p.OfSlot(slot)).WithLabels(p.SlotLabels(slot)), s))
		if p.Observed[direct] == nil {
			return
		}
	}
	d.Require(direct, applyautoscalingv2.HorizontalPodAutoscaler(p.OfSlot(slot), p.Namespace).WithLabels(p.SlotLabels(slot)).WithSpec(spec))
}

// behavior grows fast and shrinks slowly.
func behavior(calm int32) *applyautoscalingv2.HorizontalPodAutoscalerBehaviorApplyConfiguration {
	policy := func(kind autoscalingv2.HPAScalingPolicyType, value int32) *applyautoscalingv2.HPAScalingPolicyApplyConfiguration {
		return applyautoscalingv2.HPAScalingPolicy().WithType(kind).WithValue(value).WithPeriodSeconds(60)
	}
	return applyautoscalingv2.HorizontalPodAutoscalerBehavior().
		WithScaleUp(applyautoscalingv2.HPAScalingRules().
			WithStabilizationWindowSeconds(0).
			WithSelectPolicy(autoscalingv2.MaxChangePolicySelect).
			WithPolicies(policy(autoscalingv2.PercentScalingPolicy, 100), policy(autoscalingv2.PodsScalingPolicy, 4))).
		WithScaleDown(applyautoscalingv2.HPAScalingRules().
			WithStabilizationWindowSeconds(calm).
			WithSelectPolicy(autoscalingv2.MaxChangePolicySelect).
			WithPolicies(policy(autoscalingv2.PercentScalingPolicy, 10), policy(autoscalingv2.PodsScalingPolicy, 1)))
}

// disruptionBudgets keep node drains from taking too many replicas of a slot at a time: of the live slot, and of the other while
// requests reach a candidate there, or could go back to it. Its replicas otherwise finish what they have wherever they are. Each slot
// has its own, since no pod may be counted by two. An Algorithm of one replica gets none. One that may be missing always may, so that a
// candidate with a single replica holds up no drain.
// A budget counts the missing ones, since a minimum equal to the size would block drains as well, and pods that do not serve may
// always go.
func disruptionBudgets(d *compose.Draft, p *pass) {
	most := p.rollout.Replicas
	if p.spec.Scaling != nil {
		most = p.spec.Scaling.MaxReplicas
	}
	if most <= 1 {
		return
	}
	live, beside := p.decision.Live.Slot, p.decision.Beside
	d.Require(names.Budget(live), disruptionBudget(p, p.SlotPods(live), live))
	// It counts pods with the first requests, and as long as they run: before, each pod that starts would change the budget just before the
	// Deployment, and have Crossplane apply every object twice. Until then it selects none. It stays like the Deployment (see AnnotationIdle).
	o, pods := p.Observed[names.Budget(beside.Slot)], p.SlotPods(beside.Slot)
	counts := o != nil && compose.TextOf(o, "spec", "selector", "matchLabels", names.LabelIdle) == ""
	switch {
	case beside.Revision != "" && (p.decision.Reached() || counts):
	case o == nil:
		return
	default:
		pods = maps.Clone(pods)
		pods[names.LabelIdle] = "true"
	}
	d.Offer(names.Budget(beside.Slot), disruptionBudget(p, pods, beside.Slot))
}

func disruptionBudget(p *pass, pods map[string]string, slot string) *applypolicyv1.PodDisruptionBudgetApplyConfiguration {
	return applypolicyv1.PodDisruptionBudget(p.OfSlot(slot), p.Namespace).
		WithLabels(p.SlotLabels(slot)).
		WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
			WithMaxUnavailable(*p.spec.Availability.MaxUnavailable).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(pods)))
}
