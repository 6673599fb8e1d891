// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capstan-dev/capstan/images/companion/internal/activator"
	"github.com/capstan-dev/capstan/images/companion/internal/failure"
)

// holdCmd takes the requests for an Algorithm that is asleep.
type holdCmd struct {
	Upstream  string        `help:"Host and port of the replicas."                   placeholder:"HOST:PORT"                                             required:""`
	Analysis  string        `help:"Analysis whose status says that a request waits." placeholder:"NAME"                                                  required:""`
	Namespace string        `help:"Namespace of the Analysis."                       placeholder:"NAME"                                                  required:""`
	Wait      time.Duration `default:"10m"                                           help:"How long a request is held at most."`
	Listen    string        `default:":8080"                                         help:"Address for requests."`
	Ready     string        `default:":9902"                                         help:"Address that answers on /ready whether requests can be held."`
}

// Run until a signal comes, and then until the requests that are held have their responses.
func (c *holdCmd) Run(ctx context.Context, log *slog.Logger) error {
	if c.Wait <= 0 {
		return failure.New(failure.Invalid, "--wait must be more than nothing", "correct the command line")
	}
	bell, err := activator.InCluster(c.Namespace, c.Analysis)
	if err != nil {
		return fmt.Errorf("cannot use the API server: %w", err)
	}
	a := activator.New(log, c.Upstream, c.Wait, bell.Ring)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return serve(gctx, c.Listen, a.Server(), c.Wait) })
	g.Go(func() error { return serve(gctx, c.Ready, a.Admin(bell.Check), time.Second) })
	if err := g.Wait(); err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

// serve until the context ends, and then for some time what has begun.
func serve(ctx context.Context, address string, srv *http.Server, grace time.Duration) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if srv.Shutdown(last) != nil {
		_ = srv.Close()
	}
	<-failed
	return nil
}
