// SPDX-License-Identifier: Apache-2.0

package database

import (
	"net"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/postgres"
)

// nameExternal within the composition.
const nameExternal = "external"

const suffixExternal = "external"

func (s *state) exposed() bool { return s.spec.Expose != nil }

func checkExpose(s *state) []check.Problem {
	e := s.spec.Expose
	if e == nil {
		return nil
	}

	var ps []check.Problem

	if len(e.SourceRanges) == 0 {
		ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.expose.sourceRanges: must have the ranges of addresses that may connect, for instance 203.0.113.0/24"})
	}

	for i, r := range e.SourceRanges {
		if p, err := netip.ParsePrefix(string(r)); err != nil || p != p.Masked() {
			ps = append(ps, check.Invalid("spec.expose.sourceRanges["+strconv.Itoa(i)+"]", string(r),
				"must be a range of addresses without bits behind it, for instance 203.0.113.0/24"))
		}
	}

	if errs := validation.IsDNS1123Subdomain(e.Hostname); e.Hostname != "" && len(errs) > 0 {
		ps = append(ps, check.Invalid("spec.expose.hostname", e.Hostname, check.Because(errs)))
	}

	return ps
}

// external Service by which clients outside the cluster come: to the poolers, or to
// the leader. The address that they come from is kept, so that the network policy
// can hold to it.
func external(s *state) error {
	if !s.exposed() {
		s.letGo(nameExternal)
		return nil
	}

	selector := s.selector()
	selector[observev1alpha1.LabelRole] = observev1alpha1.RoleLabelLeader

	if s.pooled() {
		selector = s.poolerSelector()
	}

	spec := applycorev1.ServiceSpec().
		WithType(corev1.ServiceTypeLoadBalancer).
		WithExternalTrafficPolicy(corev1.ServiceExternalTrafficPolicyLocal).
		WithSelector(selector).
		WithPorts(applycorev1.ServicePort().
			WithName("postgres").
			WithProtocol(corev1.ProtocolTCP).
			WithPort(postgres.PortPostgres).
			WithTargetPort(intstr.FromString("postgres")))

	for _, r := range s.spec.Expose.SourceRanges {
		spec.WithLoadBalancerSourceRanges(string(r))
	}

	// Not the label of the members, whose Services are scraped.
	s.ask(nameExternal, applycorev1.Service(s.called(suffixExternal), s.namespace).
		WithLabels(map[string]string{labelName: "postgres", labelInstance: s.name, labelManagedBy: "capstan"}).
		WithSpec(spec))

	return nil
}

// outside are those whom spec.expose lets in.
func (s *state) outside() []*peer {
	if !s.exposed() {
		return nil
	}

	peers := make([]*peer, 0, len(s.spec.Expose.SourceRanges))
	for _, r := range s.spec.Expose.SourceRanges {
		peers = append(peers, applynetworkingv1.NetworkPolicyPeer().WithIPBlock(applynetworkingv1.IPBlock().WithCIDR(string(r))))
	}

	return peers
}

// assigned address of the load balancer, a name or an IP address, or nothing.
func (s *state) assigned() string {
	o := s.Observed[nameExternal]
	if o == nil || !s.exposed() {
		return ""
	}

	for _, v := range compose.List(o.Map(), "status", "loadBalancer", "ingress") {
		at, _ := v.(map[string]any)
		for _, key := range []string{"ip", "hostname"} {
			if text := compose.Text(at, key); text != "" {
				return text
			}
		}
	}

	return ""
}

// externalHost that clients outside connect to, or nothing as long as there is none.
func (s *state) externalHost() string {
	address := s.assigned()
	if address != "" && s.spec.Expose.Hostname != "" {
		return s.spec.Expose.Hostname
	}

	return address
}

// externalEndpoint is host and port of that.
func (s *state) externalEndpoint() string {
	if host := s.externalHost(); host != "" {
		return net.JoinHostPort(host, strconv.Itoa(postgres.PortPostgres))
	}

	return ""
}

// forOutside is a certificate that is for what clients outside connect to as well.
func (s *state) forOutside(c certificateSpec) certificateSpec {
	if !s.exposed() {
		return c
	}

	if name := s.spec.Expose.Hostname; name != "" {
		c.DNSNames = append(c.DNSNames, name)
	}

	address := s.assigned()
	if address == "" || address == s.spec.Expose.Hostname {
		return c
	}

	if _, err := netip.ParseAddr(address); err == nil {
		c.IPAddresses = append(c.IPAddresses, address)
	} else {
		c.DNSNames = append(c.DNSNames, address)
	}

	return c
}

// reachable tells whether clients outside have an address.
func reachable(s *state) error {
	switch {
	case !s.exposed():
	case s.assigned() == "":
		s.tell(v1alpha1.TypeExposed, corev1.ConditionFalse, v1alpha1.ReasonAddressPending,
			"the load balancer has no address yet: if that lasts, see the events of Service "+s.called(suffixExternal)+
				"; a cluster needs a controller of load balancers for it. Clients inside the cluster do not depend on it")
	case s.spec.Expose.Hostname != "" && s.assigned() != s.spec.Expose.Hostname:
		s.tell(v1alpha1.TypeExposed, corev1.ConditionTrue, v1alpha1.ReasonAddressAssigned,
			"clients outside the cluster connect to "+s.externalEndpoint()+", which has to lead to "+s.assigned())
	default:
		s.tell(v1alpha1.TypeExposed, corev1.ConditionTrue, v1alpha1.ReasonAddressAssigned, "clients outside the cluster connect to "+s.externalEndpoint())
	}

	return nil
}
