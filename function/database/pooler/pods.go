// SPDX-License-Identifier: Apache-2.0

package pooler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/network"
	"github.com/capstan-dev/capstan/function/database/objects"
	"github.com/capstan-dev/capstan/function/database/pods"
	"github.com/capstan-dev/capstan/function/placement"
)

const containerPooler = "pooler"

// poolerGraceSeconds is how long a pooler may take to end: half a minute for its clients to leave by themselves, and some for
// transactions.
const poolerGraceSeconds = 60

// poolerRevision names all of the spec and the platform's settings that reaches the pods of poolers. The version of this function
// is not in it: another one alone restarts no pooler.
func poolerRevision(s *facts.Cluster) string {
	p := s.Spec.Pooler
	e := map[string]any{
		"image":  s.Image.Pinned,
		"cpu":    facts.Canonical(*p.Resources.CPU),
		"memory": facts.Canonical(*p.Resources.Memory),
	}
	if s.PlatformSigned() {
		e["server"] = true
	}
	if len(s.Spec.ImagePullSecrets) > 0 {
		e["pullSecrets"] = s.PullSecrets()
	}
	if s.LogsJSON() {
		e["logs"] = v1alpha1.LogJSON
	}
	if sc := s.Scheduling(); !placement.IsEmpty(sc) {
		e["pod"] = sc
	}
	if a := s.NodeAffinity(); a != nil {
		e["nodeAffinity"] = a
	}
	return encoding.Hash(e)
}

// poolers that there should be now.
func poolerReplicas(s *facts.Cluster) int32 {
	if s.Asleep() {
		return 0
	}
	return *s.Spec.Pooler.Replicas
}

// deployment of the spec. One that has its revision already stays as it is, except for its size.
func (p Set) deployment(s *facts.Cluster) compose.Named {
	revision := poolerRevision(s)
	if o := s.Observed[p.Deployment]; o != nil && compose.Text(o.Map(), "metadata", "annotations", names.AnnotationRevision) == revision {
		return objects.With(compose.Keep(o), nil, map[string]any{"replicas": int64(poolerReplicas(s))})
	}
	return applyappsv1.Deployment(s.Called(p.Suffix), s.Namespace).
		WithLabels(p.labels(&s.Names)).
		WithAnnotations(map[string]string{names.AnnotationRevision: revision}).
		WithSpec(applyappsv1.DeploymentSpec().
			WithReplicas(poolerReplicas(s)).
			WithRevisionHistoryLimit(2).
			WithStrategy(applyappsv1.DeploymentStrategy().WithRollingUpdate(applyappsv1.RollingUpdateDeployment().
				WithMaxSurge(intstr.FromInt32(1)).
				WithMaxUnavailable(intstr.FromInt32(0)))).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(p.selector(&s.Names))).
			WithTemplate(p.template(s)))
}

// template satisfies the Pod Security Standard "restricted". A pooler connects only to members, and has no account.
func (p Set) template(s *facts.Cluster) *applycorev1.PodTemplateSpecApplyConfiguration {
	over := func(key string) *applycorev1.TopologySpreadConstraintApplyConfiguration {
		return applycorev1.TopologySpreadConstraint().
			WithMaxSkew(1).
			WithTopologyKey(key).
			// One that shares a node is better than none.
			WithWhenUnsatisfiable(corev1.ScheduleAnyway).
			WithMatchLabelKeys("pod-template-hash").
			WithLabelSelector(applymetav1.LabelSelector().WithMatchLabels(p.selector(&s.Names)))
	}
	pod := pods.HardenedPod(s).
		WithTerminationGracePeriodSeconds(poolerGraceSeconds).
		WithTolerations(pods.Lost(corev1.TaintNodeNotReady), pods.Lost(corev1.TaintNodeUnreachable)).
		WithTopologySpreadConstraints(over(corev1.LabelTopologyZone), over(corev1.LabelHostname)).
		WithContainers(p.container(s)).
		WithVolumes(
			pods.EmptyVolume(names.VolumeTLS, resource.MustParse("4Mi"), corev1.StorageMediumMemory),
			pods.EmptyVolume(names.VolumeTmp, resource.MustParse("16Mi"), ""),
			pods.ConfigVolume(names.VolumeConfig, s.Called(p.Suffix)),
			pods.SecretVolume(names.VolumeMembers, s.Called(p.certificate)),
			pods.SecretVolume(names.VolumeServer, p.secret(s)),
		)
	return applycorev1.PodTemplateSpec().WithLabels(p.labels(&s.Names)).WithSpec(pod)
}

