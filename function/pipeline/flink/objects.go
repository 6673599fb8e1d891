// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applyautoscalingv2 "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/capstan-dev/capstan/apis/flink"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/pipeline/flink/names"
	"github.com/capstan-dev/capstan/function/pipeline/flink/pods"
	"github.com/capstan-dev/capstan/function/podspec"
)

// calm is how long the autoscaler waits before it adds or removes TaskManagers, in seconds. Each change restarts the job, and Flink itself
// waits 30 s between two.
const (
	calmUp   = 120
	calmDown = 600
)

// objects of an accepted spec.
func objects(d *compose.Draft, p *pass) error {
	in := pods.Inputs{
		Names: p.Names, Spec: p.runs, CompanionImage: p.Settings.Algorithm.CompanionImage, Revision: p.ledger.Revision, Ignored: p.ledger.Ignored,
		Continues: p.ledger.Continues,
	}
	plan, err := in.Plan()
	if err != nil {
		return fmt.Errorf("cannot write the plan: %w", err)
	}
	service(d, p)
	serviceAccount(d, p)
	networkPolicy(d, p)
	state(d, p)
	config(d, p)
	if err := stable(d, p); err != nil {
		return err
	}
	jobManager(d, p, in.JobManager(plan))
	taskManagers(d, p, in.TaskManager(plan))
	disruptionBudget(d, p)
	autoscaler(d, p)
	job(d, p)
	p.lineage().Compose(d, p.lineageRuns())
	monitor(d, p)
	return nil
}

// service by which TaskManagers find the JobManager before it is ready. It also keeps what is remembered of the revisions.
func service(d *compose.Draft, p *pass) {
	d.Require(names.Service, applycorev1.Service(p.JobManager(), p.Namespace).
		WithLabels(p.Labels()).
		WithAnnotations(p.NoteSettings(map[string]string{names.AnnotationLedger: p.ledger.Text()})).
		WithSpec(applycorev1.ServiceSpec().
			WithClusterIP(corev1.ClusterIPNone).
			WithPublishNotReadyAddresses(true).
			WithSelector(p.Role(flink.RoleJobManager)).
			WithPorts(applycorev1.ServicePort().
				WithName(pods.PortState).WithProtocol(corev1.ProtocolTCP).WithPort(flink.StatePort).WithTargetPort(intstr.FromString(pods.PortState)))))
}

// serviceAccount without rights and without a token.
func serviceAccount(d *compose.Draft, p *pass) {
	if p.runs.Pod.ServiceAccountName == "" {
		d.Require(names.ServiceAccount, applycorev1.ServiceAccount(p.Flink(), p.Namespace).
			WithLabels(p.Labels()).
			WithAutomountServiceAccountToken(false))
	}
}

// networkPolicy lets the pods of the stream reach each other. The provider and what scrapes metrics reach the port of the state, and nothing
// else reaches anything. What pods may call stays open.
func networkPolicy(d *compose.Draft, p *pass) {
	own := applynetworkingv1.NetworkPolicyIngressRule().WithFrom(compose.NewPeer("", p.Pods()))
	port := intstr.FromInt32(flink.StatePort)
	rules := []*compose.IngressRule{own, compose.Ingress(port, compose.PodsOf([]string{p.Settings.Database.CrossplaneNamespace})...)}
	if ns := p.Settings.Algorithm.MetricsNamespaces; len(ns) > 0 {
		rules = append(rules, compose.Ingress(port, compose.PodsOf(ns)...))
		if m := p.spec.Metrics; m != nil && m.Port != nil {
			rules = append(rules, compose.Ingress(intstr.FromInt32(*m.Port), compose.PodsOf(ns)...))
		}
	}
	d.Require(names.NetworkPolicy, applynetworkingv1.NetworkPolicy(p.Flink(), p.Namespace).
		WithLabels(p.Labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(p.Pods())).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(rules...)))
}

// state is the claim that the spec asks for. One that exists stays, also when the spec does not ask for it any more, and never shrinks.
func state(d *compose.Draft, p *pass) {
	c := p.runs.Flink.State.Claim
	if c == nil {
		d.Keep(names.State)
		return
	}
	size := *c.Resources.Requests.Storage
	if o := p.Observed[names.State]; o != nil {
		claimed, err := resource.ParseQuantity(compose.Text(o.Map(), "spec", "resources", "requests", "storage"))
		if err == nil && claimed.Cmp(size) > 0 {
			size = claimed
		}
	}
	modes := c.AccessModes
	if len(modes) == 0 {
		modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	spec := applycorev1.PersistentVolumeClaimSpec().
		WithAccessModes(modes...).
		WithResources(applycorev1.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: size}))
	if c.StorageClassName != "" {
		spec.WithStorageClassName(c.StorageClassName)
	}
	d.Require(names.State, applycorev1.PersistentVolumeClaim(p.State(), p.Namespace).WithLabels(p.Labels()).WithSpec(spec))
}

// config files in an immutable ConfigMap named by its content. ConfigMaps of the pods that exist stay until the next ones are stable.
func config(d *compose.Draft, p *pass) {
	if p.runs.Config != nil {
		hash := podspec.ConfigHash(p.runs.Config)
		d.Require(names.ConfigPrefix+hash, podspec.ConfigMap(p.Config(hash), p.Namespace, p.Labels(), p.runs.Config))
	}
	if p.ledger.Stable {
		return
	}
	for resource := range p.Observed {
		if strings.HasPrefix(resource, names.ConfigPrefix) && !d.Has(resource) {
			d.Keep(resource)
		}
	}
}

