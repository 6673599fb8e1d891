// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	kjson "sigs.k8s.io/json"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/pods"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/placement"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// Pod returns what is wrong with the parts of spec.pod and spec.podMetadata that have the form of core/v1: the schema does not describe them.
// Written is the spec as the user wrote it, which still has the fields that no type has.
func Pod(s v1alpha1.AlgorithmSpec, written map[string]any, settings inputv1alpha1.AlgorithmPodSettings) field.ErrorList {
	o := s.Pod
	at := spec.Child("pod")
	errs := slices.Concat(unknown(at, compose.Map(written, "pod")), metadata(s.PodMetadata), ownMounts(s))
	taken := map[string]*field.Path{}
	for i, c := range o.InitContainers {
		errs = append(errs, container(at.Child("initContainers").Index(i), s, c.Core, false, taken)...)
	}
	for i, c := range o.Containers {
		errs = append(errs, container(at.Child("containers").Index(i), s, c.Core, true, taken)...)
	}
	for i, v := range o.Volumes {
		errs = append(errs, volume(at.Child("volumes").Index(i), s, v.Core, settings)...)
	}
	return errs
}

// unknown fields of what has the form of core/v1. The schema keeps them, and they would have no effect.
func unknown(at *field.Path, written map[string]any) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		name string
		into func() any
	}{
		{"initContainers", func() any { return &corev1.Container{} }},
		{"containers", func() any { return &corev1.Container{} }},
		{"volumes", func() any { return &corev1.Volume{} }},
	} {
		for i, item := range compose.List(written, list.name) {
			raw, err := json.Marshal(item)
			if err != nil {
				continue
			}
			strict, _ := kjson.UnmarshalStrict(raw, list.into()) // What cannot be decoded at all is reported with the schema.
			for _, err := range strict {
				errs = append(errs, field.Invalid(at.Child(list.name).Index(i), field.OmitValueType{},
					fmt.Sprintf("%v: remove or correct it: core/v1 has no such field", err)))
			}
		}
	}
	return errs
}

// metadata of the pods. Some annotations lift a restriction.
func metadata(m *v1alpha1.PodMetadata) field.ErrorList {
	if len(m.Labels)+len(m.Annotations) == 0 {
		return nil // as for most Algorithms, which the standard need not be evaluated for
	}
	at := spec.Child("podMetadata")
	errs := placement.CheckMetadata(at, m)
	for _, found := range unrestricted(placement.Annotations(m), corev1.PodSpec{Containers: []corev1.Container{pods.Restricted(corev1.Container{}, false)}}) {
		errs = append(errs, field.Invalid(at.Child("annotations"), field.OmitValueType{}, found))
	}
	return errs
}

// ownMounts of the container that serves. Those that hide each other are found with the mounts of other fields.
func ownMounts(s v1alpha1.AlgorithmSpec) field.ErrorList {
	var errs field.ErrorList
	for i, m := range s.VolumeMounts {
		if !hasVolume(s.Pod, m.Name) {
			errs = append(errs, field.Invalid(spec.Child("volumeMounts").Index(i).Child("name"), m.Name,
				"is no volume of spec.pod.volumes: add it there"))
		}
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
	for _, found := range unrestricted(nil, corev1.PodSpec{InitContainers: []corev1.Container{pods.Restricted(c, sidecar)}}) {
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

// volume of the overlay: one kind, which the platform allows.
func volume(at *field.Path, s v1alpha1.AlgorithmSpec, v corev1.Volume, settings inputv1alpha1.AlgorithmPodSettings) field.ErrorList {
	if pods.ReservedVolume(v.Name) {
		return field.ErrorList{field.Invalid(at.Child("name"), v.Name, "is a name that Capstan uses for volumes: choose another name")}
	}
	source, err := compose.AsMap(v.VolumeSource)
	if err != nil {
		return field.ErrorList{field.Invalid(at, v.Name, fmt.Sprintf("cannot be read: %v", err))}
	}
	kinds := slices.Sorted(maps.Keys(source))
	if len(kinds) != 1 {
		return field.ErrorList{field.Invalid(at, v.Name,
			fmt.Sprintf("has %d kinds (%s): set exactly one of %s", len(kinds), strings.Join(kinds, ", "), allowed(settings)))}
	}
	if !slices.Contains(settings.Volumes, inputv1alpha1.PodVolumeKind(kinds[0])) {
		remedy := "use one of them, or ask the platform team for a kind that restricted pods can have"
		if slices.Contains(inputv1alpha1.PodVolumeKinds(), inputv1alpha1.PodVolumeKind(kinds[0])) {
			remedy = "use one of them, or ask the platform team to add it to algorithm.pod.volumes of its settings"
		}
		return field.ErrorList{field.Invalid(at.Child(kinds[0]), v.Name,
			fmt.Sprintf("the platform allows only volumes of %s: %s", allowed(settings), remedy))}
	}
	errs := tokens(at, s, v)
	for _, found := range unrestricted(nil, corev1.PodSpec{
		Containers: []corev1.Container{pods.Restricted(corev1.Container{}, false)}, Volumes: []corev1.Volume{v},
	}) {
		errs = append(errs, field.Invalid(at, v.Name, found))
	}
	return errs
}

// allowed kinds of volumes in words.
func allowed(settings inputv1alpha1.AlgorithmPodSettings) string {
	if len(settings.Volumes) == 0 {
		return "no kind"
	}
	kinds := make([]string, 0, len(settings.Volumes))
	for _, kind := range settings.Volumes {
		kinds = append(kinds, string(kind))
	}
	return strings.Join(kinds, ", ")
}

// tokens and certificates of the pod's identity need an account that the spec names: the one that Capstan makes has none, so that
// a right of it cannot leave the cluster by mistake.
func tokens(at *field.Path, s v1alpha1.AlgorithmSpec, v corev1.Volume) field.ErrorList {
	if v.Projected == nil || s.Pod.ServiceAccountName != "" {
		return nil
	}
	var errs field.ErrorList
	for i, source := range v.Projected.Sources {
		var name string
		switch {
		case source.ServiceAccountToken != nil:
			name = "serviceAccountToken"
		case source.PodCertificate != nil:
			name = "podCertificate"
		default:
			continue
		}
		errs = append(errs, field.Invalid(at.Child("projected", "sources").Index(i).Child(name), v.Name,
			"needs an own account: set spec.pod.serviceAccountName, or remove it"))
	}
	return errs
}

// standard is the check of the API server for the Pod Security Standards.
var standard = sync.OnceValue(func() policy.Evaluator {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err) // The checks are part of the program.
	}
	return e
})

// unrestricted parts of a pod, as the API server finds them in a namespace with the Pod Security Standard restricted.
func unrestricted(annotations map[string]string, pod corev1.PodSpec) []string {
	pod.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	results := standard().EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()},
		&metav1.ObjectMeta{Annotations: annotations}, &pod)
	var found []string
	for _, r := range results {
		if !r.Allowed {
			found = append(found, fmt.Sprintf("breaks the Pod Security Standard restricted: %s: %s: correct or remove it", r.ForbiddenReason, r.ForbiddenDetail))
		}
	}
	return found
}
