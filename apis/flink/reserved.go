// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"slices"
	"strings"
)

// reserved keys of Flink's configuration begin with one of these: what they say decides whether state is found again.
var reserved = []string{
	"jobmanager.rpc.", "jobmanager.bind-host", "jobmanager.memory.", "rest.", "blob.server.port", "web.", "taskmanager.rpc.port",
	"taskmanager.data.port", "taskmanager.host", "taskmanager.bind-host", "taskmanager.numberOfTaskSlots", "taskmanager.cpu.cores",
	"taskmanager.memory.", "scheduler-mode", "jobmanager.scheduler", "high-availability", "kubernetes.", "execution.state-recovery.",
	"execution.savepoint", "execution.target", "execution.shutdown-on-application-finish", "execution.checkpointing.dir",
	"execution.checkpointing.savepoint-dir", "execution.checkpointing.interval", "execution.checkpointing.externalized-checkpoint-retention",
	"state.checkpoints.", "state.savepoints.", "state.backend.fs.checkpointdir", "savepoints.", "io.tmp.dirs", "env.",
}

// free are exceptions from reserved: how memory is divided.
var free = []string{
	"taskmanager.memory.managed.fraction", "taskmanager.memory.managed.size", "taskmanager.memory.network.fraction",
	"taskmanager.memory.jvm-metaspace.size", "taskmanager.memory.task.off-heap.size", "state.checkpoints.num-retained",
}

// Reserved reports whether Capstan sets a key of Flink's configuration itself, so that users cannot.
func Reserved(key string) bool {
	if slices.Contains(free, key) {
		return false
	}
	for _, r := range reserved {
		if strings.HasPrefix(key, r) {
			return true
		}
	}
	return false
}