// stable spec, to which the stream goes back when an edit does not run well.
func stable(d *compose.Draft, p *pass) error {
	if !p.ledger.Stable || p.ledger.Hash != p.hash {
		d.Keep(names.Stable)
		return nil
	}
	raw, err := json.Marshal(p.spec)
	if err != nil {
		return fmt.Errorf("cannot keep the spec: %w", err)
	}
	d.Require(names.Stable, applycorev1.ConfigMap(p.Stable(), p.Namespace).
		WithLabels(p.Labels()).
		WithAnnotations(map[string]string{names.AnnotationRevision: p.hash}).
		WithData(map[string]string{names.SpecKey: string(raw)}))
	return nil
}

// jobManager is one pod at most: a StatefulSet makes the next one when the last is gone. Its pods are managed in parallel, because Kubernetes
// else never replaces a pod that does not become ready, and a broken edit could not be taken back.
func jobManager(d *compose.Draft, p *pass, template *applycorev1.PodTemplateSpecApplyConfiguration) {
	replicas := int32(1)
	if p.spec.Suspend {
		replicas = 0
	}
	d.Require(names.JobManager, applyappsv1.StatefulSet(p.JobManager(), p.Namespace).
		WithLabels(p.Labels()).
		WithSpec(applyappsv1.StatefulSetSpec().
			WithReplicas(replicas).
			WithServiceName(p.JobManager()).
			WithPodManagementPolicy(appsv1.ParallelPodManagement).
			WithRevisionHistoryLimit(2).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(p.Role(flink.RoleJobManager))).
			WithTemplate(template)))
}

// taskManagers of one revision: TaskManagers of another have another image, and cannot join.
func taskManagers(d *compose.Draft, p *pass, template *applycorev1.PodTemplateSpecApplyConfiguration) {
	spec := applyappsv1.DeploymentSpec().
		WithStrategy(applyappsv1.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)).
		WithRevisionHistoryLimit(2).
		WithSelector(applymetav1.LabelSelector().WithMatchLabels(p.Role(flink.RoleTaskManager))).
		WithTemplate(template)
	if n, ours := p.taskManagers(); ours {
		spec.WithReplicas(n)
	}
	d.Require(names.TaskManagers, applyappsv1.Deployment(p.TaskManager(), p.Namespace).WithLabels(p.Labels()).WithSpec(spec))
}

// taskManagers is their number, and whether it is ours to set. An autoscaler sets it, except for the first time and after a suspension.
func (p *pass) taskManagers() (int32, bool) {
	least, o := *p.runs.Flink.TaskManagers, p.Observed[names.TaskManagers]
	switch {
	case p.spec.Suspend:
		return 0, true
	case p.spec.Flink.Scaling == nil, o == nil:
		return least, true
	}
	now := int32(compose.NumberOf(o, int64(least), "spec", "replicas")) //nolint:gosec // The API server keeps it in an int32.
	// Once it is not ours any more, Kubernetes would take the number away with our last claim to it, so that it stays as it is.
	return min(max(now, least), p.spec.Flink.Scaling.Max), compose.OwnsField(o, "", "spec", "replicas") || now == 0
}

// disruptionBudget lets nodes be drained one TaskManager at a time. The JobManager has none: it leaves with a savepoint.
func disruptionBudget(d *compose.Draft, p *pass) {
	d.Require(names.DisruptionBudget, applypolicyv1.PodDisruptionBudget(p.TaskManager(), p.Namespace).
		WithLabels(p.Labels()).
		WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(p.Role(flink.RoleTaskManager)))))
}

// autoscaler of the TaskManagers by their CPU.
func autoscaler(d *compose.Draft, p *pass) {
	s := p.spec.Flink.Scaling
	if s == nil || p.spec.Suspend {
		return
	}
	percent := int32(70)
	if s.CPUPercent != nil {
		percent = *s.CPUPercent
	}
	d.Require(names.Autoscaler, applyautoscalingv2.HorizontalPodAutoscaler(p.TaskManager(), p.Namespace).
		WithLabels(p.Labels()).
		WithSpec(applyautoscalingv2.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(applyautoscalingv2.CrossVersionObjectReference().
				WithAPIVersion(appsv1.SchemeGroupVersion.String()).WithKind("Deployment").WithName(p.TaskManager())).
			WithMinReplicas(*p.runs.Flink.TaskManagers).
			WithMaxReplicas(s.Max).
			WithMetrics(applyautoscalingv2.MetricSpec().
				WithType(autoscalingv2.ResourceMetricSourceType).
				WithResource(applyautoscalingv2.ResourceMetricSource().
					WithName(corev1.ResourceCPU).
					WithTarget(applyautoscalingv2.MetricTarget().WithType(autoscalingv2.UtilizationMetricType).WithAverageUtilization(percent)))).
			WithBehavior(applyautoscalingv2.HorizontalPodAutoscalerBehavior().
				WithScaleUp(applyautoscalingv2.HPAScalingRules().WithStabilizationWindowSeconds(calmUp)).
				WithScaleDown(applyautoscalingv2.HPAScalingRules().WithStabilizationWindowSeconds(calmDown)))))
}

type jobSpec struct {
	ForProvider observev1alpha1.FlinkJobParameters `json:"forProvider"`
}

// job observes the stream.
func job(d *compose.Draft, p *pass) {
	gvk := observev1alpha1.FlinkJobGroupVersionKind
	if p.Kinds[gvk] != compose.Available && p.Observed[names.Job] == nil {
		return
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	d.Offer(names.Job, compose.NewManifest(apiVersion, kind, p.Metadata(p.Flink()), jobSpec{
		ForProvider: observev1alpha1.FlinkJobParameters{Pipeline: p.Name},
	}))
}
