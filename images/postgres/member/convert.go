// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/upgrade"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/volume"
)

// From the fence on nobody can write, so what does not work ends the upgrade instead of being tried for long: the generation before is to
// go on. Only an API server that is away is waited for, without which nobody can go on.

const (
	// stopLimit is how long the former leader may take to stop before the upgrade fails and it is ended, and restLimit the copy to replay
	// the rest. What the last checkpoint of the leader has to write was written before, and followers that do not answer are given up.
	stopLimit = 2 * time.Minute
	restLimit = 30 * time.Second
	// convertLimit is how often a conversion may begin that ends with the program, as one does that takes more memory than there is.
	convertLimit = 3
	// closely is the pause between two looks while nobody can write.
	closely = 100 * time.Millisecond
)

// catchUp with the leader that stops for the fence, and go on to the end. It does not wait for another turn.
func (m *member) catchUp(ctx context.Context, w wantedUpgrade, s upgrade.State) error {
	u := &m.upgrading
	if u.fencedAt.IsZero() {
		u.fencedAt = time.Now()
	}
	_ = m.tellUpgrade(ctx, s, members.UpgradeCatchingUp, "")
	end, err := m.awaitStop(ctx, w, s)
	if err != nil {
		return err
	}
	rest, cancel := context.WithTimeout(ctx, restLimit)
	defer cancel()
	for {
		if has, err := u.job.Has(rest, end.Position); has || rest.Err() != nil {
			m.log.Info("caught up", "all", has, "error", err)
			break
		}
		sleep(rest, closely)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// The checkpoint of the stop is the last that there is. A copy that has replayed it notes it when it stops itself.
	u.job.Stop()
	c, err := u.job.Control(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return m.fail(ctx, s, err.Error())
	case c.System != end.System || c.Position != end.Position || c.Timeline != end.Timeline:
		return m.fail(ctx, s, fmt.Sprintf("the copy ends at %s of timeline %d, and the former leader wrote up to %s of timeline %d", c.Position, c.Timeline,
			end.Position, end.Timeline))
	}
	s.Stage = upgrade.Converting
	if err := s.Save(); err != nil {
		return err
	}
	return m.convert(ctx, w, s)
}

// awaitStop of the former leader, and return where it stopped.
func (m *member) awaitStop(ctx context.Context, w wantedUpgrade, s upgrade.State) (*members.FenceReport, error) {
	u := &m.upgrading
	var last error
	for ctx.Err() == nil {
		fence, err := u.from.pods.Fence(ctx, w.Scope)
		if err == nil && fence != w.ID { // somebody thought better of it, and the leader did not stop or leads again
			return nil, m.tellUpgrade(ctx, s, members.UpgradeReady, "")
		}
		if err == nil {
			var leader string
			var end *members.FenceReport
			leader, end, err = u.from.look(ctx, w.ID)
			// One that was just started has to replay what it has, and a leader does not stop before it follows.
			if follow := u.job.Follow(ctx, leader); err == nil && follow != nil {
				err = fmt.Errorf("the copy does not follow: %w", follow)
			}
			if end != nil {
				return end, nil
			}
		}
		if err != nil && (last == nil || err.Error() != last.Error()) {
			m.log.Warn("the former leader has not stopped", "error", err)
		}
		last = err
		if time.Since(u.fencedAt) > stopLimit {
			why := fmt.Sprintf("the former leader did not stop cleanly within %s: see what its member says", stopLimit)
			if err != nil {
				why += ", and " + err.Error()
			}
			return nil, m.fail(ctx, s, why)
		}
		sleep(ctx, closely)
	}
	return nil, ctx.Err()
}

// convert the copy, which has all that there is, and accept it.
func (m *member) convert(ctx context.Context, w wantedUpgrade, s upgrade.State) error {
	if err := m.stillFenced(ctx, w, s); err != nil {
		return err
	}
	if s.Tries >= convertLimit {
		return m.fail(ctx, s, fmt.Sprintf("the member ended %d times while it upgraded the copy: see why its container ended, as for lack of memory", s.Tries))
	}
	s.Tries++
	if err := s.Save(); err != nil {
		return err
	}
	_ = m.tellUpgrade(ctx, s, members.UpgradeConverting, "")
	begun := time.Now()
	var options []string
	if s.Verdict != nil {
		options = s.Verdict.Options
	}
	err := m.upgrading.job.Convert(ctx, options)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return m.fail(ctx, s, err.Error())
	}
	m.log.Info("converted", "took", time.Since(begun).Round(time.Millisecond).String())
	if err := m.stillFenced(ctx, w, s); err != nil {
		return err
	}
	if err := upgrade.Accept(); err != nil {
		return m.fail(ctx, s, err.Error())
	}
	s.Stage = upgrade.Settling
	return s.Save()
}

// stillFenced fails the upgrade when the generation before may go on: what it writes from then on the copy would not have. It waits for an
// API server that is away, because a copy is converted only once.
func (m *member) stillFenced(ctx context.Context, w wantedUpgrade, s upgrade.State) error {
	for {
		fence, err := m.upgrading.from.pods.Fence(ctx, w.Scope)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			m.log.Warn("cannot find out whether the generation before is fenced", "error", err)
			sleep(ctx, time.Second)
		case fence != w.ID:
			return m.fail(ctx, s, "the generation before went on, and the copy lacks what it wrote")
		default:
			return nil
		}
	}
}

// accepted data begins as long as the generation before is fenced for the very upgrade that it comes from: what that wrote between two
// of them the data would not have.
func (m *member) accepted(ctx context.Context, w wantedUpgrade) error {
	s, left, err := upgrade.Left()
	if err != nil {
		return err
	}
	if !left || s.ID != w.ID || s.Stage == upgrade.Failed {
		return &volume.Problem{Reason: volume.OfAnother, Message: fmt.Sprintf("the data does not come from the upgrade %s: remove the volume if its data is not needed", w.ID)}
	}
	fence, err := m.upgrading.from.pods.Fence(ctx, w.Scope)
	if err != nil {
		return err
	}
	if fence != w.ID {
		return &volume.Wait{Reason: upgradeRuns, Message: "the data is upgraded, and the generation before is not fenced: it does not begin beside it"}
	}
	if s.Stage == upgrade.Settling {
		return nil
	}
	s.Stage = upgrade.Settling // it was accepted, and the program ended before it noted that
	return s.Save()
}
