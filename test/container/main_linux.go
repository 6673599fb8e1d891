// SPDX-License-Identifier: Apache-2.0

package container

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/capstan-dev/capstan/test/outside"
)

// Program is the program of the package under test as it is built for its image. Main builds it.
var Program string

// Main runs the tests of a package that is the program of an image, and returns the exit code. In a container it becomes the program instead.
func Main(m *testing.M) int {
	if raw := os.Getenv(asContainer); raw != "" {
		fmt.Fprintln(os.Stderr, become(raw))
		return 1
	}
	dir, err := os.MkdirTemp("", "capstan-member-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)  //nolint:errcheck // A folder for temporary files.
	_ = os.Chmod(dir, 0o755) //nolint:gosec // Containers are another user than the test.
	Program = filepath.Join(dir, "capstan-member")
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", Program, "."}
	build := exec.CommandContext(context.Background(), "go", args...) //nolint:gosec // Its path is made here.
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot build the program: %v: %s\n", err, out)
		return 1
	}
	return outside.Main(m)
}
