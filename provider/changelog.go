// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	changelogsv1alpha1 "github.com/crossplane/crossplane-runtime/v2/apis/changelogs/proto/v1alpha1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
)

// changes are reported to a sidecar at a Unix socket, if one was named. They hold managed resources, and so never a password.
func (c *CLI) changes(ctx context.Context) (*controller.ChangeLogOptions, error) {
	if c.ChangeLogSocket == "" {
		return nil, nil //nolint:nilnil // No change log is what was asked for.
	}

	// Nothing leaves the pod: the socket is shared by its containers.
	conn, err := grpc.NewClient("unix://"+c.ChangeLogSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("cannot use change log socket %q: %w", c.ChangeLogSocket, err)
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &controller.ChangeLogOptions{
		ChangeLogger: managed.NewGRPCChangeLogger(
			changelogsv1alpha1.NewChangeLogServiceClient(conn), managed.WithProviderVersion("provider-capstan")),
	}, nil
}
