// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/pods"
)

const (
	mebibyte = 1 << 20
	// milliCPU that each process of the backup tool requests.
	milliCPU = 100
	// included processes are those that the memory of the engine is enough for. Each further one gets perProcess.
	included, perProcess = 4, 64 * mebibyte
	leastVerifyCPUs      = 2
)

// backupResources of a pod that takes a backup.
func backupResources(s *facts.Cluster) *applycorev1.ResourceRequirementsApplyConfiguration {
	return resources(s, s.Traits.Backups.Taking)
}

// verifyResources of a pod that verifies. A limit keeps it from taking the processors of members for hours.
func verifyResources(s *facts.Cluster) *applycorev1.ResourceRequirementsApplyConfiguration {
	r := resources(s, s.Traits.Backups.Verifying)
	(*r.Limits)[corev1.ResourceCPU] = *resource.NewQuantity(max(leastVerifyCPUs, backup.Processes(s)), resource.DecimalSI)
	return r
}

// resources of a pod with as many processes as a member has CPUs.
func resources(s *facts.Cluster, m engine.Memory) *applycorev1.ResourceRequirementsApplyConfiguration {
	n := backup.Processes(s)
	most := resource.NewQuantity(m.Most.Value()+max(0, n-included)*perProcess, resource.BinarySI)
	return pods.Resources(*resource.NewMilliQuantity(milliCPU*n, resource.DecimalSI), m.Request, *most)
}
