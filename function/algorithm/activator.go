// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"
	applyrbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/podspec"
)

// activatorRole is the ClusterRole of package/platform.yaml with the rights of an activator.
const activatorRole = "capstan:activator"

// activatorMemory is enough for all requests that it holds.
var activatorMemory = resource.MustParse("64Mi")

// activatorReplicas are two, so that one that is lost with its node leaves one that holds requests.
const activatorReplicas = 2

// activator of an Algorithm that may sleep: it takes the requests while no replica runs. It is there all the time, so that no
// request waits for it, and nothing that serves depends on it while the Algorithm is awake.
func activator(d *compose.Draft, p *pass) {
	if !p.activated() {
		return
	}
	name, replicas := p.ActivatorName(), p.SlotPods(p.decision.Ledger.Slot)
	if p.sleep.Down() {
		// Kubernetes sends to pods that end while no others serve. None has both labels.
		replicas[names.LabelActivator] = p.Name
	}
	d.Offer(names.ActivatorAccount, applycorev1.ServiceAccount(name, p.Namespace).
		WithLabels(p.Labels()).
		WithAutomountServiceAccountToken(false))
	d.Offer(names.ActivatorBinding, applyrbacv1.RoleBinding(name, p.Namespace).
		WithLabels(p.Labels()).
		WithRoleRef(applyrbacv1.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(activatorRole)).
		WithSubjects(applyrbacv1.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(name).WithNamespace(p.Namespace)))
	d.Offer(names.AwakeService, applycorev1.Service(p.AwakeName(), p.Namespace).
		WithLabels(p.Labels()).
		WithSpec(applycorev1.ServiceSpec().
			WithSelector(replicas).
			WithPorts(p.servingPort())))
	d.Offer(names.ActivatorPolicy, applynetworkingv1.NetworkPolicy(name, p.Namespace).
		WithLabels(p.Labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(p.ActivatorPods())).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(p.clients()...)))
	d.Offer(names.Activator, applyappsv1.Deployment(name, p.Namespace).
		WithLabels(p.Labels()).
		WithSpec(applyappsv1.DeploymentSpec().
			WithReplicas(activatorReplicas).
			WithRevisionHistoryLimit(2).
			WithStrategy(applyappsv1.DeploymentStrategy().
				WithType(appsv1.RollingUpdateDeploymentStrategyType).
				WithRollingUpdate(applyappsv1.RollingUpdateDeployment().
					WithMaxUnavailable(intstr.FromInt32(0)).
					WithMaxSurge(intstr.FromInt32(1)))).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(p.ActivatorPods())).
			WithTemplate(p.activatorTemplate())))
}

// activatorTemplate satisfies the Pod Security Standard "restricted".
func (p *pass) activatorTemplate() *applycorev1.PodTemplateSpecApplyConfiguration {
	// As long as a replica may take to start. Clients and Gateways mostly stop before.
	wait := time.Duration(*p.spec.Probes.StartupSeconds)*time.Second + rollout.DownloadTime
	c := podspec.Companion(p.Settings.Algorithm.CompanionImage, "activator", []string{
		"hold",
		fmt.Sprintf("--upstream=%s.%s.svc:%d", p.AwakeName(), p.Namespace, servicePort),
		"--analysis=" + p.Name, "--namespace=" + p.Namespace, "--wait=" + wait.String(),
	}, activatorMemory).
		WithPorts(
			applycorev1.ContainerPort().WithName(names.PortHTTP).WithProtocol(corev1.ProtocolTCP).WithContainerPort(8080),
			applycorev1.ContainerPort().WithName("admin").WithProtocol(corev1.ProtocolTCP).WithContainerPort(9902)).
		WithReadinessProbe(applycorev1.Probe().
			WithHTTPGet(applycorev1.HTTPGetAction().WithPath("/ready").WithPort(intstr.FromString("admin"))).
			WithPeriodSeconds(5).
			WithTimeoutSeconds(5)).
		WithLifecycle(applycorev1.Lifecycle().
			WithPreStop(applycorev1.LifecycleHandler().WithSleep(applycorev1.SleepAction().WithSeconds(5))))
	spec := applycorev1.PodSpec().
		WithServiceAccountName(p.ActivatorName()).
		WithAutomountServiceAccountToken(true).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(int64(wait / time.Second)).
		WithSecurityContext(applycorev1.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithSeccompProfile(applycorev1.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithTopologySpreadConstraints(applycorev1.TopologySpreadConstraint().
			WithMaxSkew(1).
			WithTopologyKey(corev1.LabelHostname).
			WithWhenUnsatisfiable(corev1.ScheduleAnyway).
			WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(p.ActivatorPods()))).
		WithContainers(c)
	for _, ref := range p.spec.Pod.ImagePullSecrets {
		spec.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(ref.Name))
	}
	return applycorev1.PodTemplateSpec().WithLabels(p.ActivatorPods()).WithSpec(spec)
}
