// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/companion/internal/flink/memory"
)

const mib = 1 << 20

func TestTaskManager(t *testing.T) {
	cases := map[string]struct {
		reason string
		limit  int64
		config map[string]string
		want   map[string]int64 // MiB
		err    string
	}{
		"Usual": {
			reason: "Without a limit the process has Flink's own default size.",
			want:   map[string]int64{"managed.size": 512, "network.min": 128, "jvm-overhead.min": 192},
		},
		"Small": {
			reason: "In a small pod managed memory makes room for the heap of tasks.",
			limit:  1024 * mib,
			want:   map[string]int64{"managed.size": 80, "network.min": 64, "task.heap.size": 128},
		},
		"Own": {
			reason: "A size of the user is kept.",
			limit:  4096 * mib, config: map[string]string{"taskmanager.memory.managed.size": "1g", "taskmanager.memory.task.off-heap.size": "100m"},
			want: map[string]int64{"managed.size": 1024, "task.off-heap.size": 100},
		},
		"TooSmall": {
			reason: "What Flink refuses is refused before, with what it takes.",
			limit:  600 * mib, err: "give it at least",
		},
		"TooMuch": {
			reason: "A size of the user that leaves no heap is refused.",
			limit:  2048 * mib, config: map[string]string{"taskmanager.memory.managed.size": "1500m"}, err: "too little",
		},
		"NoSize": {
			reason: "A size that is none is named with its key.",
			limit:  2048 * mib, config: map[string]string{"taskmanager.memory.managed.size": "much"}, err: `taskmanager.memory.managed.size is "much"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := memory.TaskManager(tc.limit, 2, tc.config)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s\nwant %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, sum := map[string]int64{}, int64(0)
			for key, value := range d.Options {
				n, err := strconv.ParseInt(strings.TrimSuffix(value, "b"), 10, 64)
				if err != nil {
					continue
				}
				short := strings.TrimPrefix(key, "taskmanager.memory.")
				if _, wanted := tc.want[short]; wanted {
					got[short] = n / mib
				}
				if !strings.HasSuffix(key, ".max") {
					sum += n
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			limit := tc.limit
			if limit == 0 {
				limit = (1728 + 48) * mib
			}
			if len(d.Options) != 11 || sum != limit-48*mib {
				t.Errorf("want eleven options that add up to the pod but for the companion, got %d with %d of %d bytes", len(d.Options), sum, limit)
			}
		})
	}
}

func TestJobManager(t *testing.T) {
	if _, err := memory.JobManager(500 * mib); err == nil || !strings.Contains(err.Error(), "at least") {
		t.Errorf("a pod that is too small gives %v", err)
	}
	d, err := memory.JobManager(1600 * mib)
	if err != nil || d.Options["jobmanager.memory.heap.size"] != strconv.Itoa((1600-48-192-256-128)*mib)+"b" {
		t.Errorf("got %v, %v", d.Options, err)
	}
}
