// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/pki"
	"github.com/capstan-dev/capstan/hack/internal/xfs"
)

const growingStorageTimeout = 90 * time.Second

// growingStorage is a StorageClass whose volumes have the requested size, and grow while they are used. Its driver and the
// official sidecars run beside the kubelets and the control plane.
type growingStorage struct{}

func (growingStorage) Name() string { return "storage that grows" }

func (growingStorage) Tools() []string { return []string{"csi", "xfsdriver"} }

func (growingStorage) Apply(ctx context.Context, env *Env) error {
	return env.Apply(ctx, "storage-xfs.yaml", map[string]any{
		"User": pki.StorageUser, "Driver": xfs.Driver, "Class": xfs.Class,
	})
}

// WaitReady waits until every kubelet has reported that it knows the driver: no pod with such a volume is scheduled before.
func (growingStorage) WaitReady(ctx context.Context, env *Env) error {
	ctx, cancel := context.WithTimeout(ctx, growingStorageTimeout)
	defer cancel()
	for {
		out, err := env.Kubectl(ctx, "get", "csinodes", "--output=jsonpath={.items[*].spec.drivers[*].name}")
		if err == nil && strings.Count(out, xfs.Driver) >= len(env.Nodes) {
			return nil
		}
		if sleep(ctx, 250*time.Millisecond) != nil {
			return fmt.Errorf("cannot see the driver %s on every node: it is on %q (%w): see the logs xfsdriver and kubelet", xfs.Driver, out, err)
		}
	}
}
