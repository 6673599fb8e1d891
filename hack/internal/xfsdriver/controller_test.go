// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func mounted(fsType string, mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
	}
}

func TestSupported(t *testing.T) {
	cases := map[string]struct {
		reason string
		all    []*csi.VolumeCapability
		code   codes.Code
	}{
		"Plain":   {"What a claim of ReadWriteOnce asks for.", []*csi.VolumeCapability{mounted("xfs", csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER)}, codes.OK},
		"NoType":  {"XFS is what there is.", []*csi.VolumeCapability{mounted("", csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER)}, codes.OK},
		"Ext4":    {"No other file system is made.", []*csi.VolumeCapability{mounted("ext4", csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER)}, codes.InvalidArgument},
		"Shared":  {"A volume belongs to one node.", []*csi.VolumeCapability{mounted("xfs", csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)}, codes.InvalidArgument},
		"Block":   {"No block devices.", []*csi.VolumeCapability{{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}}, codes.InvalidArgument},
		"Nothing": {"It has to be said.", nil, codes.InvalidArgument},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := supported(tc.all); status.Code(err) != tc.code {
				t.Errorf("\n%s\nsupported(...): want %s, got %v", tc.reason, tc.code, err)
			}
		})
	}
}

func TestCreateVolume(t *testing.T) {
	c := &controller{disks: disks{folder: t.TempDir()}, node: "capstan-b"}
	req := &csi.CreateVolumeRequest{
		Name: "pvc-1", CapacityRange: &csi.CapacityRange{RequiredBytes: 400 << 20},
		VolumeCapabilities: []*csi.VolumeCapability{mounted("xfs", csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER)},
	}
	resp, err := c.CreateVolume(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	v := resp.GetVolume()
	if v.GetCapacityBytes() != 400<<20 || v.GetAccessibleTopology()[0].GetSegments()[topologyKey] != "capstan-b" {
		t.Errorf("a volume has its size and belongs to its node: %v", v)
	}
	req.Parameters = map[string]string{"pool": "fast"}
	if _, err := c.CreateVolume(t.Context(), req); status.Code(err) != codes.InvalidArgument {
		t.Errorf("parameters that nothing uses are refused: %v", err)
	}
}
