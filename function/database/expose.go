// SPDX-License-Identifier: Apache-2.0

package database

import (
	"net"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// nameExternal within the composition.
const nameExternal = "external"

const suffixExternal = "external"

func (s *cluster) exposed() bool { return s.spec.Expose != nil }

// external Service by which clients outside the cluster come: to the poolers, or to the leader. The address that they come from
// is kept, so that the network policy can hold to it.
func external(d *compose.Draft, s *cluster) {
	if !s.exposed() {
		d.Remove(nameExternal)
		return
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
			WithName(s.traits.App).
			WithProtocol(corev1.ProtocolTCP).
			WithPort(s.traits.Ports.Client).
			WithTargetPort(intstr.FromString(s.traits.App)))
	for _, r := range s.spec.Expose.SourceRanges {
		spec.WithLoadBalancerSourceRanges(string(r))
	}
	// Not the label of the members, whose Services are scraped.
	d.Require(nameExternal, applycorev1.Service(s.called(suffixExternal), s.namespace).
		WithLabels(map[string]string{labelName: s.traits.App, labelInstance: s.name, labelManagedBy: "capstan"}).
		WithSpec(spec))
}

// outside are those whom spec.expose lets in.
func (s *cluster) outside() []*compose.Peer {
	if !s.exposed() {
		return nil
	}
	peers := make([]*compose.Peer, 0, len(s.spec.Expose.SourceRanges))
	for _, r := range s.spec.Expose.SourceRanges {
		peers = append(peers, applynetworkingv1.NetworkPolicyPeer().WithIPBlock(applynetworkingv1.IPBlock().WithCIDR(string(r))))
	}
	return peers
}

// assigned address of the load balancer, a name or an IP address, or nothing.
func (s *cluster) assigned() string {
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
func (s *cluster) externalHost() string {
	address := s.assigned()
	if address != "" && s.spec.Expose.Hostname != "" {
		return s.spec.Expose.Hostname
	}
	return address
}

// externalEndpoint is host and port of that.
func (s *cluster) externalEndpoint() string {
	if host := s.externalHost(); host != "" {
		return net.JoinHostPort(host, strconv.Itoa(int(s.traits.Ports.Client)))
	}
	return ""
}

// withExternalNames is a certificate that is for what clients outside connect to as well.
func (s *cluster) withExternalNames(c certificateSpec) certificateSpec {
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

// exposedCondition reports whether clients outside have an address.
func exposedCondition(s *state) xpv2.Condition {
	switch {
	case !s.exposed():
		return xpv2.Condition{}
	case s.assigned() == "":
		return no(v1alpha1.ReasonAddressPending,
			"the load balancer has no address yet: if that lasts, see the events of Service "+s.called(suffixExternal)+
				"; a cluster needs a controller of load balancers for it. Clients inside the cluster do not depend on it")
	case s.spec.Expose.Hostname != "" && s.assigned() != s.spec.Expose.Hostname:
		return yes(v1alpha1.ReasonAddressAssigned, "clients outside the cluster connect to "+s.externalEndpoint()+", which has to lead to "+s.assigned())
	default:
		return yes(v1alpha1.ReasonAddressAssigned, "clients outside the cluster connect to "+s.externalEndpoint())
	}
}
