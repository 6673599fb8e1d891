// SPDX-License-Identifier: Apache-2.0

package flink

// Labels of the pods of a stream.
const (
	// LabelRole is RoleJobManager or RoleTaskManager.
	LabelRole = "capstan.dev/stream-role"
	// LabelRevision has the number of the revision.
	LabelRevision = "capstan.dev/stream-revision"

	// RoleJobManager of a pod.
	RoleJobManager = "jobmanager"
	// RoleTaskManager of a pod.
	RoleTaskManager = "taskmanager"
)
