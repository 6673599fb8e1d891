// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/capstan-dev/capstan/hack/internal/host"
	"github.com/capstan-dev/capstan/hack/internal/image"
)

// BusyboxRepository and BusyboxTag name the image with a shell, wget and nc for test pods. Debian's wget crashes when it is
// given -T: put timeout in front of it instead.
const (
	BusyboxRepository = "busybox"
	BusyboxTag        = "1.35"
)

// busybox pushes the image with the usual small tools and returns its reference.
func busybox(ctx context.Context, env *Env) (string, error) {
	program, err := locate(env.Programs.Dir(host.Busybox), "bin/busybox")
	if err != nil {
		return "", err
	}
	files := []image.File{
		{Path: "/bin/busybox", Mode: 0o755, Source: program},
		{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
	tools, err := exec.CommandContext(ctx, program, "--list").Output()
	if err != nil {
		return "", fmt.Errorf("cannot list the tools of busybox: %w", err)
	}
	for tool := range strings.FieldsSeq(string(tools)) {
		if tool != "busybox" {
			files = append(files, image.File{Path: "/bin/" + tool, Link: "busybox"})
		}
	}
	return env.Registry.Ensure(ctx, BusyboxRepository, BusyboxTag, image.Spec{
		Platform: platform(), Files: files, Env: []string{"PATH=/bin"},
	})
}

// locate finds a file of a Debian package, which newer releases have below usr.
func locate(dir, pattern string) (string, error) {
	for _, root := range []string{dir, filepath.Join(dir, "usr")} {
		if found, err := filepath.Glob(filepath.Join(root, pattern)); err == nil && len(found) > 0 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("cannot find %q in %s", pattern, dir)
}
