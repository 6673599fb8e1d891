// SPDX-License-Identifier: Apache-2.0

package portable

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestProgramsBuildForMacOS builds what a laptop runs. The cluster itself needs Linux.
func TestProgramsBuildForMacOS(t *testing.T) {
	for _, program := range []string{"package", "render", "generate"} {
		t.Run(program, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(t.TempDir(), program), "./"+program)
			cmd.Dir = "../.."
			cmd.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
