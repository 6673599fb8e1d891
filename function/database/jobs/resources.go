// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/pods"
)

const (
	mebibyte = 1 << 20
	// milliCPU that each process of the backup tool requests.
	milliCPU = 100
	// included processes are those that the least memory is enough for. Each further one gets perProcess.
	included, perProcess = 4, 64 * mebibyte
	leastBackupMemory    = 512 * mebibyte
	leastVerifyMemory    = 1024 * mebibyte
	leastVerifyCPUs      = 2
)

// backupResources of a pod that takes a backup. Its processes send what members have compressed.
func backupResources(s *facts.Cluster) *applycorev1.ResourceRequirementsApplyConfiguration {
	return pods.Resources(requestedCPU(s), resource.MustParse("128Mi"), memoryFrom(s, leastBackupMemory))
}

// verifyResources of a pod that verifies. A limit keeps it from taking the processors of members for hours.
func verifyResources(s *facts.Cluster) *applycorev1.ResourceRequirementsApplyConfiguration {
	cpus := resource.NewQuantity(max(leastVerifyCPUs, backup.Processes(s)), resource.DecimalSI)
	r := pods.Resources(requestedCPU(s), resource.MustParse("512Mi"), memoryFrom(s, leastVerifyMemory))
	(*r.Limits)[corev1.ResourceCPU] = *cpus
	return r
}

func requestedCPU(s *facts.Cluster) resource.Quantity {
	return *resource.NewMilliQuantity(milliCPU*backup.Processes(s), resource.DecimalSI)
}

// memoryFrom the least that there is for few processes.
func memoryFrom(s *facts.Cluster, least int64) resource.Quantity {
	return *resource.NewQuantity(least+max(0, backup.Processes(s)-included)*perProcess, resource.BinarySI)
}
