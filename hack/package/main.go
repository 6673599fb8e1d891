// SPDX-License-Identifier: Apache-2.0

// Command package builds Capstan's packages without Docker, pushes them, and installs them with the official CLI.
//
//	go run ./package build                                 into _output/packages, for amd64 and arm64
//	go run ./package push --registry registry.localhost:5000
//	go run ./package install --registry registry.localhost:5000
//	go run ./package release --registry registry.localhost:5000   all of it for others, signed; see docs/releasing.md
//
// Packages are named after their public registry wherever they are pushed to; a mirror is a rewrite (package/mirror.yaml).
// A version that was pushed never changes: nodes keep what they pulled, so new content needs a new version.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/mod/semver"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/cosign"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

type cli struct {
	Version string `default:"v0.1.0"                                                              env:"VERSION" help:"Version to build, push or install, as in v0.1.0."`
	Output  string `help:"Folder of built packages. Default: _output/packages of the repository." type:"path"`

	Build   buildCmd   `cmd:"" help:"Build packages and images."`
	Push    pushCmd    `cmd:"" help:"Push what was built to a registry."`
	Install installCmd `cmd:"" help:"Install a version on the cluster of KUBECONFIG, or upgrade to it."`
	Release releaseCmd `cmd:"" help:"Build, sign and push everything, and write the files to install it from."`
}

// A project is the repository and what every command needs to know.
type project struct {
	*progress.Printer

	root    string
	output  string
	version string
	// crossplane is the program of the official CLI.
	crossplane string
	// created is the time that images carry; 1970 when it is zero.
	created time.Time
	// env is added to the environment of the Go toolchain.
	env []string
	// pins are the digests of what is built already, by repository. Without one, a package depends on a range of versions, and the function
	// names an image by its tag only.
	pins map[string]string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	command := kong.Parse(&c,
		kong.Name("package"),
		kong.Description("Build, push and install Capstan's packages."),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Vars{"registry": publicRegistry, "log": cosign.PublicLog},
	)
	p, err := open(ctx, c.Version, c.Output, progress.New(os.Stderr))
	if err == nil {
		err = command.Run(p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		stop()
		os.Exit(1) //nolint:gocritic // The only deferred call is made above.
	}
}

// open finds the repository around the working folder and builds the official CLI unless it was built before.
func open(ctx context.Context, version, output string, p *progress.Printer) (*project, error) {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return nil, fmt.Errorf("cannot use version %q: a version looks like v0.1.0 or v0.1.0-rc.1", version)
	}
	root, err := build.Repository()
	if err != nil {
		return nil, err
	}
	builder, err := build.ForRepository(ctx, root)
	if err != nil {
		return nil, err
	}
	if err := builder.Ensure(ctx, p, "crossplane-cli"); err != nil {
		return nil, err
	}
	dir, err := builder.Dir("crossplane-cli")
	if err != nil {
		return nil, err
	}
	if output == "" {
		output = filepath.Join(root, "_output", "packages")
	}
	return &project{
		Printer: p, root: root, output: output, version: version, crossplane: filepath.Join(dir, "crossplane"),
	}, nil
}
