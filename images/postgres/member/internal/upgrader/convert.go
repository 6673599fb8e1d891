// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"context"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/upgrade"
)

// From the fence on no client can write, so a failure ends the upgrade instead of being retried for long: the generation before
// has to continue. The upgrade waits only for an API server that is down, because without it no generation can continue.

const (
	// StopLimit is how long the former leader may take to stop before the upgrade fails and it is ended, and restLimit the copy
	// to replay the rest. What the last checkpoint of the leader has to write was written before, and it does not wait for
	// standbys that do not answer.
	StopLimit = 2 * time.Minute
	restLimit = 30 * time.Second
	// convertLimit is how often a conversion may begin that ends with the program, as one does that takes more memory than there
	// is.
	convertLimit = 3
	// closely is the pause between two looks while no client can write.
	closely = 100 * time.Millisecond
)

// catchUp with the leader that stops for the fence, and continue to the end. It does not wait for another turn.
func (u *Upgrader) catchUp(ctx context.Context, w pgmember.Upgrade, s upgrade.State) error {
	if u.fencedAt.IsZero() {
		u.fencedAt = time.Now()
	}
	_ = u.report(ctx, s, members.UpgradeCatchingUp, "")
	end, err := u.waitForStop(ctx, w, s)
	if err != nil {
		return err
	}
	rest, cancel := context.WithTimeout(ctx, restLimit)
	defer cancel()
	for {
		if has, err := u.job.Has(rest, end.Position); has || rest.Err() != nil {
			u.Log.Info("caught up", "all", has, "error", err)
			break
		}
		loop.Sleep(rest, closely)
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
		return u.fail(ctx, w, s, err.Error())
	case c.System != end.System || c.Position != end.Position || c.Timeline != end.Timeline:
		return u.fail(ctx, w, s, fmt.Sprintf("the copy ends at %s of timeline %d, and the former leader wrote up to %s of timeline %d", c.Position, c.Timeline,
			end.Position, end.Timeline))
	}
	s.Stage = upgrade.Converting
	if err := s.Save(); err != nil {
		return err
	}
	return u.convert(ctx, w, s)
}

// waitForStop of the former leader, and return where it stopped.
func (u *Upgrader) waitForStop(ctx context.Context, w pgmember.Upgrade, s upgrade.State) (*members.FenceReport, error) {
	var last error
	for ctx.Err() == nil {
		fenced, lost, err := u.fence(ctx, w, s)
		switch {
		case lost != "":
			return nil, u.fail(ctx, w, s, lost)
		case err == nil && !fenced: // the fence was withdrawn: the leader did not stop, or is the leader again
			return nil, u.report(ctx, s, members.UpgradeReady, "")
		}
		if err == nil {
			var leader upgrade.Leader
			var end *members.FenceReport
			leader, end, err = u.from.stopped(ctx, w.ID)
			// A copy that was just started has to replay what it has, and a leader does not stop before it follows.
			if follow := u.job.Follow(ctx, leader); err == nil && follow != nil {
				err = fmt.Errorf("the copy does not follow: %w", follow)
			}
			if end != nil {
				return end, nil
			}
		}
		if err != nil && (last == nil || err.Error() != last.Error()) {
			u.Log.Warn("the former leader has not stopped", "error", err)
		}
		last = err
		if time.Since(u.fencedAt) > StopLimit {
			why := fmt.Sprintf("the former leader did not stop cleanly within %s: see what its member says", StopLimit)
			if err != nil {
				why += ", and " + err.Error()
			}
			return nil, u.fail(ctx, w, s, why)
		}
		loop.Sleep(ctx, closely)
	}
	return nil, ctx.Err()
}

// convert the copy, which has all that there is, and accept it.
func (u *Upgrader) convert(ctx context.Context, w pgmember.Upgrade, s upgrade.State) error {
	if err := u.stillFenced(ctx, w, s); err != nil {
		return err
	}
	if s.Tries >= convertLimit {
		return u.fail(ctx, w, s, fmt.Sprintf("the member ended %d times while it upgraded the copy: see why its container ended, as for lack of memory", s.Tries))
	}
	s.Tries++
	if err := s.Save(); err != nil {
		return err
	}
	_ = u.report(ctx, s, members.UpgradeConverting, "")
	begun := time.Now()
	var verdict upgrade.Verdict
	if s.Verdict != nil {
		verdict = *s.Verdict
	}
	err := u.job.Convert(ctx, verdict)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return u.fail(ctx, w, s, err.Error())
	}
	u.Log.Info("converted", "took", time.Since(begun).Round(time.Millisecond).String())
	if err := u.stillFenced(ctx, w, s); err != nil {
		return err
	}
	if err := upgrade.Accept(); err != nil {
		return u.fail(ctx, w, s, err.Error())
	}
	return u.checkAccepted(ctx, w)
}

// stillFenced fails the upgrade when the generation before may continue: the copy would lack what it writes from then on. It
// waits for an API server that is down, because a copy is converted only once.
func (u *Upgrader) stillFenced(ctx context.Context, w pgmember.Upgrade, s upgrade.State) error {
	for {
		fenced, lost, err := u.fence(ctx, w, s)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			u.Log.Warn("cannot find out whether the generation before is fenced", "error", err)
			loop.Sleep(ctx, time.Second)
		case lost != "":
			return u.fail(ctx, w, s, lost)
		case !fenced:
			return u.fail(ctx, w, s, "the generation before continued, and the copy lacks what it wrote")
		default:
			return nil
		}
	}
}

// checkAccepted: data begins once it is recorded that it does, which is refused after the generation before continued for the very upgrade
// that the data comes from: what that wrote between two of them the data would not have. Nothing that may fail comes after it.
func (u *Upgrader) checkAccepted(ctx context.Context, w pgmember.Upgrade) error {
	s, left, err := upgrade.Left()
	if err != nil {
		return err
	}
	switch {
	case left && s.ID == w.ID && s.Stage == upgrade.Failed && s.Offered:
		return u.fail(ctx, w, s, s.Failure)
	case !left || s.ID != w.ID || s.Stage == upgrade.Failed:
		return &volume.Problem{Reason: members.ReasonVolumeOfAnother, Message: fmt.Sprintf("the data does not come from the upgrade %s: remove the volume if its data is not needed", w.ID)}
	}
	fenced, lost, err := u.fence(ctx, w, s)
	switch {
	case err != nil:
		return err
	case lost != "":
		return u.fail(ctx, w, s, lost)
	case !fenced:
		return &volume.Wait{Reason: members.ReasonUpgrading, Message: "the data is upgraded, and the generation before is not fenced: it does not begin beside it"}
	}
	if s.Stage != upgrade.Settling {
		s.Stage = upgrade.Settling // it was accepted, and the program ended before it noted that
		if err := s.Save(); err != nil {
			return err
		}
	}
	if !s.Offered {
		return nil
	}
	if err := u.from.dcs.CommitFence(ctx, w.ID, u.Names.Database); err != nil {
		return err // what is recorded says why, the next time
	}
	// A member that is lost keeps its label, and clients of the Service would reach it.
	if err := u.from.pods.Unlead(ctx); err != nil {
		u.Log.Warn("cannot take the label of the leader from the generation before", "error", err)
	}
	return nil
}
