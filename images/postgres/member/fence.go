// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/volume"
)

// A fence stops the leader of a generation for good, so that another generation goes on from exactly there. It is a key of Patroni's
// configuration, beside the key that pauses Patroni: who sees the one sees the other, and in a pause nobody is promoted and PostgreSQL
// goes on without Patroni. Replicas go on serving reads. Without the fence the leader starts again, and nothing was changed.

// Reasons of members that a fence concerns.
const (
	// fenced: this member led, and has stopped.
	fenced = "Fenced"
	// notFenced: it leads, and cannot stop in a way that loses nothing.
	notFenced = "CannotFence"
)

const (
	// fenceAgain is the pause after a try to stop that something was in the way of.
	fenceAgain = 2 * time.Second
	// fenceLag is how far the follower may be behind a leader that is to stop, in bytes. It gets that while the leader stops.
	fenceLag = 16 << 20
)

// fence stops Patroni when a fence is there and this member leads. PostgreSQL is stopped by hold, which does so as well after a restart.
func (m *member) fence(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.paused:
		}
		child := m.child.Load()
		if child == nil || !m.leads.Load() {
			m.told.clear(notFenced)
			continue
		}
		id, err := m.pods.Fence(ctx, m.Scope)
		if err == nil && id == "" {
			m.told.clear(notFenced)
			continue
		}
		if err == nil {
			err = m.mayStop(ctx)
		}
		if err != nil {
			m.log.Warn("cannot stop for the fence", "fence", id, "error", err)
			m.told.hinder(notFenced, err.Error())
			sleep(ctx, fenceAgain)
			m.paused.Call()
			continue
		}
		m.log.Info("stopping for the fence", "fence", id)
		m.ended.Store(child)
		if err := child.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		<-child.Done() // one that hangs is ended by watch
	}
}

// mayStop tells what is in the way of a stop after which nothing that was acknowledged is lost. When nothing is, as much as possible
// of what a stop takes has been done.
func (m *member) mayStop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	list, err := m.pods.List(ctx)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.Name == m.Pod || !p.Started || p.IP == "" || p.Stopping {
			continue
		}
		_, paused, err := patroni.New(net.JoinHostPort(p.IP, strconv.Itoa(layout.PortPatroni)), layout.TLS).Cluster(ctx)
		if err != nil && p.Role == "" {
			continue // its Patroni does not run, and begins with the pause
		}
		if err != nil {
			return fmt.Errorf("it is not known whether %s would be promoted: %w", p.Name, err)
		}
		if !paused {
			return fmt.Errorf("%s has not heard yet that nobody is to be promoted", p.Name)
		}
	}
	if err := followed(ctx); err != nil {
		return err
	}
	// The checkpoint of the stop has little to write then. It may take so long that the copy is lost meanwhile.
	if err := managed.Checkpoint(ctx, layout.Postgres); err != nil {
		return err
	}
	if err := followed(ctx); err != nil {
		return err
	}
	said, err := pausePoolers(ctx, m.Names)
	if err != nil {
		said = "clients of poolers were not told: " + err.Error()
	}
	m.log.Info(said)
	return nil
}

// followed tells what is in the way of the copy getting all that the leader wrote.
func followed(ctx context.Context) error {
	follows, lag, err := managed.Follower(ctx, layout.Postgres, members.FollowerSlot)
	switch {
	case err != nil:
		return err
	case !follows:
		return errors.New("the copy that is to take over does not follow: see what its member says")
	case lag > fenceLag:
		return fmt.Errorf("the copy that is to take over is %d MiB behind", lag>>20)
	}
	return nil
}

// fencedOff stops PostgreSQL when a fence is there, and tells where it stopped. It returns a Wait for as long as this member must not
// run.
func (m *member) fencedOff(ctx context.Context) error {
	_, running := process.Postmaster(layout.Data)
	id, err := m.pods.Fence(ctx, m.Scope)
	if err != nil {
		if running {
			return nil // Patroni is to watch over PostgreSQL also while the API server is away
		}
		return err
	}
	if id == "" {
		return m.tellFenced(ctx, nil)
	}
	led, err := volume.Led(layout.Data)
	if err != nil {
		return err
	}
	if running && !led {
		return nil // a replica that serves on
	}
	m.stopFenced(ctx)
	m.look.Call() // the label of the leader goes at once
	own, err := volume.Read(ctx, layout.Programs(m.Version), layout.Data)
	if err != nil {
		return err
	}
	wait := &volume.Wait{Reason: fenced, Message: "another generation goes on with the data of this one, or is about to: this member stays stopped"}
	if own.Empty || !own.Led {
		return wait
	}
	if !own.Clean {
		wait.Message = "PostgreSQL did not stop cleanly, and nobody can tell what of its last writes the other generation has: it does not go on, and " +
			"this one is to lead again"
		return wait
	}
	if err := m.tellFenced(ctx, &members.FenceReport{ID: id, Position: own.Position, Timeline: own.Timeline, System: own.System}); err != nil {
		return err
	}
	return wait
}

// stopFenced stops PostgreSQL. One that does not stop is ended: then this generation leads again, as nobody knows what the other one has.
func (m *member) stopFenced(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	process.StopPostmaster(limited, layout.Data)
	if _, running := process.Postmaster(layout.Data); running && ctx.Err() == nil {
		m.log.Error("ending a PostgreSQL that does not stop for the fence", "limit", stopLimit.String())
		process.KillPostmaster(layout.Data)
	}
}

// A toldStop is what a pod tells of a stop for a fence: nothing, or where its member stopped.
type toldStop struct{ at *members.FenceReport }

// tellFenced writes where this member stopped, or removes it, unless its pod says so already.
func (m *member) tellFenced(ctx context.Context, f *members.FenceReport) error {
	if m.stop == nil {
		list, err := m.pods.List(ctx)
		if err != nil {
			return err
		}
		m.stop = &toldStop{}
		for _, p := range list {
			if p.Name == m.Pod {
				m.stop.at = p.Fenced
			}
		}
	}
	told := m.stop.at
	if (f == nil) == (told == nil) && (f == nil || *f == *told) {
		return nil
	}
	var value any // a nil report in it would be written as null
	if f != nil {
		value = f
	}
	if err := m.pods.Annotate(ctx, members.AnnotationFenced, value); err != nil {
		m.stop = nil // it may have been written all the same
		return err
	}
	m.stop = &toldStop{f}
	return nil
}

// former is the generation that an upgrade goes on from.
type former struct {
	pods *pods.Client
	// scope of its Patroni.
	scope string
}

// leader returns the address of the pod that leads, or nothing.
func (f former) leader(ctx context.Context) (string, error) {
	list, err := f.pods.List(ctx)
	return leading(list), err
}

// leading returns the address of the pod that leads, or nothing.
func leading(list []pods.Pod) string {
	for _, p := range list {
		if p.Role == members.RoleLeader && !p.Stopping {
			return p.IP
		}
	}
	return ""
}

// look at who leads, and where the leader stopped for a fence, once it has and nobody else leads.
func (f former) look(ctx context.Context, id string) (leader string, end *members.FenceReport, err error) {
	list, err := f.pods.List(ctx)
	if err != nil {
		return "", nil, err
	}
	leader = leading(list)
	for _, p := range list {
		if p.Fenced == nil || p.Fenced.ID != id {
			continue
		}
		holder, err := f.pods.Holder(ctx, f.scope)
		if err != nil {
			return leader, nil, err
		}
		if p.Name == holder {
			return leader, p.Fenced, nil
		}
	}
	return leader, nil, nil
}
