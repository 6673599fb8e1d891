// SPDX-License-Identifier: Apache-2.0

// Command releases maintains what the embedded cluster downloads instead of compiling it (see hack/internal/download):
//
//	go -C hack run ./releases pin              # pin the publishers' checksums of the versions in hack/tools; needs internet
//	go -C hack run ./releases mirror DIR       # lay out the programs that are built here as a mirror of our own
//	go -C hack run ./releases serve DIR        # serve a mirror on this machine
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/hack/internal/build"
	"github.com/capstan-dev/capstan/hack/internal/download"
)

type command struct {
	Pin    pinCommand    `cmd:"" help:"Pin the publishers' checksums of the versions in hack/tools. Needs internet."`
	Mirror mirrorCommand `cmd:"" help:"Lay out the programs that are built here as a mirror of our own."`
	Serve  serveCommand  `cmd:"" help:"Serve a mirror on this machine."`
}

type pinCommand struct {
	Tools []string `arg:"" help:"Names of folders below hack/tools; all without." optional:""`
}

type mirrorCommand struct {
	Dir string `arg:"" help:"Folder to write to."`
}

type serveCommand struct {
	Dir     string `arg:""                   help:"Folder that mirror wrote." type:"existingdir"`
	Address string `default:"127.0.0.1:8099" help:"Address to listen on."`
}

func main() {
	var cmd command
	parsed := kong.Parse(&cmd, kong.Description("Maintain what the embedded cluster downloads instead of compiling it."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	parsed.BindTo(ctx, (*context.Context)(nil))
	parsed.BindTo(os.Stdout, (*io.Writer)(nil))
	err := parsed.Run()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "releases:", err)
		os.Exit(1)
	}
}

// Run pins what it can and fails when something is missing: a site that does not answer costs only the pins of its tools.
func (c *pinCommand) Run(ctx context.Context, stdout io.Writer) error {
	builder, downloader, err := setUp(ctx)
	if err != nil {
		return err
	}
	file := filepath.Join(builder.Source, filepath.FromSlash(download.PinsFile))
	pins, err := download.ReadPins(file)
	if err != nil {
		return err
	}
	tools := c.Tools
	if len(tools) == 0 {
		tools = downloader.Tools()
	}
	var failures []error
	for _, tool := range tools {
		version, err := builder.Version(tool)
		if err != nil {
			return err
		}
		// Pins of other versions are removed even without fresh ones.
		fresh, publishedErr := downloader.Published(ctx, tool, version)
		merged, mergeErr := pins.Merge(tool, version, fresh)
		if err := errors.Join(publishedErr, mergeErr); err != nil {
			failures = append(failures, err)
		} else {
			_, _ = fmt.Fprintf(stdout, "pinned %s %s: %d files\n", tool, version, len(fresh))
		}
		if mergeErr == nil {
			pins = merged
		}
	}
	return errors.Join(errors.Join(failures...), pins.Write(file))
}

// Run takes what is built for this machine, and names the tools that are not built yet.
func (c *mirrorCommand) Run(ctx context.Context, stdout io.Writer) error {
	builder, downloader, err := setUp(ctx)
	if err != nil {
		return err
	}
	var pins download.Pins
	for _, tool := range downloader.Tools() {
		version, err := builder.Version(tool)
		if err != nil {
			return err
		}
		programs, err := builder.Dir(tool)
		if err != nil {
			return err
		}
		if _, err := os.Stat(programs); err != nil {
			_, _ = fmt.Fprintf(stdout, "left out %s: it is not built yet\n", tool)
			continue
		}
		made, err := downloader.LayOut(download.Request{Tool: tool, Version: version, Arch: runtime.GOARCH}, programs, c.Dir)
		if err != nil {
			return err
		}
		pins = append(pins, made...)
		_, _ = fmt.Fprintf(stdout, "laid out %s %s\n", tool, version)
	}
	if len(pins) == 0 {
		return errors.New("cannot lay out a mirror: nothing is built yet: run `hack/capstan-cluster build` first")
	}
	return pins.Write(filepath.Join(c.Dir, pinsName))
}

// pinsName is the file of pins in the folder of a mirror.
const pinsName = "pins.yaml"

// Run serves until it is interrupted.
func (c *serveCommand) Run(ctx context.Context, stdout io.Writer) error {
	listener, err := net.Listen("tcp", c.Address)
	if err != nil {
		return fmt.Errorf("cannot serve the mirror: %w", err)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return fmt.Errorf("cannot serve the mirror: %w", err)
	}
	_, _ = fmt.Fprintf(stdout, "export %s=http://%s %s=%s\n",
		download.MirrorVariable, listener.Addr(), download.PinsVariable, filepath.Join(dir, pinsName))
	server := &http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve the mirror: %w", err)
	}
	return nil
}

func setUp(ctx context.Context) (*build.Builder, *download.Downloader, error) {
	root, err := build.Repository()
	if err != nil {
		return nil, nil, err
	}
	builder, err := build.ForRepository(ctx, root)
	if err != nil {
		return nil, nil, err
	}
	downloader, err := download.FromEnvironment()
	return builder, downloader, err
}
