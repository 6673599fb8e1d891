// SPDX-License-Identifier: Apache-2.0

// Command programs makes sure that pinned tools of hack/tools are in the cache, and prints where, for a shell to evaluate:
//
//	eval "$(go run ./programs versitygw mlflow)"
//
// sets CAPSTAN_PROGRAM_VERSITYGW to the folder that holds the program versitygw, and CAPSTAN_PROGRAM_MLFLOW to a Python virtual
// environment, whose interpreter is bin/python3 in it. A dash in the name of a tool becomes an underscore.
//
// The name mysql is the one of the image of MySQL's members: CAPSTAN_PROGRAM_MYSQL is a folder with mysqld, mysql and others of its
// programs, which run on this machine with the loader, the libraries and the files of the image.
//
// The name chromium is the browser that Debian has for tests, without a window: it is installed, and CAPSTAN_PROGRAM_CHROMIUM is the folder with
// the program chromium-headless-shell.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/host"
	"github.com/capstan-dev/capstan/hack/internal/memberimage"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

type command struct {
	Tools []string `arg:"" help:"Names of folders below hack/tools, mysql or chromium."`
}

func main() {
	var cmd command
	kong.Parse(&cmd, kong.Description("Make sure that pinned tools are in the cache, and print where, for a shell to evaluate."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cmd.run(ctx, os.Stdout, progress.New(os.Stderr))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(1)
	}
}

// run prints nothing unless every tool is there: half a list would let a test start that cannot end well.
func (c *command) run(ctx context.Context, stdout io.Writer, p *progress.Printer) error {
	root, err := build.Repository()
	if err != nil {
		return err
	}
	b, err := build.ForRepository(ctx, root)
	if err != nil {
		return err
	}
	tools := slices.DeleteFunc(slices.Clone(c.Tools), func(name string) bool { return isImage(name) || name == browser })
	if build.NeedsPython(tools...) {
		if err := host.Install(ctx, p, build.PythonVenv); err != nil {
			return err
		}
	}
	if slices.Contains(c.Tools, browser) {
		if err := host.Install(ctx, p, host.Chromium); err != nil {
			return err
		}
	}
	if slices.Contains(c.Tools, "flink") || slices.Contains(c.Tools, "spark") {
		if err := host.InstallJava(ctx, p); err != nil {
			return err
		}
	}
	if err := b.Ensure(ctx, p, tools...); err != nil {
		return err
	}
	images, err := memberimage.New(ctx, root, p)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, tool := range c.Tools {
		var dir string
		switch {
		case isImage(tool):
			dir, err = images.Programs(ctx, memberimage.MySQL())
		case tool == browser:
			dir = browserFolder
		default:
			dir, err = b.Dir(tool)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "export %s=%q\n", variable(tool), dir)
	}
	_, err = io.WriteString(stdout, out.String())
	return err
}

// The browser, and where Debian installs it.
const (
	browser       = "chromium"
	browserFolder = "/usr/bin"
)

func isImage(name string) bool { return name == memberimage.MySQL().Name }

func variable(tool string) string {
	return "CAPSTAN_PROGRAM_" + strings.ToUpper(strings.ReplaceAll(tool, "-", "_"))
}
