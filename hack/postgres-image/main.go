// SPDX-License-Identifier: Apache-2.0

// Command postgres-image makes the image postgres from packages of Debian, without Docker, and what comes before and after it.
//
//	go run ./postgres-image lock      resolve the packages again, on Debian; write images/postgres/packages.lock and apis/members/catalogue/postgres.yaml
//	go run ./postgres-image build     fill the cache with the layers that ./package makes an image of, and print their sizes
//	go run ./postgres-image rootfs    unpack them below the cache and print the folder
//	go run ./postgres-image unpack D  unpack them into the folder D, which a Containerfile makes an image of
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/postgres"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

type cli struct {
	Lock   lockCmd   `cmd:"" help:"Resolve the packages again and write the lock and the catalogue."`
	Build  buildCmd  `cmd:"" help:"Build the layers that the cache lacks and print their sizes."`
	Rootfs rootfsCmd `cmd:"" help:"Print the folder of the cache that has the image's files, and unpack them unless they are there."`
	Unpack unpackCmd `cmd:"" help:"Unpack the image's files into a folder."`
}

type (
	lockCmd  struct{}
	buildCmd struct {
		Platform []string `default:"${platform}" help:"Platforms to build for."`
	}
	rootfsCmd struct{}
	unpackCmd struct {
		Platform string `default:"${platform}" help:"Platform to unpack for."`
		Dir      string `arg:""                help:"Folder that does not exist yet, or is empty." type:"path"`
	}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	command := kong.Parse(&c,
		kong.Name("postgres-image"),
		kong.Description("Make the image postgres from packages of Debian."),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Vars{"platform": "linux/" + runtime.GOARCH},
	)
	root, err := build.Repository()
	if err == nil {
		var b *postgres.Builder
		if b, err = postgres.New(ctx, root, progress.New(os.Stderr)); err == nil {
			err = command.Run(b)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "postgres-image:", err)
		stop()
		os.Exit(1) //nolint:gocritic // The only deferred call is made above.
	}
}

func (lockCmd) Run(ctx context.Context, b *postgres.Builder) error { return b.Lock(ctx) }

func (c buildCmd) Run(ctx context.Context, b *postgres.Builder) error {
	for _, platform := range c.Platform {
		layers, err := b.Layers(ctx, platform)
		if err != nil {
			return err
		}
		var total int64
		for _, l := range layers {
			size, err := l.Size()
			if err != nil {
				return err
			}
			total += size
		}
		b.Sayf("postgres for %s: %d layers, %.1f MB compressed", platform, len(layers), float64(total)/1e6)
	}
	return nil
}

func (rootfsCmd) Run(ctx context.Context, b *postgres.Builder) error {
	dir, err := b.Rootfs(ctx, "linux/"+runtime.GOARCH)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, dir)
	return err
}

func (c unpackCmd) Run(ctx context.Context, b *postgres.Builder) error {
	layers, err := b.Layers(ctx, c.Platform)
	if err != nil {
		return err
	}
	return b.Step("unpack into "+c.Dir, nil, func() error { return postgres.Unpack(layers, c.Dir) })
}
