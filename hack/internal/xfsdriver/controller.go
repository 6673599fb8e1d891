// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/capstan-dev/capstan/hack/internal/xfs"
)

// topologyKey is the label of nodes, and the key of a volume's place.
const topologyKey = "topology." + xfs.Driver + "/node"

// fileSystem of all volumes.
const fileSystem = "xfs"

// controller makes volumes on its node, and removes them. One without a node only lets volumes grow, which the node they are on does.
type controller struct {
	csi.UnimplementedControllerServer

	disks disks
	node  string
}

// ControllerGetCapabilities returns what a controller with and without a node does.
func (c *controller) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	able := []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_EXPAND_VOLUME}
	if c.node != "" {
		able = append(able, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT)
	}
	resp := &csi.ControllerGetCapabilitiesResponse{}
	for _, t := range able {
		resp.Capabilities = append(resp.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: t}},
		})
	}
	return resp, nil
}

// CreateVolume on this node. The provisioner of a node asks only for volumes of pods that were scheduled to it.
func (c *controller) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := supported(req.GetVolumeCapabilities()); err != nil {
		return nil, err
	}
	source := req.GetVolumeContentSource()
	if source != nil && source.GetSnapshot() == nil {
		return nil, status.Error(codes.InvalidArgument, "cannot fill a volume from another one, only from a snapshot")
	}
	if len(req.GetParameters()) > 0 {
		return nil, status.Errorf(codes.InvalidArgument, "cannot use parameters, there are none: %v", req.GetParameters())
	}
	bytes, err := size(req.GetCapacityRange().GetRequiredBytes(), req.GetCapacityRange().GetLimitBytes())
	if err != nil {
		return nil, err
	}
	if source != nil {
		err = c.disks.fill(req.GetName(), source.GetSnapshot().GetSnapshotId(), bytes)
	} else {
		err = c.disks.make(req.GetName(), bytes)
	}
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: req.GetName(), CapacityBytes: bytes, ContentSource: source,
		AccessibleTopology: []*csi.Topology{{Segments: map[string]string{topologyKey: c.node}}},
	}}, nil
}

// DeleteVolume of this node.
func (c *controller) DeleteVolume(_ context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, c.disks.remove(req.GetVolumeId())
}

// ControllerExpandVolume leaves all of it to the node that has the volume.
func (c *controller) ControllerExpandVolume(
	_ context.Context, req *csi.ControllerExpandVolumeRequest,
) (*csi.ControllerExpandVolumeResponse, error) {
	bytes, err := size(req.GetCapacityRange().GetRequiredBytes(), req.GetCapacityRange().GetLimitBytes())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: bytes, NodeExpansionRequired: true}, nil
}

// ValidateVolumeCapabilities confirms what supported confirms.
func (c *controller) ValidateVolumeCapabilities(
	_ context.Context, req *csi.ValidateVolumeCapabilitiesRequest,
) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if _, err := c.disks.size(req.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := supported(req.GetVolumeCapabilities()); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeCapabilities: req.GetVolumeCapabilities(),
	}}, nil
}

// supported volumes hold a file system that pods of one node use.
func supported(all []*csi.VolumeCapability) error {
	single := []csi.VolumeCapability_AccessMode_Mode{
		csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER,
	}
	if len(all) == 0 {
		return status.Error(codes.InvalidArgument, "cannot make a volume without its capabilities")
	}
	for _, c := range all {
		switch fsType := c.GetMount().GetFsType(); {
		case c.GetMount() == nil:
			return status.Error(codes.InvalidArgument, "cannot make block devices: set volumeMode to Filesystem")
		case fsType != "" && fsType != fileSystem:
			return status.Errorf(codes.InvalidArgument, "cannot make file systems of type %q: it is %s", fsType, fileSystem)
		case !slices.Contains(single, c.GetAccessMode().GetMode()):
			return status.Errorf(codes.InvalidArgument, "cannot be used as %s: a volume belongs to one node", c.GetAccessMode().GetMode())
		}
	}
	return nil
}
