// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/mount-utils"
	"k8s.io/utils/exec"
)

// node mounts volumes of its node.
type node struct {
	csi.UnimplementedNodeServer

	disks disks
	name  string
	mount *mount.SafeFormatAndMount
}

func newNode(d disks, name string) *node {
	return &node{disks: d, name: name, mount: &mount.SafeFormatAndMount{Interface: mount.New(""), Exec: exec.New()}}
}

// NodeGetInfo returns which node this is, and that volumes are reached from nowhere else.
func (n *node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{
		NodeId: n.name, AccessibleTopology: &csi.Topology{Segments: map[string]string{topologyKey: n.name}},
	}, nil
}

// NodeGetCapabilities returns what a node does.
func (n *node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	resp := &csi.NodeGetCapabilitiesResponse{}
	for _, t := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
	} {
		resp.Capabilities = append(resp.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}},
		})
	}
	return resp, nil
}

// NodeStageVolume makes the file system of a volume, if it has none, and mounts it. mount attaches a loop device that goes with the
// last mount: nothing of it stays when the machine is killed.
func (n *node) NodeStageVolume(_ context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := supported([]*csi.VolumeCapability{req.GetVolumeCapability()}); err != nil {
		return nil, err
	}
	path, err := n.disks.path(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if _, err := n.disks.size(req.GetVolumeId()); err != nil {
		return nil, err
	}
	target := req.GetStagingTargetPath()
	mounted, err := n.prepare(target)
	if err != nil || mounted {
		return &csi.NodeStageVolumeResponse{}, err
	}
	// A volume that was filled from a snapshot has the name of the file system of the other.
	options := append([]string{"loop", "nouuid"}, req.GetVolumeCapability().GetMount().GetMountFlags()...)
	if err := n.mount.FormatAndMount(path, target, fileSystem, options); err != nil {
		return nil, status.Errorf(codes.Internal, "cannot mount volume %q: %v", req.GetVolumeId(), err)
	}
	return &csi.NodeStageVolumeResponse{}, n.stretch(req.GetVolumeId(), target)
}

// stretch the file system of a volume over all of it: one that was filled from a snapshot may have a smaller one.
func (n *node) stretch(volume, target string) error {
	device, err := n.disks.device(volume)
	if err != nil {
		return err
	}
	if _, err := mount.NewResizeFs(n.mount.Exec).Resize(device, target); err != nil {
		return status.Errorf(codes.Internal, "cannot grow the file system of volume %q: %v", volume, err)
	}
	return nil
}

// NodeUnstageVolume undoes NodeStageVolume.
func (n *node) NodeUnstageVolume(_ context.Context, req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, n.unmount(req.GetStagingTargetPath())
}

// NodePublishVolume shows a volume that is mounted at the place of a pod.
func (n *node) NodePublishVolume(_ context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	target := req.GetTargetPath()
	mounted, err := n.prepare(target)
	if err != nil || mounted {
		return &csi.NodePublishVolumeResponse{}, err
	}
	options := []string{"bind"}
	if req.GetReadonly() {
		options = append(options, "ro")
	}
	if err := n.mount.Mount(req.GetStagingTargetPath(), target, "", options); err != nil {
		return nil, status.Errorf(codes.Internal, "cannot mount volume %q for a pod: %v", req.GetVolumeId(), err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume undoes NodePublishVolume.
func (n *node) NodeUnpublishVolume(_ context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return &csi.NodeUnpublishVolumeResponse{}, n.unmount(req.GetTargetPath())
}

// NodeExpandVolume grows the file, the device and the mounted file system, in this order. Each may be as large already. It does not
// matter how full the file system is.
func (n *node) NodeExpandVolume(_ context.Context, req *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	bytes, err := size(req.GetCapacityRange().GetRequiredBytes(), req.GetCapacityRange().GetLimitBytes())
	if err != nil {
		return nil, err
	}
	device, err := n.disks.grow(req.GetVolumeId(), bytes)
	if err != nil {
		return nil, err
	}
	if device == "" {
		return nil, status.Errorf(codes.FailedPrecondition, "cannot grow the file system of volume %q: it is not mounted", req.GetVolumeId())
	}
	if _, err := mount.NewResizeFs(n.mount.Exec).Resize(device, req.GetVolumePath()); err != nil {
		return nil, status.Errorf(codes.Internal, "cannot grow the file system of volume %q: %v", req.GetVolumeId(), err)
	}
	bytes, err = n.disks.size(req.GetVolumeId())
	return &csi.NodeExpandVolumeResponse{CapacityBytes: bytes}, err
}

// NodeGetVolumeStats returns how full a volume is.
func (n *node) NodeGetVolumeStats(_ context.Context, req *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if mounted, err := n.mount.IsMountPoint(req.GetVolumePath()); err != nil || !mounted {
		return nil, status.Errorf(codes.NotFound, "volume %q is not mounted at %s", req.GetVolumeId(), req.GetVolumePath())
	}
	var s unix.Statfs_t
	if err := unix.Statfs(req.GetVolumePath(), &s); err != nil {
		return nil, status.Errorf(codes.Internal, "cannot see how full volume %q is: %v", req.GetVolumeId(), err)
	}
	usage := func(unit csi.VolumeUsage_Unit, total, free, available uint64, each int64) *csi.VolumeUsage {
		return &csi.VolumeUsage{
			Unit: unit, Total: int64(total) * each, Available: int64(available) * each, Used: int64(total-free) * each, //nolint:gosec // sizes of disks
		}
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		usage(csi.VolumeUsage_BYTES, s.Blocks, s.Bfree, s.Bavail, s.Bsize),
		usage(csi.VolumeUsage_INODES, s.Files, s.Ffree, s.Ffree, 1),
	}}, nil
}

// prepare a folder to mount at, and report whether something is mounted there already.
func (n *node) prepare(target string) (bool, error) {
	if target == "" {
		return false, status.Error(codes.InvalidArgument, "cannot mount a volume nowhere")
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return false, status.Errorf(codes.Internal, "cannot prepare %s: %v", target, err)
	}
	mounted, err := n.mount.IsMountPoint(target)
	if err != nil {
		return false, status.Errorf(codes.Internal, "cannot prepare %s: %v", target, err)
	}
	return mounted, nil
}

// unmount what is mounted there, if anything is, and remove the folder.
func (n *node) unmount(target string) error {
	err := mount.CleanupMountPoint(target, n.mount, true)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return status.Errorf(codes.Internal, "cannot unmount %s: %v", target, err)
	}
	return nil
}
