// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

// labelHookOf is on the pods of hooks, which members find them by, and holds the name of the Database.
const labelHookOf = "capstan.dev/hook-of"

// volumeHook holds the Secret of the consumer that a hook runs SQL as.
const volumeHook = "connection"

// Times of hooks.
const (
	// hookGrace is how long a pod may take to be placed and to have its image, on top.
	hookGrace = 5 * time.Minute
)

// hookDeadline of the Job of a hook.
func hookDeadline(h v1alpha1.MaintenanceHook) time.Duration { return h.Timeout.Duration + hookGrace }

// allHooks of the spec, by field.
func (s *cluster) allHooks() map[string]v1alpha1.MaintenanceHook {
	all := map[string]v1alpha1.MaintenanceHook{}
	if s.spec.Maintenance == nil || s.spec.Maintenance.Hooks == nil {
		return all
	}
	for i, h := range s.spec.Maintenance.Hooks.Before {
		all[fmt.Sprintf("spec.maintenance.hooks.before[%d]", i)] = h
	}
	for i, h := range s.spec.Maintenance.Hooks.After {
		all[fmt.Sprintf("spec.maintenance.hooks.after[%d]", i)] = h
	}
	return all
}

func checkHooks(s *cluster) []check.Problem {
	var ps []check.Problem
	all := s.allHooks()
	for _, field := range compose.SortedKeys(all) {
		h := all[field]
		if h.SQL != nil {
			if _, ok := s.hookConsumer(h); !ok {
				ps = append(ps, check.Invalid(field+".sql.database", h.SQL.Database,
					"must be a database that one of spec.consumers reads and writes, because it is run as that consumer: add one, or name another database"))
			}
		} else if u, err := url.Parse(h.HTTP.URL); err != nil || u.Hostname() == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			ps = append(ps, check.Invalid(field+".http.url", h.HTTP.URL, "must be an http or https URL without a user"))
		}
	}
	return ps
}

// hookConsumer is who runs the SQL of a hook.
func (s *cluster) hookConsumer(h v1alpha1.MaintenanceHook) (v1alpha1.Consumer, bool) {
	i := slices.IndexFunc(s.spec.Consumers, func(c v1alpha1.Consumer) bool {
		return c.Database == h.SQL.Database && c.Access == v1alpha1.ConsumerReadWrite
	})
	if i < 0 {
		return v1alpha1.Consumer{}, false
	}
	return s.spec.Consumers[i], true
}

func (s *names) hookLabels() map[string]string {
	return map[string]string{labelName: s.traits.App + "-hook", labelInstance: s.name, labelManagedBy: "capstan", labelHookOf: s.name}
}

// verbatim text in an environment variable, in which Kubernetes would put the values of others in for $(…).
func verbatim(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// hookRun is the Job of a hook. It has one pod, and another one only when the first was evicted: what it did is not done again
// because it failed.
func (s *cluster) hookRun(st hookStep) compose.Named {
	env := func(name, value string) *applycorev1.EnvVarApplyConfiguration {
		return applycorev1.EnvVar().WithName("CAPSTAN_HOOK_" + name).WithValue(verbatim(value))
	}
	c := applycorev1.Container().
		WithName("hook").
		WithImage(s.image.name).
		WithCommand(memberProgram, "hook").
		WithEnv(env("TIMEOUT", st.Timeout.Duration.String())).
		WithResources(applycorev1.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}))
	pod := s.hardenedPod().
		WithRestartPolicy(corev1.RestartPolicyNever)
	if st.SQL != nil {
		consumer, _ := s.hookConsumer(st.MaintenanceHook)
		c.WithEnv(env("SQL", st.SQL.Statement)).WithVolumeMounts(mount(volumeHook, "/etc/capstan/connection", true))
		pod.WithVolumes(secretVolume(volumeHook, s.called(consumer.Name)))
	} else {
		c.WithEnv(env("URL", st.HTTP.URL), env("METHOD", st.HTTP.Method))
		if st.HTTP.ExpectedStatus != 0 {
			c.WithEnv(env("EXPECTED_STATUS", strconv.Itoa(int(st.HTTP.ExpectedStatus))))
		}
	}
	pod.WithContainers(hardened(c))
	return applybatchv1.Job(s.hookJob(st.id), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applybatchv1.JobSpec().
			WithBackoffLimit(0).
			WithActiveDeadlineSeconds(int64(hookDeadline(st.MaintenanceHook).Seconds())).
			WithPodReplacementPolicy(batchv1.Failed).
			WithPodFailurePolicy(applybatchv1.PodFailurePolicy().WithRules(applybatchv1.PodFailurePolicyRule().
				WithAction(batchv1.PodFailurePolicyActionIgnore).
				WithOnPodConditions(applybatchv1.PodFailurePolicyOnPodConditionsPattern().
					WithType(corev1.DisruptionTarget).WithStatus(corev1.ConditionTrue)))).
			WithTemplate(applycorev1.PodTemplateSpec().WithLabels(s.hookLabels()).WithSpec(pod)))
}

