// SPDX-License-Identifier: Apache-2.0

package download

import "testing"

func TestNumber(t *testing.T) {
	for name, tc := range map[string]struct{ reason, tool, version, want string }{
		"Plain":      {"File names have a version without its letter.", "etcd", "v3.6.8", "3.6.8"},
		"Prometheus": {"Its module counts in hundreds.", "prometheus", "v0.315.0", "3.15.0"},
		"Early":      {"Also below ten.", "prometheus", "v0.305.2", "3.5.2"},
		"Zero":       {"And at zero.", "prometheus", "v0.300.1", "3.0.1"},
		"Next":       {"And after the next major version.", "prometheus", "v0.400.0", "4.0.0"},
		"Other":      {"No other tool counts like that.", "local-path-provisioner", "v0.315.0", "0.315.0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := number(tc.tool, tc.version); got != tc.want {
				t.Errorf("%s\nwant %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

func TestParseReleases(t *testing.T) {
	for name, tc := range map[string]struct{ reason, data string }{
		"Nothing": {"An entry without files or a reason would be built for no reason.", "tool: {}\n"},
		"Both":    {"A tool is published or built.", "tool: {built: why, files: [{url: x, program: y}]}\n"},
		"NoNames": {"A file without programs would make an empty folder.", "tool: {files: [{url: x}]}\n"},
		"Twice":   {"A file is a program or an archive.", "tool: {files: [{url: x, program: y, members: {y: z}}]}\n"},
		"Field":   {"A mistyped field would have no effect.", "tool: {built: why, build: why}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if parsed, err := parseReleases([]byte(tc.data)); err == nil {
				t.Errorf("%s\ngot %v", tc.reason, parsed)
			}
		})
	}
}