func (p Set) container(s *facts.Cluster) *applycorev1.ContainerApplyConfiguration {
	env := []*applycorev1.EnvVarApplyConfiguration{pods.Env(p.variable, s.Host(p.members))}
	if p.members == names.SuffixRO {
		// Connections to a standby end when it is the leader.
		env = append(env, pods.Env(Writers.variable, s.Host(Writers.members)))
	}
	if s.PlatformSigned() {
		env = append(env, pods.Env("CAPSTAN_SERVER_AUTHORITY", "true"))
	}
	r := s.Spec.Pooler.Resources
	return pods.Hardened(applycorev1.Container().
		WithName(containerPooler).
		WithImage(s.Image.Name).
		WithCommand(pods.MemberProgram).
		WithArgs("pooler").
		WithPorts(
			pods.Port(s.Traits.App, s.Traits.Ports.Client), pods.Port("pause", s.Traits.Ports.Pause),
			pods.Port("health", s.Traits.Ports.Health), pods.Port(names.PortMetrics, s.Traits.Ports.PoolerMetrics),
		).
		WithEnv(env...).
		WithEnv(pods.Logs(s)...).
		WithResources(pods.Resources(*r.CPU, *r.Memory, *r.Memory)).
		WithLivenessProbe(pods.Probe(&s.Names, "/livez", 10, 5, 6)).
		WithReadinessProbe(pods.Probe(&s.Names, "/readyz", 2, 2, 3)).
		WithVolumeMounts(
			pods.Mount(names.VolumeTLS, "/run/capstan", false),
			pods.Mount(names.VolumeTmp, "/tmp", false),
			pods.Mount(names.VolumeConfig, "/etc/capstan/config", true),
			pods.Mount(names.VolumeMembers, "/etc/capstan/tls/members", true),
			pods.Mount(names.VolumeServer, "/etc/capstan/tls/server", true),
		))
}

// networkPolicy lets clients reach poolers, members pause them, and Prometheus scrape them. Poolers themselves
// reach members and name servers only, because untrusted clients connect to them.
func (p Set) networkPolicy(s *facts.Cluster) *applynetworkingv1.NetworkPolicyApplyConfiguration {
	members := network.Members(s)
	rules := []*compose.IngressRule{network.Ingress(s.Traits.Ports.Pause, members)}
	// A rule without peers would admit all traffic.
	if peers := p.clients(s); len(peers) > 0 {
		rules = append(rules, network.Ingress(s.Traits.Ports.Client, peers...))
	}
	if ns := s.Settings.Database.MetricsNamespaces; s.Exports() && len(ns) > 0 {
		rules = append(rules, network.Ingress(s.Traits.Ports.PoolerMetrics, compose.PodsOf(ns)...))
	}
	return network.NewPolicy(&s.Names, p.Suffix, p.selector(&s.Names), rules, network.To(members, s.Traits.Ports.Client), network.ToNameServers())
}

// clients that the set takes. Those outside the cluster reach the set before the leader.
func (p Set) clients(s *facts.Cluster) []*compose.Peer {
	if p.members == names.SuffixRW {
		return append(network.Clients(s), network.Outside(s)...)
	}
	return network.Clients(s)
}
