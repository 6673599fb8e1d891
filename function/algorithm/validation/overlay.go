// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/pods"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/podspec"
	podvalidation "github.com/capstan-dev/capstan/function/podspec/validation"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// Pod returns what is wrong with the parts of spec.pod and spec.podMetadata that have the form of core/v1: the schema does not describe them.
// Written is the spec as the user wrote it, which still has the fields that no type has.
func Pod(s v1alpha1.AlgorithmSpec, written map[string]any, settings inputv1alpha1.AlgorithmPodSettings) field.ErrorList {
	o := s.Pod
	at := spec.Child("pod")
	errs := slices.Concat(podvalidation.Unknown(at, compose.Map(written, "pod")), podvalidation.Metadata(spec.Child("podMetadata"), s.PodMetadata), ownVolumes(s).Unknown())
	taken := map[string]*field.Path{}
	volumes := podvalidation.Volumes{Kinds: settings.Volumes, Account: o.ServiceAccountName, Reserved: pods.ReservedVolume}
	for i, c := range o.InitContainers {
		errs = append(errs, container(at.Child("initContainers").Index(i), s, c.Core, false, taken)...)
	}
	for i, c := range o.Containers {
		errs = append(errs, container(at.Child("containers").Index(i), s, c.Core, true, taken)...)
	}
	for i, v := range o.Volumes {
		errs = append(errs, volumes.Volume(at.Child("volumes").Index(i), v.Core)...)
	}
	return errs
}

func hasVolume(o *v1alpha1.PodSpec, name string) bool {
	return slices.ContainsFunc(o.Volumes, func(v v1alpha1.PodVolume) bool { return v.Name == name })
}

// container of the overlay. Taken has the names of the containers before it.
func container(at *field.Path, s v1alpha1.AlgorithmSpec, c corev1.Container, sidecar bool, taken map[string]*field.Path) field.ErrorList {
	var errs field.ErrorList
	if other := taken[c.Name]; other != nil {
		errs = append(errs, field.Invalid(at.Child("name"), c.Name, fmt.Sprintf("is also the name of %s: choose another name", other)))
	}
	taken[c.Name] = at
	if r := c.RestartPolicy; r != nil && *r != corev1.ContainerRestartPolicyAlways {
		errs = append(errs, field.Invalid(at.Child("restartPolicy"), string(*r),
			"must be Always, for a container that keeps running, or absent"))
	}
	runs := sidecar || c.RestartPolicy != nil
	if probes := c.StartupProbe != nil || c.ReadinessProbe != nil || c.LivenessProbe != nil; probes && !runs {
		errs = append(errs, field.Invalid(at, c.Name,
			"a container that runs to its end has no probes: remove them, or move the container to spec.pod.containers"))
	}
	if len(c.VolumeDevices) > 0 {
		errs = append(errs, field.Invalid(at.Child("volumeDevices"), c.VolumeDevices[0].Name, "block devices are not supported: remove it, and mount a volume"))
	}
	errs = append(errs, containerPorts(at.Child("ports"), s, c, runs)...)
	errs = append(errs, containerMounts(at.Child("volumeMounts"), s.Pod, c)...)
	for _, found := range podvalidation.Unrestricted(nil, corev1.PodSpec{InitContainers: []corev1.Container{podspec.Restricted(c, sidecar)}}) {
		errs = append(errs, field.Invalid(at, c.Name, found))
	}
	return errs
}

// containerPorts must not be ports of other containers, nor have the name that the Services refer to.
func containerPorts(at *field.Path, s v1alpha1.AlgorithmSpec, c corev1.Container, runs bool) field.ErrorList {
	var errs field.ErrorList
	for i, p := range c.Ports {
		if p.Name == names.PortHTTP || p.Name == names.PortMetrics {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), p.Name, "is a name that Capstan uses for ports: choose another name"))
		}
		if runs && p.ContainerPort == *s.Port {
			errs = append(errs, field.Invalid(at.Index(i).Child("containerPort"), p.ContainerPort,
				"is spec.port, on which the container of the Algorithm listens: choose another port"))
		}
		if runs && s.Probes.WarmUp != nil && p.ContainerPort == pods.WarmUpPort {
			errs = append(errs, field.Invalid(at.Index(i).Child("containerPort"), p.ContainerPort,
				"is the port on which spec.probes.warmUp reports that it is done: choose another port"))
		}
	}
	return errs
}

func containerMounts(at *field.Path, o *v1alpha1.PodSpec, c corev1.Container) field.ErrorList {
	var errs field.ErrorList
	for i, m := range c.VolumeMounts {
		if !hasVolume(o, m.Name) {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), m.Name, "is no volume of spec.pod.volumes: add it there"))
		}
		if m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone {
			errs = append(errs, field.Invalid(at.Index(i).Child("mountPropagation"), string(*m.MountPropagation),
				"must be None or absent: mounts of the node are not for pods"))
		}
	}
	return errs
}
