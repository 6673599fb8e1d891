// SPDX-License-Identifier: Apache-2.0

// Package network knows the addresses of an embedded cluster and lays its cables.
package network

import (
	"fmt"
	"net/netip"
)

// MaxNodes is the number of nodes that have a letter.
const MaxNodes = 3

// The addresses come from the range for benchmarks (RFC 2544), which no real network routes. Each cluster lives in
// namespaces of its own, so all clusters use the same ones. Nodes are outside the pod range on purpose: kube-proxy takes
// every address inside it for a pod.
const (
	// ControlPlane is the address of the API server and of the registry.
	ControlPlane = "198.18.3.1"
	// Nodes is the network that connects the nodes with the control plane.
	Nodes = "198.18.3.0/24"
	// Pods holds one /24 for each node.
	Pods = "198.19.0.0/17"
	// Services is the service range; its first address is the Service kubernetes.
	Services = "198.19.128.0/17"
	// KubernetesService is the first address of Services.
	KubernetesService = "198.19.128.1"
	// DNS is the address of the Service kube-dns.
	DNS = "198.19.128.10"
)

// A Node is one node's share of the network.
type Node struct {
	// Letter names the node and its zone: a, b or c.
	Letter string
	// Address in Nodes.
	Address netip.Addr
	// Pods is the node's /24.
	Pods netip.Prefix
}

// Plan returns the first n nodes. It is an error to ask for less than one or more than MaxNodes.
func Plan(n int) ([]Node, error) {
	if n < 1 || n > MaxNodes {
		return nil, fmt.Errorf("cannot plan %d nodes: a cluster has 1 to %d", n, MaxNodes)
	}
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{
			Letter:  string(rune('a' + i)),
			Address: netip.AddrFrom4([4]byte{198, 18, 3, byte(11 + i)}),
			Pods:    netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 19, byte(1 + i), 0}), 24),
		}
	}
	return nodes, nil
}
