// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
)

const containerPooler = "pooler"

// poolerGraceSeconds is how long a pooler may take to end: half a minute for its clients to leave by themselves, and some for
// transactions.
const poolerGraceSeconds = 60

// Ports of name servers. Some listen to another one behind their Service.
const (
	portDNS       = 53
	portDNSBehind = 5353
)

// poolerRevision names all of the spec and the platform's settings that reaches the pods of poolers. The version of this function
// is not in it: another one alone restarts no pooler.
func (s *cluster) poolerRevision() string {
	p := s.spec.Pooler
	e := map[string]any{
		"image":  s.image.pinned,
		"cpu":    canonical(*p.Resources.CPU),
		"memory": canonical(*p.Resources.Memory),
	}
	if s.platformSigned() {
		e["server"] = true
	}
	if len(s.spec.ImagePullSecrets) > 0 {
		e["pullSecrets"] = s.pullSecrets()
	}
	return encoding.Hash(e)
}

// poolers that there should be now.
func (s *cluster) poolerReplicas() int32 {
	if s.asleep() {
		return 0
	}
	return *s.spec.Pooler.Replicas
}

// poolerDeployment as the spec asks for, or as it is but for its size, as long as the spec asks for nothing else.
func (s *cluster) poolerDeployment() compose.Named {
	revision := s.poolerRevision()
	if o := s.Observed[namePooler]; o != nil && compose.Text(o.Map(), "metadata", "annotations", annotationRevision) == revision {
		k := maps.Clone(kept(compose.Keep(o)))
		spec := maps.Clone(compose.Map(k, "spec"))
		spec["replicas"] = int64(s.poolerReplicas())
		k["spec"] = spec
		return k
	}
	return applyappsv1.Deployment(s.called(suffixPooler), s.namespace).
		WithLabels(s.poolerLabels()).
		WithAnnotations(map[string]string{annotationRevision: revision}).
		WithSpec(applyappsv1.DeploymentSpec().
			WithReplicas(s.poolerReplicas()).
			WithRevisionHistoryLimit(2).
			WithStrategy(applyappsv1.DeploymentStrategy().WithRollingUpdate(applyappsv1.RollingUpdateDeployment().
				WithMaxSurge(intstr.FromInt32(1)).
				WithMaxUnavailable(intstr.FromInt32(0)))).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(s.poolerSelector())).
			WithTemplate(s.poolerTemplate()))
}

// poolerTemplate satisfies the Pod Security Standard "restricted". A pooler calls nobody but the leader, and has no account.
func (s *cluster) poolerTemplate() *applycorev1.PodTemplateSpecApplyConfiguration {
	over := func(key string) *applycorev1.TopologySpreadConstraintApplyConfiguration {
		return applycorev1.TopologySpreadConstraint().
			WithMaxSkew(1).
			WithTopologyKey(key).
			// One that shares a node is better than none.
			WithWhenUnsatisfiable(corev1.ScheduleAnyway).
			WithMatchLabelKeys("pod-template-hash").
			WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(s.poolerSelector()))
	}
	pod := s.hardenedPod().
		WithTerminationGracePeriodSeconds(poolerGraceSeconds).
		WithTolerations(lost(corev1.TaintNodeNotReady), lost(corev1.TaintNodeUnreachable)).
		WithTopologySpreadConstraints(over(corev1.LabelTopologyZone), over(corev1.LabelHostname)).
		WithContainers(s.poolerContainer()).
		WithVolumes(
			emptyVolume(volumeTLS, resource.MustParse("4Mi"), corev1.StorageMediumMemory),
			emptyVolume(volumeTmp, resource.MustParse("16Mi"), ""),
			applycorev1.Volume().WithName(volumeConfig).WithConfigMap(applycorev1.ConfigMapVolumeSource().WithName(s.called(suffixPooler))),
			secretVolume(volumeMembers, s.called(suffixPooler)),
			secretVolume(volumeServer, s.poolerSecret()),
		)
	return applycorev1.PodTemplateSpec().WithLabels(s.poolerLabels()).WithSpec(pod)
}

