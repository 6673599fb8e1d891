// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/netns"
	"github.com/capstan-dev/capstan/hack/internal/node"
	"github.com/capstan-dev/capstan/hack/internal/pki"
)

const policyTimeout = 90 * time.Second

// networkPolicy lets the enforcer that runs on every node, kube-router's firewall, read what it enforces. Without it
// no NetworkPolicy would be enforced.
type networkPolicy struct{}

func (networkPolicy) Name() string { return "network policies" }

func (networkPolicy) Tools() []string { return []string{"kube-router"} }

func (networkPolicy) Apply(ctx context.Context, env *Env) error {
	return env.Apply(ctx, "network-policy.yaml", map[string]any{"User": pki.KubeRouterUser})
}

// WaitReady asks each node's enforcer, which is well once its first synchronisation is done.
func (networkPolicy) WaitReady(ctx context.Context, env *Env) error {
	ctx, cancel := context.WithTimeout(ctx, policyTimeout)
	defer cancel()
	for _, n := range env.Nodes {
		addr := fmt.Sprintf("%s:%d", n.Address, node.PolicyPort)
		client := &http.Client{Transport: &http.Transport{DialContext: netns.Dialer(env.Namespace, addr)}}
		for {
			err := get(ctx, client, "http://"+addr+"/healthz")
			if err == nil {
				break
			}
			if sleep(ctx, 250*time.Millisecond) != nil {
				return fmt.Errorf("cannot see policies enforced on node %q: %w", n.Letter, err)
			}
		}
	}
	return nil
}
