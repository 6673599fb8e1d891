// SPDX-License-Identifier: Apache-2.0

// Package command has the program that the kubelet calls beside a member, in its container.
package command

import (
	"context"
	"log/slog"

	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/handover"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// Handover lets another member lead before the pod stops.
type Handover struct {
	layout.Names
}

// Run hands over. It does not fail: the running member tries again when it is told to stop.
func (c *Handover) Run(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, handover.Limit)
	defer cancel()
	said, err := c.handover(ctx)
	if err != nil {
		said = "not handed over: " + err.Error()
	}
	log.Info(said)
	// What a hook writes is in no log of the pod.
	if err := handover.Said(said); err != nil {
		log.Warn("cannot tell the running member", "error", err)
	}
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
	var stopping []string
	if k, err := kube.InCluster(); err == nil {
		ask, cancel := context.WithTimeout(ctx, kube.Timeout)
		defer cancel()
		if list, err := pods.New(k, c.Namespace, c.Pod, c.Database).List(ask); err == nil {
			stopping = pods.Stopping(list)
		}
	}
	return handover.Leave(ctx, server, stopping)
}
