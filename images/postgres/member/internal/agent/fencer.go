// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/bouncer"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dcs"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
)

const (
	// fenceAgain is the pause after a try to stop that was blocked.
	fenceAgain = 2 * time.Second
	// fenceLag is how far the copy may be behind a leader that is about to stop, in bytes. It receives the rest while the leader
	// stops.
	fenceLag = 16 << 20
	// announceEvery is how often the pod's annotation is written, which a person may remove, and announceAgain the pause after a try
	// that failed.
	announceEvery = time.Hour
	announceAgain = 10 * time.Second
)

// A Fencer stops Patroni when there is a fence and this member is the leader. The gate stops PostgreSQL, also after a restart.
//
// A fence stops the leader of a generation for good, so that another generation continues from exactly there. It is a key of
// Patroni's configuration, beside the key that pauses Patroni: a member that has read one has read the other. In a pause no
// member is promoted, and PostgreSQL continues without Patroni. Standbys continue to serve reads. Without the fence the leader
// starts again, and nothing was changed. Package fence has how long it lasts, and who ends it.
type Fencer struct {
	names      layout.Names
	pods       *pods.Client
	dcs        *dcs.Client
	kube       kube.Client
	supervisor *Supervisor
	leads      func() bool
	reporter   *report.Reporter
	wake       loop.Wakeup
	log        *slog.Logger
}

// Run until the context ends.
func (f *Fencer) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		}
		child := f.supervisor.Child()
		if child == nil { // the gate looks after the fence
			f.reporter.Clear(members.ReasonCannotFence)
			continue
		}
		// A standby does this as well: the leader may be lost.
		o, err := f.dcs.SettleFence(ctx, time.Now())
		id := o.InForce()
		if !f.leads() || err == nil && id == "" {
			f.reporter.Clear(members.ReasonCannotFence)
			continue
		}
		if err == nil {
			err = f.prepare(ctx, o.Followed)
		}
		if left, limited := o.Left(time.Now()); err == nil && limited && left < o.Limit/2 {
			err = errors.New("too little of the time is left in which the other generation has to take over")
		}
		if err != nil {
			f.log.Warn("cannot stop for the fence", "fence", id, "error", err)
			f.reporter.Block(members.ReasonCannotFence, err.Error())
			loop.Sleep(ctx, fenceAgain)
			f.wake.Call()
			continue
		}
		f.log.Info("stopping for the fence", "fence", id)
		if err := f.supervisor.StopForFence(child); err != nil {
			return err
		}
	}
}

// announce that this member takes part in the decision about a fence: a generation that would take over asks for it only when all pods
// have said so. It returns the pause before the next time.
func (f *Fencer) announce(ctx context.Context) time.Duration {
	if err := errors.Join(f.pods.Annotate(ctx, members.AnnotationDecides, true), f.pods.Annotate(ctx, members.AnnotationYields, true)); err != nil {
		f.log.Warn("cannot announce that this member decides about fences", "error", err)
		return announceAgain
	}
	return announceEvery
}

// prepare a stop after which nothing that was acknowledged is lost: as much as possible of what a stop takes is done before. A copy that
// follows has to be close behind. The error is what blocks it.
func (f *Fencer) prepare(ctx context.Context, followed bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	list, err := f.pods.List(ctx)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.Name == f.names.Pod || !p.Started || p.IP == "" || p.Stopping {
			continue
		}
		_, paused, err := patroni.At(p.IP).Cluster(ctx)
		if err != nil && p.Role == "" {
			continue // its Patroni does not run, and begins with the pause
		}
		if err != nil {
			return fmt.Errorf("it is unknown whether %s would be promoted: %w", p.Name, err)
		}
		if !paused {
			return fmt.Errorf("%s has not read yet that no member may be promoted", p.Name)
		}
	}
	if err := checkFollower(ctx, followed); err != nil {
		return err
	}
	// The checkpoint of the stop has little to write then. It may take so long that the copy is lost meanwhile. A server without a copy may be
	// replaced because it does not work.
	if err := managed.Checkpoint(ctx, pgmember.FolderSocket); err != nil && followed {
		return err
	}
	if err := checkFollower(ctx, followed); err != nil {
		return err
	}
	f.log.Info(bouncer.PauseAll(ctx, f.kube, f.names))
	return nil
}

// checkFollower returns why the copy, if there has to be one, does not get everything that the leader wrote.
func checkFollower(ctx context.Context, followed bool) error {
	if !followed {
		return nil
	}
	follows, lag, err := managed.Streams(ctx, pgmember.FolderSocket, members.FollowerSlot)
	switch {
	case err != nil:
		return err
	case !follows:
		return errors.New("the copy that should take over does not follow: see what its member reports")
	case lag > fenceLag:
		return fmt.Errorf("the copy that should take over is %d MiB behind", lag>>20)
	}
	return nil
}
