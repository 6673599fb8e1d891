// SPDX-License-Identifier: Apache-2.0

// Command member-image makes an image of members from packages of Debian, without Docker, and what comes before and after it. IMAGE is
// the name of a folder below images, such as postgres.
//
//	go run ./member-image lock IMAGE      resolve the packages again, on Debian; write the image's packages.lock, and its file in apis/members/catalogue
//	go run ./member-image build IMAGE     fill the cache with the layers that ./package makes an image of, and print their sizes
//	go run ./member-image rootfs IMAGE    unpack them below the cache and print the folder
//	go run ./member-image unpack IMAGE D  unpack them into the folder D, which a Containerfile makes an image of
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
	"github.com/capstan-dev/capstan/hack/internal/memberimage"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

type cli struct {
	Lock   lockCmd   `cmd:"" help:"Resolve the packages again and write the lock and the catalogue."`
	Build  buildCmd  `cmd:"" help:"Build the layers that the cache lacks and print their sizes."`
	Rootfs rootfsCmd `cmd:"" help:"Print the folder of the cache that has the image's files, and unpack them unless they are there."`
	Unpack unpackCmd `cmd:"" help:"Unpack the image's files into a folder."`
}

// named is the argument of every command.
type named struct {
	Image string `arg:"" help:"Name of the image: a folder below images."`
}

type (
	lockCmd  struct{ named }
	buildCmd struct {
		named

		Platform []string `default:"${platform}" help:"Platforms to build for."`
	}
	rootfsCmd struct{ named }
	unpackCmd struct {
		named

		Platform string `default:"${platform}" help:"Platform to unpack for."`
		Dir      string `arg:""                help:"Folder that does not exist yet, or is empty." type:"path"`
	}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	command := kong.Parse(&c,
		kong.Name("member-image"),
		kong.Description("Make an image of members from packages of Debian."),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Vars{"platform": "linux/" + runtime.GOARCH},
	)
	root, err := build.Repository()
	if err == nil {
		var b *memberimage.Builder
		if b, err = memberimage.New(ctx, root, progress.New(os.Stderr)); err == nil {
			err = command.Run(b)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "member-image:", err)
		stop()
		os.Exit(1) //nolint:gocritic // The only deferred call is made above.
	}
}

func (c lockCmd) Run(ctx context.Context, b *memberimage.Builder) error {
	image, err := memberimage.Named(c.Image)
	if err != nil {
		return err
	}
	return b.Lock(ctx, image)
}

func (c buildCmd) Run(ctx context.Context, b *memberimage.Builder) error {
	image, err := memberimage.Named(c.Image)
	if err != nil {
		return err
	}
	for _, platform := range c.Platform {
		layers, err := b.Layers(ctx, image, platform)
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
		b.Sayf("%s for %s: %d layers, %.1f MB compressed", image.Name, platform, len(layers), float64(total)/1e6)
	}
	return nil
}

func (c rootfsCmd) Run(ctx context.Context, b *memberimage.Builder) error {
	image, err := memberimage.Named(c.Image)
	if err != nil {
		return err
	}
	dir, err := b.Rootfs(ctx, image, "linux/"+runtime.GOARCH)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, dir)
	return err
}

func (c unpackCmd) Run(ctx context.Context, b *memberimage.Builder) error {
	image, err := memberimage.Named(c.Image)
	if err != nil {
		return err
	}
	layers, err := b.Layers(ctx, image, c.Platform)
	if err != nil {
		return err
	}
	return b.Step("unpack into "+c.Dir, nil, func() error { return memberimage.Unpack(layers, c.Dir) })
}
