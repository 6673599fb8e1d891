// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/measure"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
)

// service is where clients reach the Algorithm: the pods of the live slot, so that nothing reaches a revision under test by way
// of it. While the Algorithm sleeps or wakes it is the activator. Only where no Gateway sends a share of requests to that one by weight, the Service does by the number of pods. It names
// the port of the pods instead of numbering it, so that it is right for every revision.
func service(d *compose.Draft, p *pass) {
	selector := p.SlotPods(p.decision.Ledger.Slot)
	switch {
	case p.sleep.Activated():
		selector = p.ActivatorPods()
	case p.decision.Pooled:
		selector = p.Pods()
	}
	annotations := map[string]string{names.AnnotationLedger: p.decision.Ledger.Text()}
	if p.sleep.State != "" {
		annotations[names.AnnotationSleep] = p.sleep.Text()
	}
	d.Require(names.Service, applycorev1.Service(p.Name, p.Namespace).
		WithLabels(p.Labels()).
		WithAnnotations(p.NoteSettings(annotations)).
		WithSpec(applycorev1.ServiceSpec().
			WithSelector(selector).
			WithPorts(p.servingPort())))
}

// slotServices are where a Gateway and Prometheus find the pods of a slot. Both exist or none, independent of what runs: a Service or
// backend that came and went with each revision would wake the Algorithm up several times for it, and its Gateway too.
func slotServices(d *compose.Draft, p *pass) {
	if p.spec.Route == nil && !p.measures() {
		return
	}
	for _, slot := range names.Slots {
		spec := applycorev1.ServiceSpec().WithSelector(p.SlotPods(slot)).WithPorts(p.servingPort())
		svc := applycorev1.Service(p.ServiceOf(slot), p.Namespace).WithLabels(p.SlotLabels(slot)).WithSpec(spec)
		if p.measures() {
			port := measure.Port(&p.spec)
			// For a Prometheus without its operator: the usual annotations.
			svc.WithAnnotations(map[string]string{
				"prometheus.io/scrape": "true",
				"prometheus.io/port":   strconv.Itoa(int(port)),
				"prometheus.io/path":   p.spec.Metrics.Path,
			})
			if measure.OwnPort(&p.spec) {
				spec.WithPorts(applycorev1.ServicePort().
					WithName(names.PortMetrics).
					WithProtocol(corev1.ProtocolTCP).
					WithPort(port).
					WithTargetPort(intstr.FromInt32(port)))
			}
		}
		d.Require(names.SlotService(slot), svc)
	}
}

// appProtocolGRPC is HTTP/2 without TLS. Gateways and meshes speak HTTP/1.1 with a Service that does not announce it.
const appProtocolGRPC = "kubernetes.io/h2c"

// servingPort of a Service. Its name is the same for every protocol, because pods of all revisions have it.
func (p *pass) servingPort() *applycorev1.ServicePortApplyConfiguration {
	port := applycorev1.ServicePort().
		WithName(names.PortHTTP).
		WithProtocol(corev1.ProtocolTCP).
		WithPort(servicePort).
		WithTargetPort(intstr.FromString(names.PortHTTP))
	if p.spec.Protocol == v1alpha1.ProtocolGRPC {
		port.WithAppProtocol(appProtocolGRPC)
	}
	return port
}

// servicePort is the port of every Service for clients.
const servicePort = 80

// endpoint for clients inside the cluster, as its Service is observed. A target of gRPC is no URL.
func (f *facts) endpoint(service compose.Object, name string) string {
	host := fmt.Sprintf("%s.%s.svc", name, f.Namespace)
	ports, _ := service.Field("spec", "ports").([]any)
	for _, v := range ports {
		port, _ := v.(map[string]any)
		if compose.Text(port, "appProtocol") == appProtocolGRPC {
			return fmt.Sprintf("%s:%d", host, servicePort)
		}
	}
	return "http://" + host
}

// networkPolicy lets clients reach the one port that they use, what scrapes metrics the port of the metrics, and nothing else reach
// anything. A port is all or nothing: what may scrape metrics on the port of the clients may send requests as well. Probes come
// from the node and need no rule. What pods may call stays open: an Algorithm fetches models, features and licences from places
// that only its image knows, and a policy that guesses them breaks it.
func networkPolicy(d *compose.Draft, p *pass) {
	d.Require(names.NetworkPolicy, applynetworkingv1.NetworkPolicy(p.Name, p.Namespace).
		WithLabels(p.Labels()).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(p.Pods())).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(p.ingress()...)))
}

// ingress of the pods: the clients that spec.access lets in, by default every pod of the namespace, what serves the Gateway, and
// what scrapes metrics. The port of metrics goes by its number: it is no part of a revision, and so the pods have no name for it.
func (p *pass) ingress() []*compose.IngressRule {
	rules, serving := p.clients(), intstr.FromString(names.PortHTTP)
	if p.activated() && p.spec.Access != nil {
		rules = append(rules, compose.Ingress(serving, compose.NewPeer("", p.ActivatorPods())))
	}
	if ns := p.Settings.Algorithm.MetricsNamespaces; p.measures() && len(ns) > 0 {
		port := serving
		if measure.OwnPort(&p.spec) {
			port = intstr.FromInt32(measure.Port(&p.spec))
		}
		rules = append(rules, compose.Ingress(port, compose.PodsOf(ns)...))
	}
	return rules
}

// clients that may send requests.
func (p *pass) clients() []*compose.IngressRule {
	var rules []*compose.IngressRule
	serving := intstr.FromString(names.PortHTTP)
	from := []v1alpha1.Client{{}}
	if p.spec.Access != nil {
		from = *p.spec.Access
	}
	peers := make([]*compose.Peer, 0, len(from))
	for _, c := range from {
		peers = append(peers, compose.NewPeer(c.Namespace, c.PodLabels))
	}
	if p.hasJobs() && p.spec.Access != nil {
		peers = append(peers, applynetworkingv1.NetworkPolicyPeer().WithPodSelector(
			applymetav1.LabelSelector().WithMatchLabels(map[string]string{names.LabelHookOf: p.Name})))
	}
	if len(peers) > 0 {
		rules = append(rules, compose.Ingress(serving, peers...))
	}
	if g := p.rollout.Gateway; g.Name != "" {
		gateways := p.Settings.Algorithm.GatewayNamespaces
		if len(gateways) == 0 {
			gateways = []string{g.Namespace}
		}
		rules = append(rules, compose.Ingress(serving, compose.PodsOf(gateways)...))
	}
	return rules
}
