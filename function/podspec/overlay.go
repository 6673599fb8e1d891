// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Restricted is a container of spec.pod with what the Pod Security Standard "restricted" requires, as far as it does not say
// otherwise. A sidecar keeps running beside the container that serves.
func Restricted(c corev1.Container, sidecar bool) corev1.Container {
	c = *c.DeepCopy()
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	if c.SecurityContext.AllowPrivilegeEscalation == nil {
		c.SecurityContext.AllowPrivilegeEscalation = new(false)
	}
	if c.SecurityContext.Capabilities == nil {
		c.SecurityContext.Capabilities = &corev1.Capabilities{}
	}
	if len(c.SecurityContext.Capabilities.Drop) == 0 {
		c.SecurityContext.Capabilities.Drop = []corev1.Capability{"ALL"}
	}
	if sidecar {
		c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}
	if c.TerminationMessagePolicy == "" {
		c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}
	requested(&c)
	return c
}

// requested CPU and memory of a container that names none: an autoscaler that follows the CPU cannot compute a utilization for a
// pod with a container that requests none, and quotas refuse such a pod. A limit is also a request.
func requested(c *corev1.Container) {
	for name, least := range map[corev1.ResourceName]resource.Quantity{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
	} {
		_, hasRequest := c.Resources.Requests[name]
		_, hasLimit := c.Resources.Limits[name]
		if hasRequest || hasLimit {
			continue
		}
		if c.Resources.Requests == nil {
			c.Resources.Requests = corev1.ResourceList{}
		}
		c.Resources.Requests[name] = least
	}
}

// Volumes of core/v1 as what is applied of them.
func Volumes(volumes []v1alpha1.PodVolume) []*applycorev1.VolumeApplyConfiguration {
	vs := make([]*applycorev1.VolumeApplyConfiguration, 0, len(volumes))
	for _, v := range volumes {
		vs = append(vs, Applied[applycorev1.VolumeApplyConfiguration](v.Core))
	}
	return vs
}

// Applied is a value of core/v1 as what is applied of it: both have the same form as JSON.
func Applied[T any](value any) *T {
	into := new(T)
	raw, _ := json.Marshal(value) //nolint:errchkjson // What was decoded from JSON always marshals.
	_ = json.Unmarshal(raw, into) // The same fields of the same types.
	return into
}