// hookPeers reach the members' server, whoever else may.
func (s *cluster) hookPeers() []*compose.Peer {
	for _, h := range s.allHooks() {
		if h.SQL != nil {
			return []*compose.Peer{applynetworkingv1.NetworkPolicyPeer().
				WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{labelHookOf: s.name}))}
		}
	}
	return nil
}

// hookNetworkPolicy lets nobody reach hooks, and hooks what they are for: name servers, members if one runs SQL, and where their
// requests go, as far as a policy can say it.
func (s *cluster) hookNetworkPolicy() compose.Named {
	rules := []*applynetworkingv1.NetworkPolicyEgressRuleApplyConfiguration{toNameServers()}
	if len(s.hookPeers()) > 0 {
		rules = append(rules, applynetworkingv1.NetworkPolicyEgressRule().
			WithTo(applynetworkingv1.NetworkPolicyPeer().WithPodSelector(s.everyMember())).
			WithPorts(at(corev1.ProtocolTCP, s.traits.Ports.Client)))
	}
	all, seen := s.allHooks(), map[string]bool{}
	for _, field := range compose.SortedKeys(all) {
		h := all[field]
		if h.HTTP == nil {
			continue
		}
		if d, ok := destinationOf(h.HTTP.URL, s.namespace); ok && !seen[d.String()] {
			seen[d.String()] = true
			rules = append(rules, d.rule())
		}
	}
	return applynetworkingv1.NetworkPolicy(s.called(nameHooks), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{labelHookOf: s.name})).
			WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
			WithEgress(rules...))
}

// A destination of a request: an address, a Service of the cluster, or, when neither is set, a name that may have any address.
type destination struct {
	address   netip.Addr
	namespace string
	port      int32
}

func (d destination) String() string { return fmt.Sprintf("%s %s %d", d.address, d.namespace, d.port) }

// destinationOf a URL. Names without a dot, and those that end in svc, are Services.
func destinationOf(text, own string) (destination, bool) {
	u, err := url.Parse(text)
	if err != nil {
		return destination{}, false
	}
	d := destination{port: map[string]int32{"http": 80, "https": 443}[u.Scheme]}
	if n, err := strconv.ParseInt(u.Port(), 10, 32); err == nil {
		d.port = int32(n)
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		d.address = a.Unmap()
		return d, true
	}
	parts := strings.Split(strings.TrimSuffix(host, ".cluster.local"), ".")
	switch {
	case len(parts) == 1:
		d.namespace = own
	case len(parts) == 3 && parts[2] == "svc":
		d.namespace = parts[1]
	}
	return d, true
}

// rule for a destination. The port of a Service is not that of its pods, which is what a policy goes by, so that of a namespace
// every port is reached.
func (d destination) rule() *applynetworkingv1.NetworkPolicyEgressRuleApplyConfiguration {
	r := applynetworkingv1.NetworkPolicyEgressRule()
	at := applynetworkingv1.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(d.port))
	switch {
	case d.address.IsValid():
		return r.WithTo(applynetworkingv1.NetworkPolicyPeer().WithIPBlock(applynetworkingv1.IPBlock().
			WithCIDR(netip.PrefixFrom(d.address, d.address.BitLen()).String()))).WithPorts(at)
	case d.namespace != "":
		return r.WithTo(applynetworkingv1.NetworkPolicyPeer().WithNamespaceSelector(compose.Namespace(d.namespace)))
	default:
		return r.WithPorts(at)
	}
}
