// SPDX-License-Identifier: Apache-2.0

// Package memory divides the memory of a pod among the parts of Flink's processes, as Flink's own scripts do. Flink refuses a TaskManager
// whose options do not add up.
package memory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	mib = 1 << 20

	// companion is what the companion needs beside Flink.
	companion = 48 * mib
	// goodHeap of tasks, for which managed memory makes room unless the user set its size. RocksDB needs managed memory, but no job runs
	// without a heap.
	goodHeap = 128 * mib
	// leastHeap of tasks, and of a JobManager, below which nothing useful runs.
	leastHeap = 64 * mib

	// Flink's own defaults.
	frameworkHeap     = 128 * mib
	frameworkOffHeap  = 128 * mib
	jobManagerOffHeap = 128 * mib
	metaspace         = 256 * mib
	leastOverhead     = 192 * mib
	mostOverhead      = 1024 * mib
	overheadFraction  = 0.1
	leastNetwork      = 64 * mib
	networkFraction   = 0.1
	managedFraction   = 0.4

	// Limits of pods without one: Flink's own defaults for processes, and the companion.
	defaultJobManager  = 1600*mib + companion
	defaultTaskManager = 1728*mib + companion
)

// A Division of memory: options of Flink, and flags of the JVM.
type Division struct {
	Options map[string]string
	Flags   []string
}

// JobManager divides the memory of a pod. A limit of 0 bytes means that there is none.
func JobManager(limit int64) (Division, error) {
	if limit == 0 {
		limit = defaultJobManager
	}
	process := limit - companion
	overhead := overheadOf(process)
	heap := process - overhead - metaspace - jobManagerOffHeap
	if heap < leastHeap {
		return Division{}, tooSmall("JobManager", limit, leastHeap-heap)
	}
	return Division{
		Options: map[string]string{
			"jobmanager.memory.heap.size":          size(heap),
			"jobmanager.memory.off-heap.size":      size(jobManagerOffHeap),
			"jobmanager.memory.jvm-metaspace.size": size(metaspace),
			"jobmanager.memory.jvm-overhead.min":   size(overhead),
			"jobmanager.memory.jvm-overhead.max":   size(overhead),
		},
		Flags: flags(heap, 0, metaspace),
	}, nil
}

// TaskManager divides the memory of a pod with so many processors, or 0 if their number is not known. Some of its parts have sizes of the user.
func TaskManager(limit int64, cpus float64, config map[string]string) (Division, error) {
	if limit == 0 {
		limit = defaultTaskManager
	}
	r := reader{config: config}
	process := limit - companion
	overhead := overheadOf(process)
	meta := r.size("taskmanager.memory.jvm-metaspace.size", metaspace)
	flink := process - overhead - meta
	network := max(fraction(flink, r.fraction("taskmanager.memory.network.fraction", networkFraction)), leastNetwork)
	managed := r.size("taskmanager.memory.managed.size", fraction(flink, r.fraction("taskmanager.memory.managed.fraction", managedFraction)))
	offHeap := r.size("taskmanager.memory.task.off-heap.size", 0)
	heap := flink - frameworkHeap - frameworkOffHeap - network - managed - offHeap
	if r.err != nil {
		return Division{}, r.err
	}
	if missing := goodHeap - heap; missing > 0 && !r.has("taskmanager.memory.managed.size", "taskmanager.memory.managed.fraction") {
		given := min(missing, managed)
		managed, heap = managed-given, heap+given
	}
	if heap < leastHeap {
		return Division{}, tooSmall("TaskManager", limit, leastHeap-heap)
	}
	return Division{
		Options: map[string]string{
			"taskmanager.cpu.cores":                      strconv.FormatFloat(max(cpus, 1), 'f', 1, 64),
			"taskmanager.memory.framework.heap.size":     size(frameworkHeap),
			"taskmanager.memory.framework.off-heap.size": size(frameworkOffHeap),
			"taskmanager.memory.task.heap.size":          size(heap),
			"taskmanager.memory.task.off-heap.size":      size(offHeap),
			"taskmanager.memory.network.min":             size(network),
			"taskmanager.memory.network.max":             size(network),
			"taskmanager.memory.managed.size":            size(managed),
			"taskmanager.memory.jvm-metaspace.size":      size(meta),
			"taskmanager.memory.jvm-overhead.min":        size(overhead),
			"taskmanager.memory.jvm-overhead.max":        size(overhead),
		},
		Flags: flags(frameworkHeap+heap, frameworkOffHeap+offHeap+network, meta),
	}, nil
}

func overheadOf(process int64) int64 {
	return min(max(fraction(process, overheadFraction), leastOverhead), mostOverhead)
}

func fraction(of int64, f float64) int64 { return int64(float64(of) * f) }

func size(bytes int64) string { return strconv.FormatInt(bytes, 10) + "b" }

func flags(heap, direct, meta int64) []string {
	all := []string{"-Xmx" + strconv.FormatInt(heap, 10), "-Xms" + strconv.FormatInt(heap, 10)}
	if direct > 0 {
		all = append(all, "-XX:MaxDirectMemorySize="+strconv.FormatInt(direct, 10))
	}
	return append(all, "-XX:MaxMetaspaceSize="+strconv.FormatInt(meta, 10))
}

// tooSmall counts what is missing, rounded up, with some room for parts that grow with the whole.
func tooSmall(role string, limit, missing int64) error {
	return fmt.Errorf("%d MiB of memory are too little for a %s of Flink: give it at least %d MiB", limit/mib, role, (limit+missing*5/2)/mib+1)
}

// A reader of the user's sizes keeps the first error.
type reader struct {
	config map[string]string
	err    error
}

func (r *reader) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { _, ok := r.config[key]; return ok })
}

func (r *reader) fraction(key string, otherwise float64) float64 {
	value, ok := r.config[key]
	if !ok {
		return otherwise
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || f < 0 || f >= 1 {
		r.fail(key, value, "a number from 0 to 1, such as 0.4")
		return otherwise
	}
	return f
}

func (r *reader) size(key string, otherwise int64) int64 {
	value, ok := r.config[key]
	if !ok {
		return otherwise
	}
	number := strings.ToLower(strings.TrimSpace(value))
	unit := int64(1)
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{
		{"kb", 1 << 10}, {"mb", mib}, {"gb", 1 << 30}, {"k", 1 << 10}, {"m", mib}, {"g", 1 << 30}, {"b", 1},
	} {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<50)/unit {
		r.fail(key, value, "a size such as 512m or 2g")
		return otherwise
	}
	return n * unit
}

func (r *reader) fail(key, value, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s is %q, and has to be %s", key, value, want)
	}
}
