// SPDX-License-Identifier: Apache-2.0

// Package command has the programs that run beside a member: programs that Patroni, PostgreSQL and the kubelet call in its
// container, and programs of poolers, Jobs and hosts of repositories, which have pods of their own.
package command

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/bouncer"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dcs"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/notes"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/postmaster"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/promotion"
)

// Callback notifies the running member of a change.
type Callback struct {
	Words []string `arg:"" help:"What Patroni says: the action, the role and the scope." optional:""`
}

// Run notifies it, and does not fail: the running member checks by itself a few seconds later.
func (c *Callback) Run(ctx context.Context, log *slog.Logger) error {
	if err := notes.Send(ctx, strings.Join(c.Words, " ")); err != nil {
		log.Warn("cannot notify the running member", "error", err)
	}
	return nil
}

const (
	// leadsLimit is how long Patroni gets to report whether this member is the leader.
	leadsLimit = 500 * time.Millisecond
	// stopAhead is how long PostgreSQL gets to stop before Patroni stops it. Without clients that is 0.2 s; what takes longer,
	// such as the last of an archive, Patroni knows how to wait for.
	stopAhead = time.Second
)

// BeforeStop does what a leader does before Patroni stops its PostgreSQL.
type BeforeStop struct {
	layout.Names
}

// Run does it, and does not fail: PostgreSQL stops in any case.
func (c *BeforeStop) Run(ctx context.Context, log *slog.Logger) error {
	begun := time.Now()
	ask, cancel := context.WithTimeout(ctx, leadsLimit)
	defer cancel()
	leads, err := patroni.At(c.IP).HasLock(ask)
	if err != nil {
		log.Warn("cannot find out whether this member is the leader", "error", err)
		return nil
	}
	if !leads {
		return nil // no client waits for it, or another may lead already
	}
	if w, err := layout.ReadConfig(); err != nil || w.Pooled {
		var said string
		if k, err := kube.InCluster(); err != nil {
			said = "clients of poolers do not wait: " + err.Error()
		} else {
			said = bouncer.PauseAll(ctx, k, c.Names)
		}
		log.Info(said, "took", time.Since(begun).Round(time.Millisecond).String())
	}
	pid, running := postmaster.Find(pgmember.FolderData)
	if !running {
		return nil
	}
	begun = time.Now()
	ctx, cancel = context.WithTimeout(ctx, stopAhead)
	defer cancel()
	postmaster.Stop(ctx, pgmember.FolderData)
	// Patroni takes one that is not buried yet for one that runs.
	log.Info("stopping PostgreSQL", "stopped", process.Gone(ctx, pid), "took", time.Since(begun).Round(time.Millisecond).String())
	return nil
}

// BeforePromotion holds the promotion of a member that has the leader's lock.
type BeforePromotion struct {
	layout.Names
}

// Run waits until the member may be promoted. With an error Patroni releases the lock.
func (c *BeforePromotion) Run(ctx context.Context, log *slog.Logger) error {
	k, err := kube.InCluster()
	if err != nil {
		return err
	}
	g := promotion.Guard{Names: c.Names, DCS: dcs.New(k, c.Namespace, c.Scope), Pods: pods.New(k, c.Namespace, c.Pod, c.Database), Log: log}
	if err := g.Wait(ctx); err != nil {
		return fmt.Errorf("cannot be promoted: %w", err)
	}
	return nil
}

// Limits of a handover. The whole handover is part of the time that the pod has to stop.
const (
	askLimit      = 5 * time.Second
	handoverLimit = 15 * time.Second
	followLimit   = 10 * time.Second
)

// Handover makes another member the leader before the pod stops.
type Handover struct {
	layout.Names
}

// Run hands over. It does not fail: a leader that stops without it releases its lock as well, a moment later.
func (c *Handover) Run(ctx context.Context, log *slog.Logger) error {
	said, err := c.handover(ctx)
	if err != nil {
		said = "not handed over: " + err.Error()
	}
	log.Info(said)
	// What a hook writes is in no log of the pod.
	if err := notes.Send(context.WithoutCancel(ctx), "handover: "+said); err != nil {
		log.Warn("cannot notify the running member", "error", err)
	}
	return nil
}

// handover if this member is the leader and another is fit, and return what was done.
func (c *Handover) handover(ctx context.Context) (string, error) {
	client := patroni.At(c.IP)
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
	said := fmt.Sprintf("another member is the leader after %s", time.Since(begun).Round(time.Millisecond))
	// A member that follows again shows its clients that it is no longer the leader. One that stops shows nothing.
	follow, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	for follow.Err() == nil {
		if s, err := client.State(follow); err == nil && s.Follows() {
			return said + ", and this member follows it", nil
		}
		loop.Sleep(follow, 200*time.Millisecond)
	}
	return said, nil
}

// stopping returns the pods that were deleted.
func (c *Handover) stopping(ctx context.Context) ([]string, error) {
	k, err := kube.InCluster()
	if err != nil {
		return nil, err
	}
	list, err := pods.New(k, c.Namespace, c.Pod, c.Database).List(ctx)
	if err != nil {
		return nil, err
	}
	return pods.Stopping(list), nil
}
