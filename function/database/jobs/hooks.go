// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/hooks"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/network"
	"github.com/capstan-dev/capstan/function/database/pods"
)

// Hooks around a change and for Signals: their Jobs, their network policy, and what is remembered of a change.
func Hooks(d *compose.Draft, s *decision.Decision) {
	desired, ended := map[string]bool{}, maps.Clone(s.Hooks.Ended)
	around := s.Hooks.Change != "" && !s.Hooks.Over
	if around {
		for _, st := range hooks.Steps(s.Cluster, s.Hooks) {
			if st.Done() {
				ended[st.ID] = st.State
			}
			desired[st.ID] = true
		}
		d.Require(names.Hooks, hookMemory(s, ended))
	} else {
		d.Remove(names.Hooks)
	}
	if signalled := forSignalHooks(d, s.Cluster); around || signalled {
		d.Require(names.HooksNetworkPolicy, hookNetworkPolicy(s.Cluster))
	} else {
		d.Remove(names.HooksNetworkPolicy)
	}
	for id := range desired {
		d.Keep(names.HookPrefix + id) // The template of a Job cannot be changed.
	}
	removeOthers(d, s.Cluster, names.HookPrefix, desired)
	if st := s.Hooks.Start; st != nil {
		d.Offer(names.HookPrefix+st.ID, hookRun(s.Cluster, st.ID, st.DatabaseHook))
	}
}

// forSignalHooks composes a Job for each run of a hook that a Signal named, once. It stays for its log while the status has its Signal.
func forSignalHooks(d *compose.Draft, s *facts.Cluster) (some bool) {
	stay := map[string]bool{}
	for _, h := range s.SignalHooks() {
		for _, r := range s.HookRuns.Begun(h.Name) {
			id := hooks.SignalID(r.Hook.Key)
			stay[id] = true
			if s.Observed[names.SignalHookPrefix+id] == nil && r.Hook.Object == "" && r.Hook.Result == v1alpha1.HookResultRunning {
				d.Offer(names.SignalHookPrefix+id, hookRun(s, id, h))
			} else {
				d.Keep(names.SignalHookPrefix + id)
			}
		}
	}
	removeOthers(d, s, names.SignalHookPrefix, stay)
	return len(stay) > 0
}

// hookMemory is what is remembered.
func hookMemory(s *decision.Decision, ended map[string]v1alpha1.HookState) compose.Named {
	texts := make([]string, 0, len(ended))
	for _, id := range compose.SortedKeys(ended) {
		texts = append(texts, id+"="+string(ended[id]))
	}
	return applycorev1.ConfigMap(s.Called(names.Hooks), s.Namespace).
		WithLabels(s.Labels()).
		WithData(map[string]string{
			hooks.KeyHookChange: s.Hooks.Change, hooks.KeyHookBegun: s.Hooks.Begun,
			hooks.KeyHookAfter: strconv.FormatBool(s.Hooks.After), hooks.KeyHookEnded: strings.Join(texts, " "),
		})
}

// hookRun is the Job of a hook. It has one pod, and another one only when the first was evicted: a hook that failed does not run
// again.
func hookRun(s *facts.Cluster, id string, h v1alpha1.DatabaseHook) compose.Named {
	env := func(name, value string) *applycorev1.EnvVarApplyConfiguration {
		return pods.Env("CAPSTAN_HOOK_"+name, pods.Verbatim(value))
	}
	var volumes []*applycorev1.VolumeApplyConfiguration
	c := applycorev1.Container().
		WithName("hook").
		WithImage(s.Image.Name).
		WithCommand(pods.MemberProgram, "hook").
		WithEnv(env("TIMEOUT", h.Timeout.Duration.String())).
		WithResources(pods.Resources(resource.MustParse("10m"), resource.MustParse("32Mi"), resource.MustParse("128Mi")))
	if h.SQL != nil {
		consumer, _ := s.HookConsumer(h)
		c.WithEnv(env("SQL", h.SQL.Statement)).WithVolumeMounts(pods.Mount(names.VolumeHook, members.FolderConnection, true))
		volumes = append(volumes, pods.SecretVolume(names.VolumeHook, s.Called(consumer.Name)))
	} else {
		c.WithEnv(env("URL", h.HTTP.URL), env("METHOD", h.HTTP.Method))
		if h.HTTP.ExpectedStatus != 0 {
			c.WithEnv(env("EXPECTED_STATUS", strconv.Itoa(int(h.HTTP.ExpectedStatus))))
		}
	}
	labels := s.OtherPods()[names.PodsHook]
	return once(s, s.HookJob(id), jobSpec(podOf(s, c, volumes...), labels, 0, hooks.Deadline(h)).
		WithPodReplacementPolicy(batchv1.Failed).
		WithPodFailurePolicy(unlessEvicted()))
}

// hookNetworkPolicy lets no client reach hooks, and hooks only what they need: name servers, members if one runs SQL, and the
// destinations of their requests, as far as a policy can express them.
func hookNetworkPolicy(s *facts.Cluster) compose.Named {
	rules := []*network.EgressRule{network.ToNameServers()}
	if len(network.HookPeers(s)) > 0 {
		rules = append(rules, network.To(network.Members(s), s.Traits.Ports.Client))
	}
	all, seen := s.AllHooks(), map[string]bool{}
	for _, field := range compose.SortedKeys(all) {
		h := all[field]
		if h.HTTP == nil {
			continue
		}
		if d, ok := destinationOf(h.HTTP.URL, s.Namespace); ok && !seen[d.String()] {
			seen[d.String()] = true
			rules = append(rules, d.rule())
		}
	}
	return network.NewPolicy(&s.Names, names.Hooks, map[string]string{names.LabelHookOf: s.Name}, nil, rules...)
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

// rule for a destination. It allows every port of a namespace: a policy matches ports of pods, and a Service may have other ports.
func (d destination) rule() *network.EgressRule {
	switch {
	case d.address.IsValid():
		return network.To(network.Addresses(netip.PrefixFrom(d.address, d.address.BitLen()).String()), d.port)
	case d.namespace != "":
		return network.To(applynetworkingv1.NetworkPolicyPeer().WithNamespaceSelector(compose.Namespace(d.namespace)))
	default:
		return applynetworkingv1.NetworkPolicyEgressRule().WithPorts(network.Port(corev1.ProtocolTCP, d.port))
	}
}
