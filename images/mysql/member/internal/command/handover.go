// SPDX-License-Identifier: Apache-2.0

// Package command has the programs beside the one that runs a member: what the kubelet calls in its container, and those in pods of their own.
package command

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/handover"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// Handover makes another member the leader before the pod stops.
type Handover struct {
	layout.Names
}

// Run hands over. It does not fail: the running member tries again when a signal stops it.
func (c *Handover) Run(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, handover.Limit)
	defer cancel()
	said, err := c.handover(ctx)
	if err != nil {
		said = "not handed over: " + err.Error()
	}
	log.Info(said)
	return nil
}

func (c *Handover) handover(ctx context.Context) (string, error) {
	if err := handover.Announce(); err != nil {
		return "", err
	}
	server, err := mysql.Own()
	if err != nil {
		return "", err
	}
	defer server.Close()
	stopping, known := c.stopping(ctx)
	said, err := handover.Leave(ctx, server, c.Scope, stopping)
	if known && !slices.Contains(stopping, c.Pod) {
		// A person called it, and the member continues. If the kubelet restarts the container alone, its signal comes next.
		return said, errors.Join(err, handover.Recall(ctx, server))
	}
	// What a hook writes is in no log of the pod.
	return said, errors.Join(err, handover.Said(said))
}

// stopping pods, and whether they are known.
func (c *Handover) stopping(ctx context.Context) ([]string, bool) {
	k, err := kube.InCluster()
	if err != nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, kube.Timeout)
	defer cancel()
	list, err := pods.New(k, c.Namespace, c.Pod, c.Database).List(ctx)
	return pods.Stopping(list), err == nil
}
