// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log"

	"github.com/container-storage-interface/spec/lib/go/csi"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/capstan-dev/capstan/hack/internal/xfs"
)

// specVersion of CSI that is spoken.
const specVersion = "1.11.0"

// identity reports what the driver is.
type identity struct {
	csi.UnimplementedIdentityServer
}

// GetPluginInfo returns the name by which StorageClasses know the driver.
func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: xfs.Driver, VendorVersion: specVersion}, nil
}

// GetPluginCapabilities reports that volumes belong to nodes, and grow while they are used.
func (identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	service := func(t csi.PluginCapability_Service_Type) *csi.PluginCapability {
		return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: t}}}
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		service(csi.PluginCapability_Service_CONTROLLER_SERVICE),
		service(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
			Type: csi.PluginCapability_VolumeExpansion_ONLINE,
		}}},
	}}, nil
}

// Probe is fine as soon as the socket answers: nothing outside is needed.
func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// registrar shows the kubelet where the driver is.
type registrar struct {
	registration.UnsafeRegistrationServer

	endpoint string
}

// GetInfo shows the kubelet where the driver serves.
func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: xfs.Driver, Endpoint: r.endpoint, SupportedVersions: []string{specVersion},
	}, nil
}

// NotifyRegistrationStatus is what the kubelet made of it. What it refuses is no use running: the first process of the machine
// starts the driver again, which registers again.
func (registrar) NotifyRegistrationStatus(
	_ context.Context, s *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if !s.GetPluginRegistered() {
		return nil, fmt.Errorf("cannot register with the kubelet: %s", s.GetError())
	}
	log.Printf("registered with the kubelet")
	return &registration.RegistrationStatusResponse{}, nil
}
