// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseHierarchies(t *testing.T) {
	cases := map[string]struct {
		reason    string
		mountinfo string
		want      []hierarchy
	}{
		"V2": {
			reason:    "A current distribution has one tree.",
			mountinfo: "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 none rw,nsdelegate\n",
			want:      []hierarchy{{path: "/sys/fs/cgroup", v2: true}},
		},
		"V1": {
			reason: "Version 1 has a tree for each controller, and may have a tree of version 2 beside them.",
			mountinfo: "31 30 0:27 / /sys/fs/cgroup ro - tmpfs none ro\n" +
				"32 31 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup none rw,cpu,cpuacct\n" +
				"33 31 0:29 / /sys/fs/cgroup/memory rw - cgroup none rw,memory\n" +
				"34 31 0:30 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n",
			want: []hierarchy{
				{path: "/sys/fs/cgroup/cpu,cpuacct"}, {path: "/sys/fs/cgroup/memory"}, {path: "/sys/fs/cgroup/unified", v2: true},
			},
		},
		"None": {reason: "Other mounts are none of ours.", mountinfo: "23 1 8:1 / / rw - ext4 /dev/sda1 rw\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := parseHierarchies([]byte(tc.mountinfo))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(hierarchy{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
