// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pods"
)

// Limits of a handover, all of which is part of the time that the pod has to stop.
const (
	askLimit      = 5 * time.Second
	handoverLimit = 15 * time.Second
	followLimit   = 10 * time.Second
)

// handoverCmd hands the lead over before the pod stops.
type handoverCmd struct {
	layout.Names
}

// Run hands over. It does not fail: a leader that stops without it gives up its lock as well, a moment later.
func (c *handoverCmd) Run(ctx context.Context, log *slog.Logger) error { //nolint:unparam // Kong wants it so.
	said, err := c.handover(ctx)
	if err != nil {
		said = "not handed over: " + err.Error()
	}
	log.Info(said)
	// What a hook writes is in no log of the pod.
	if err := note(context.WithoutCancel(ctx), "handover: "+said); err != nil {
		log.Warn("cannot tell the running member", "error", err)
	}
	return nil
}

// handover if this member leads and another is fit, and say what was done.
func (c *handoverCmd) handover(ctx context.Context) (string, error) {
	client := patroni.New(c.Address(layout.PortPatroni), layout.TLS)
	ask, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	s, err := client.State(ask)
	if err != nil {
		return "", err
	}
	if !s.Leads {
		return "nothing to hand over", nil
	}
	peers, _, err := client.Cluster(ask)
	if err != nil {
		return "", err
	}
	stopping, err := c.stopping(ask)
	if err != nil {
		return "", err
	}
	candidate := patroni.Candidate(peers, c.Pod, stopping)
	if candidate == "" {
		return "no other member is fit to lead", nil
	}
	begun := time.Now()
	switchover, cancel := context.WithTimeout(ctx, handoverLimit)
	defer cancel()
	named := ""
	if len(slices.DeleteFunc(stopping, func(pod string) bool { return pod == c.Pod })) > 0 {
		named = candidate // Patroni does not know who stops as well
	}
	if err := client.Switchover(switchover, c.Pod, named); err != nil {
		return "", err
	}
	said := fmt.Sprintf("another member leads after %s", time.Since(begun).Round(time.Millisecond))
	// The clients of one that follows again learn from it that it leads no more. One that stops says nothing.
	follow, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	for follow.Err() == nil {
		if s, err := client.State(follow); err == nil && s.Follows() {
			return said + ", and this member follows it", nil
		}
		sleep(follow, 200*time.Millisecond)
	}
	return said, nil
}

// stopping returns the pods that were deleted.
func (c *handoverCmd) stopping(ctx context.Context) ([]string, error) {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot reach the API server: %w", err)
	}
	client, err := pods.New(cfg, c.Namespace, c.Pod, c.Database)
	if err != nil {
		return nil, err
	}
	list, err := client.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range list {
		if p.Stopping {
			out = append(out, p.Name)
		}
	}
	return out, nil
}
