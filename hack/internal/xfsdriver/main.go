// SPDX-License-Identifier: Apache-2.0

// Command xfsdriver is the CSI driver of the embedded cluster: each volume is an XFS file system on a file of the node it was made
// on. Such a volume is as large as requested and not a byte larger, and grows while it is mounted. It needs nothing but
// loop devices and xfsprogs, and leaves nothing: a loop device goes with its mount, and a mount with its machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type command struct {
	Endpoint string `help:"Path of the socket to serve CSI at."                                                        required:""`
	Node     string `help:"Name of the node that volumes are made on; none for a controller that only lets them grow."`
	Folder   string `help:"Folder of the node that holds the files of volumes."`
	Register string `help:"Path of the socket by which the kubelet finds the driver; none for a controller."`
}

func main() {
	c := command{}
	parsed := kong.Parse(&c, kong.Name("xfsdriver"), kong.Description("CSI driver of XFS file systems on loop devices."))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	parsed.FatalIfErrorf(c.run(ctx))
}

// run serves until the context ends.
func (c *command) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return serve(ctx, c.Endpoint, func(s *grpc.Server) {
			csi.RegisterIdentityServer(s, identity{})
			csi.RegisterControllerServer(s, &controller{disks: disks{folder: c.Folder}, node: c.Node})
			if c.Node != "" {
				csi.RegisterNodeServer(s, newNode(disks{folder: c.Folder}, c.Node))
			}
		})
	})
	if c.Register != "" {
		group.Go(func() error {
			return serve(ctx, c.Register, func(s *grpc.Server) {
				registration.RegisterRegistrationServer(s, registrar{endpoint: c.Endpoint})
			})
		})
	}
	return group.Wait()
}

// serve gRPC at a path until the context ends. A socket that another life has left there is removed.
func serve(ctx context.Context, path string, register func(*grpc.Server)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("cannot serve at %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot serve at %s: %w", path, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("cannot serve at %s: %w", path, err)
	}
	s := grpc.NewServer()
	register(s)
	context.AfterFunc(ctx, s.GracefulStop)
	if err := s.Serve(listener); err != nil {
		return fmt.Errorf("cannot serve at %s: %w", path, err)
	}
	return nil
}
