// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"maps"
	"slices"
	"strings"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/function/placement"
	"github.com/capstan-dev/capstan/function/podspec"
)

// ReservedVolume reports whether Capstan uses the name of a volume for itself, in this pod or in another.
func ReservedVolume(name string) bool {
	own := []string{podspec.VolumeConfig, volumeSharedMemory, VolumeModel, volumeCredentials, volumeWarmUp}
	return slices.Contains(own, name) || strings.HasPrefix(name, "secret-")
}

// overlayContainers of spec.pod start before the containers of Capstan: what they prepare may be needed to download a model.
func overlayContainers(in Inputs) []*applycorev1.ContainerApplyConfiguration {
	o := in.Spec.Pod
	cs := make([]*applycorev1.ContainerApplyConfiguration, 0, len(o.InitContainers)+len(o.Containers))
	for _, c := range o.InitContainers {
		cs = append(cs, podspec.Applied[applycorev1.ContainerApplyConfiguration](podspec.Restricted(c.Core, false)))
	}
	for _, c := range o.Containers {
		cs = append(cs, podspec.Applied[applycorev1.ContainerApplyConfiguration](podspec.Restricted(c.Core, true)))
	}
	return cs
}

// labels of the pods. Those that select them win.
func labels(in Inputs) map[string]string {
	all := placement.Labels(in.Spec.PodMetadata)
	maps.Copy(all, in.Labels())
	return all
}
