// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/capstan-dev/capstan/hack/internal/image"
	"github.com/capstan-dev/capstan/hack/internal/pki"
	"github.com/capstan-dev/capstan/hack/internal/xfs"
)

const snapshotsNamespace = "snapshots-system"

// snapshots of volumes of the StorageClass that grows: the official controller, and the official sidecar on each node. The client of their
// module has the definitions.
type snapshots struct{}

func (snapshots) Name() string { return "snapshots" }

func (snapshots) Tools() []string { return []string{"snapshotter"} }

func (snapshots) Apply(ctx context.Context, env *Env) error {
	source, err := env.Builder.DependencyDir(ctx, "snapshotter", "github.com/kubernetes-csi/external-snapshotter/client/v8")
	if err != nil {
		return err
	}
	var definitions []string
	for _, plural := range []string{"volumesnapshotclasses", "volumesnapshotcontents", "volumesnapshots"} {
		definitions = append(definitions, filepath.Join(source, "config", "crd", "snapshot.storage.k8s.io_"+plural+".yaml"))
	}
	if err := env.Define(ctx, definitions...); err != nil {
		return err
	}
	controller, err := env.ImageAs(ctx, "snapshot-controller", "/snapshot-controller", "snapshotter", "snapshot-controller", image.Spec{User: "65532"})
	if err != nil {
		return err
	}
	sidecar, err := env.ImageAs(ctx, "csi-snapshotter", "/csi-snapshotter", "snapshotter", "csi-snapshotter", image.Spec{})
	if err != nil {
		return err
	}
	return env.Apply(ctx, "snapshots.yaml", map[string]any{
		"Controller": controller, "Sidecar": sidecar, "Socket": xfs.Socket, "Folder": filepath.Dir(xfs.Socket),
		"Driver": xfs.Driver, "Class": xfs.SnapshotClass, "User": pki.StorageUser,
	})
}

func (snapshots) WaitReady(ctx context.Context, env *Env) error {
	if err := env.Rollout(ctx, snapshotsNamespace, "snapshot-controller"); err != nil {
		return err
	}
	if _, err := env.Kubectl(ctx, "--namespace="+snapshotsNamespace, "rollout", "status", "daemonset/csi-snapshotter", "--timeout=90s"); err != nil {
		return fmt.Errorf("cannot see the sidecar of snapshots on each node: %w", err)
	}
	return nil
}