func (s *cluster) poolerContainer() *applycorev1.ContainerApplyConfiguration {
	env := []*applycorev1.EnvVarApplyConfiguration{applycorev1.EnvVar().WithName("CAPSTAN_LEADER").WithValue(s.host(suffixRW))}
	if s.platformSigned() {
		env = append(env, applycorev1.EnvVar().WithName("CAPSTAN_SERVER_AUTHORITY").WithValue("true"))
	}
	r := s.spec.Pooler.Resources
	return hardened(applycorev1.Container().
		WithName(containerPooler).
		WithImage(s.image.name).
		WithCommand(memberProgram).
		WithArgs("pooler").
		WithPorts(
			port(s.traits.App, s.traits.Ports.Client), port("pause", s.traits.Ports.Pause),
			port("health", s.traits.Ports.Health), port(portMetrics, s.traits.Ports.PoolerMetrics),
		).
		WithEnv(env...).
		WithResources(applycorev1.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: *r.CPU, corev1.ResourceMemory: *r.Memory}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: *r.Memory})).
		WithLivenessProbe(s.probe("/livez", 10, 5, 6)).
		WithReadinessProbe(s.probe("/readyz", 2, 2, 3)).
		WithVolumeMounts(
			mount(volumeTLS, "/run/capstan", false),
			mount(volumeTmp, "/tmp", false),
			mount(volumeConfig, "/etc/capstan/config", true),
			mount(volumeMembers, "/etc/capstan/tls/members", true),
			mount(volumeServer, "/etc/capstan/tls/server", true),
		))
}

// poolerNetworkPolicy lets clients reach poolers, members ask them to wait, and what scrapes metrics measure them. They
// themselves reach members and name servers only: they are what strangers talk to.
func (s *cluster) poolerNetworkPolicy() *applynetworkingv1.NetworkPolicyApplyConfiguration {
	members := applynetworkingv1.NetworkPolicyPeer().WithPodSelector(s.everyMember())
	rules := []*compose.IngressRule{ingress(s.traits.Ports.Pause, members)}
	// Without any peer it would be everybody.
	if peers := append(s.clients(), s.outside()...); len(peers) > 0 {
		rules = append(rules, ingress(s.traits.Ports.Client, peers...))
	}
	if ns := s.Settings.Database.MetricsNamespaces; s.exports() && len(ns) > 0 {
		rules = append(rules, ingress(s.traits.Ports.PoolerMetrics, compose.PodsOf(ns)...))
	}
	return applynetworkingv1.NetworkPolicy(s.called(suffixPooler), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(s.poolerSelector())).
			WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
			WithIngress(rules...).
			WithEgress(
				applynetworkingv1.NetworkPolicyEgressRule().WithTo(members).WithPorts(at(corev1.ProtocolTCP, s.traits.Ports.Client)),
				toNameServers(),
			))
}

// at a port of a protocol.
func at(protocol corev1.Protocol, number int32) *applynetworkingv1.NetworkPolicyPortApplyConfiguration {
	return applynetworkingv1.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(number))
}

// toNameServers lets pods ask for names.
func toNameServers() *applynetworkingv1.NetworkPolicyEgressRuleApplyConfiguration {
	return applynetworkingv1.NetworkPolicyEgressRule().WithPorts(
		at(corev1.ProtocolUDP, portDNS), at(corev1.ProtocolTCP, portDNS),
		at(corev1.ProtocolUDP, portDNSBehind), at(corev1.ProtocolTCP, portDNSBehind))
}

// poolerPeers reach the members' server.
func (s *cluster) poolerPeers() []*compose.Peer {
	if !s.pooled() {
		return nil
	}
	return []*compose.Peer{applynetworkingv1.NetworkPolicyPeer().WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(s.poolerSelector()))}
}

// poolerEndpoint is host and port of the poolers.
func (s *cluster) poolerEndpoint() string {
	if !s.pooled() || s.Observed[namePoolerService] == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", s.host(suffixPooler), s.traits.Ports.Client)
}
