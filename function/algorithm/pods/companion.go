// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/function/podspec"
)

// companion is an init container of the companion's image.
func companion(in Inputs, name string, args []string, memory resource.Quantity) *applycorev1.ContainerApplyConfiguration {
	return podspec.Companion(in.CompanionImage, name, args, memory)
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
