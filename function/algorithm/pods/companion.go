// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// companion is an init container of the companion's image.
func companion(in Inputs, name string, args []string, memory resource.Quantity) *applycorev1.ContainerApplyConfiguration {
	return Companion(in.CompanionImage, name, args, memory)
}

// Companion is a container of the companion's image, with as few rights as the Pod Security Standard "restricted" asks for.
func Companion(image, name string, args []string, memory resource.Quantity) *applycorev1.ContainerApplyConfiguration {
	return applycorev1.Container().
		WithName(name).
		WithImage(image).
		WithArgs(literal(args)...).
		WithResources(applycorev1.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: memory}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: memory})).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(applycorev1.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(applycorev1.Capabilities().WithDrop("ALL")))
}

// literal arguments: Kubernetes replaces $(NAME), unless the dollar is doubled.
func literal(args []string) []string {
	out := make([]string, 0, len(args))
	for _, a := range args {
		out = append(out, strings.ReplaceAll(a, "$", "$$"))
	}
	return out
}

// initContainers of the companion, in the order they start.
func initContainers(in Inputs) []*applycorev1.ContainerApplyConfiguration {
	var cs []*applycorev1.ContainerApplyConfiguration
	for _, of := range []func(Inputs) *applycorev1.ContainerApplyConfiguration{modelContainer, warmUp} {
		if c := of(in); c != nil {
			cs = append(cs, c)
		}
	}
	return cs
}
