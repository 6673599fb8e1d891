// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/capstan-dev/capstan/apis/crew"
)

// TestKilled has the kernel's count decide whether SIGKILL was for want of memory.
func TestKilled(t *testing.T) {
	cases := map[string]struct {
		reason string
		events string
		exit   Exit
		class  crew.Class
		says   string
	}{
		"Rose":    {"The kernel killed a process of the container.", "oom 3\noom_kill 3\n", Exit{Signal: syscall.SIGKILL}, crew.ClassOutOfMemory, "because the memory of its container was not enough (limit 64 MiB)"},
		"Shell":   {"A shell reports the same as an exit code.", "oom_kill 3\n", Exit{Code: 128 + 9}, crew.ClassOutOfMemory, "because the memory"},
		"Same":    {"The kernel killed none since the process began.", "oom_kill 2\n", Exit{Signal: syscall.SIGKILL}, crew.ClassInfrastructure, `by the signal "killed" from elsewhere`},
		"Unknown": {"Without a count nothing says that it was for memory.", "", Exit{Signal: syscall.SIGKILL}, crew.ClassInfrastructure, "does not say whether the memory of its container was not enough (limit 64 MiB)"},
		"NoCount": {"An old kernel has the file, but not the count.", "oom 3\n", Exit{Code: 128 + 9}, crew.ClassInfrastructure, "does not say"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := Memory{Root: t.TempDir()}
			files := map[string]string{"memory.max": "67108864\n"}
			if tc.events != "" {
				files["memory.events"] = tc.events
			}
			for file, text := range files {
				if err := os.WriteFile(filepath.Join(m.Root, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			e := Explain(tc.exit, "", m.Since(2))
			if e.Class != tc.class || !strings.Contains(e.Message, tc.says) {
				t.Errorf("%s: want %s and %q, got %s: %s", tc.reason, tc.class, tc.says, e.Class, e.Message)
			}
		})
	}
}
