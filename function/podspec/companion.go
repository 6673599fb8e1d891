// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// Companion is a container of the companion's image, with as few rights as the Pod Security Standard "restricted" asks for.
func Companion(image, name string, args []string, memory resource.Quantity) *applycorev1.ContainerApplyConfiguration {
	return applycorev1.Container().
		WithName(name).
		WithImage(image).
		WithArgs(Literal(args)...).
		WithResources(applycorev1.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: memory}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: memory})).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(applycorev1.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(applycorev1.Capabilities().WithDrop("ALL")))
}

// Literal arguments: Kubernetes replaces $(NAME), unless the dollar is doubled.
func Literal(args []string) []string {
	out := make([]string, 0, len(args))
	for _, a := range args {
		out = append(out, strings.ReplaceAll(a, "$", "$$"))
	}
	return out
}
