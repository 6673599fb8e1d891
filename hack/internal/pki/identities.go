// SPDX-License-Identifier: Apache-2.0

package pki

import "fmt"

// Identities are all the certificates that a control plane starts with.
type Identities struct {
	// Cluster signs servers and clients; FrontProxy signs only what the API server shows to aggregated API servers.
	Cluster, FrontProxy *Authority
	// Tokens signs service account tokens.
	Tokens Pair

	// APIServer serves; KubeletClient and FrontProxyClient are what it shows to kubelets and aggregated API servers.
	APIServer, KubeletClient, FrontProxyClient Pair
	// Clients of the API server.
	Admin, ControllerManager, Scheduler, KubeProxy, KubeRouter, Storage Pair
}

// NodeIdentity is what a kubelet serves with and shows to the API server.
type NodeIdentity struct {
	Server, Client Pair
}

// NewIdentities issues everything for an API server that answers to these names and addresses.
func NewIdentities(names, addresses []string) (*Identities, error) {
	id := &Identities{}
	var err error
	if id.Cluster, err = NewAuthority("capstan"); err != nil {
		return nil, err
	}
	if id.FrontProxy, err = NewAuthority("capstan-front-proxy"); err != nil {
		return nil, err
	}
	if id.Tokens, err = NewTokenKeys(); err != nil {
		return nil, err
	}
	for _, c := range []struct {
		into *Pair
		by   *Authority
		req  Request
	}{
		{&id.APIServer, id.Cluster, Request{User: "kube-apiserver", Names: names, Addresses: addresses}},
		{&id.KubeletClient, id.Cluster, Request{User: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}}},
		{&id.FrontProxyClient, id.FrontProxy, Request{User: FrontProxyUser}},
		{&id.Admin, id.Cluster, Request{User: "capstan:admin", Groups: []string{"system:masters"}}},
		{&id.ControllerManager, id.Cluster, Request{User: "system:kube-controller-manager"}},
		{&id.Scheduler, id.Cluster, Request{User: "system:kube-scheduler"}},
		{&id.KubeProxy, id.Cluster, Request{User: "system:kube-proxy"}},
		{&id.KubeRouter, id.Cluster, Request{User: KubeRouterUser}},
		{&id.Storage, id.Cluster, Request{User: StorageUser}},
	} {
		if *c.into, err = c.by.Issue(c.req); err != nil {
			return nil, err
		}
	}
	return id, nil
}

// FrontProxyUser is the only client that aggregated API servers believe when it speaks for others.
const FrontProxyUser = "front-proxy-client"

// KubeRouterUser is the user that enforces network policies.
const KubeRouterUser = "capstan:kube-router"

// StorageUser is the user that makes volumes of the class that grows, and lets them grow.
const StorageUser = "capstan:storage"

// Node issues what a node of this name and address needs.
func (id *Identities) Node(name, address string) (NodeIdentity, error) {
	client, err := id.Cluster.Issue(Request{User: "system:node:" + name, Groups: []string{"system:nodes"}})
	if err != nil {
		return NodeIdentity{}, fmt.Errorf("cannot identify node %q: %w", name, err)
	}
	server, err := id.Cluster.Issue(Request{
		User: "system:node:" + name, Groups: []string{"system:nodes"},
		Names: []string{name}, Addresses: []string{address},
	})
	if err != nil {
		return NodeIdentity{}, fmt.Errorf("cannot identify node %q: %w", name, err)
	}
	return NodeIdentity{Server: server, Client: client}, nil
}
