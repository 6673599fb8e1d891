// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"path"
	"slices"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// VolumeConfig is the name of the volume of spec.config, and ConfigPath its usual folder.
const (
	VolumeConfig = "config"
	ConfigPath   = "/etc/algorithm"
)

// A Place is where a volume of Capstan appears in the container of a spec. It can be written nowhere.
type Place struct {
	// Name of the volume in spec.volumeMounts, and Volume, its name in the pod.
	Name, Volume string

	// Path is the usual folder, and SubPath the part of the volume that appears there: all of it when empty.
	Path, SubPath string
}

// ConfigPlace of spec.config, if it has any.
func ConfigPlace(c v1alpha1.Config) []Place {
	if len(c) == 0 {
		return nil
	}
	return []Place{{Name: VolumeConfig, Volume: VolumeConfig, Path: ConfigPath}}
}

// Named reports whether spec.volumeMounts has a volume, so that it is not in its usual folder.
func Named(mounts []v1alpha1.PodVolumeMount, name string) bool {
	return slices.ContainsFunc(mounts, func(m v1alpha1.PodVolumeMount) bool { return m.Name == name })
}

// UsualMounts of the places that spec.volumeMounts does not name.
func UsualMounts(places []Place, mounts []v1alpha1.PodVolumeMount) []*applycorev1.VolumeMountApplyConfiguration {
	ms := make([]*applycorev1.VolumeMountApplyConfiguration, 0, len(places))
	for _, p := range places {
		if !Named(mounts, p.Name) {
			ms = append(ms, mount(p.Volume, p.Path, p.SubPath, true))
		}
	}
	return ms
}

// Mounts of a container: volumes of spec.pod, and volumes of Capstan that are not in their usual folders.
func Mounts(places []Place, mounts []v1alpha1.PodVolumeMount) []*applycorev1.VolumeMountApplyConfiguration {
	ms := make([]*applycorev1.VolumeMountApplyConfiguration, 0, len(mounts))
	for _, m := range mounts {
		if i := slices.IndexFunc(places, func(p Place) bool { return p.Name == m.Name }); i >= 0 {
			ms = append(ms, mount(places[i].Volume, m.MountPath, path.Join(places[i].SubPath, m.SubPath), true))
			continue
		}
		ms = append(ms, mount(m.Name, m.MountPath, m.SubPath, m.ReadOnly))
	}
	return ms
}

func mount(volume, at, subPath string, readOnly bool) *applycorev1.VolumeMountApplyConfiguration {
	m := applycorev1.VolumeMount().WithName(volume).WithMountPath(at)
	if subPath != "" {
		m.WithSubPath(subPath)
	}
	// The API server stores no false, and would report one as a change.
	if readOnly {
		m.WithReadOnly(true)
	}
	return m
}
