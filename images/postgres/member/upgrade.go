// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/upgrade"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/volume"
)

// A generation of a later major version begins with a copy of the one before, which goes on serving and is never written to:
//
//	Copying → Checking → Ready          the copy follows, nothing else happens
//	        → CatchingUp → Converting   the fence stopped the former leader
//	        → Settling → Done           this generation serves
//
// What is on the volume says how far it is, so the program may end at any time. Until the data is accepted, which is one rename, the
// generation before can go on as if nothing had been.

// Reasons of members that wait for an upgrade.
const (
	// upgradeRuns: this member does it, and its report has the phase.
	upgradeRuns = "Upgrading"
	// waitingForUpgrade: another member does it.
	waitingForUpgrade = "WaitingForUpgrade"
)

const (
	// copyAgain is the pause after a copy that failed, and checkAgain that between two tries whether the data can be upgraded.
	copyAgain  = time.Minute
	checkAgain = time.Minute
	// strayLimit is how long a copy may hear nothing of a leader that is there before it is made anew.
	strayLimit = 2 * time.Minute
	// renewAfter is how long it may hear nothing before its server is started anew.
	renewAfter = 20 * time.Second
	// stopLimit is how long the former leader may take to stop, and restLimit the copy to replay the rest.
	stopLimit = 2 * time.Minute
	restLimit = 30 * time.Second
	// closely is the pause between two looks while nobody can write.
	closely = 100 * time.Millisecond
)

// upgrading is an upgrade that this member does.
type upgrading struct {
	job  *upgrade.Job
	from former
	told members.UpgradeReport
	// tried is when the last copy began, heard when the copy last got something, renewed when its server was last started anew because
	// it got nothing, and fencedAt when the fence was first seen.
	tried, heard, renewed, fencedAt time.Time
	// checked is when it was last tried whether the copy can be upgraded, and verdict what came of it.
	checked time.Time
	verdict upgrade.Verdict
}

// upgrade as far as it goes at a time. It returns nil when PostgreSQL may start on the upgraded data, and a Wait until then.
func (m *member) upgrade(ctx context.Context, w wantedUpgrade, own volume.Content) error {
	if w.Member != m.Name {
		return &volume.Wait{Reason: waitingForUpgrade, Message: "member " + w.Member + " upgrades the data of the former generation; this one copies it then"}
	}
	u := &m.upgrading
	if u.job == nil {
		cfg, err := rest.InClusterConfig()
		if err != nil {
			return fmt.Errorf("cannot reach the API server: %w", err)
		}
		client, err := pods.New(cfg, m.Namespace, m.Pod, w.Database)
		if err != nil {
			return err
		}
		u.job, u.from = &upgrade.Job{From: w.From, To: m.Version, Table: m.table}, former{client, w.Scope}
	}
	programs := []string{}
	for _, name := range []string{"postgres", "pg_controldata", "pg_basebackup"} {
		programs = append(programs, layout.Programs(w.From)+"/"+name)
	}
	if err := volume.CheckImage(append(programs, layout.Programs(m.Version)+"/pg_upgrade")...); err != nil {
		return err
	}
	if !own.Empty {
		return m.accepted(ctx, w)
	}
	s, err := upgrade.Load(w.ID)
	if err != nil {
		return err
	}
	switch s.Stage {
	case upgrade.Copying:
		return m.copyFormer(ctx, s)
	case upgrade.Following:
		return m.followFormer(ctx, w, s)
	case upgrade.Converting, upgrade.Settling:
		return m.convert(ctx, w, s)
	case upgrade.Failed:
	}
	return m.tellUpgrade(ctx, members.UpgradeReport{ID: s.ID, Phase: members.UpgradeFailed, Message: s.Failure})
}

// tellUpgrade writes how far the upgrade is, and returns what this member waits for.
func (m *member) tellUpgrade(ctx context.Context, r members.UpgradeReport) error {
	u := &m.upgrading
	if v := u.verdict; !u.checked.IsZero() {
		r.Findings = v.Findings
		r.Checked = u.checked.UTC().Format(time.RFC3339)
		r.GapSeconds = int64((v.Took + time.Second - 1) / time.Second)
	}
	if r != u.told {
		if err := m.pods.Annotate(ctx, members.AnnotationUpgrade, r); err != nil {
			return err
		}
		u.told = r
		m.log.Info("upgrade", "phase", r.Phase, "message", r.Message, "findings", r.Findings, "gapSeconds", r.GapSeconds)
	}
	message := "the upgrade is in the phase " + r.Phase
	if more := cmp.Or(r.Message, r.Findings); more != "" {
		message += ": " + more
	}
	return &volume.Wait{Reason: upgradeRuns, Message: message}
}

// fail for good, with nothing changed in the generation before.
func (m *member) fail(ctx context.Context, s upgrade.State, why string) error {
	m.upgrading.job.Stop()
	s.Stage, s.Failure = upgrade.Failed, why
	if err := s.Save(); err != nil {
		return err
	}
	return m.tellUpgrade(ctx, members.UpgradeReport{ID: s.ID, Phase: members.UpgradeFailed, Message: why})
}

// copyFormer copies the data of the generation before.
func (m *member) copyFormer(ctx context.Context, s upgrade.State) error {
	u := &m.upgrading
	report := members.UpgradeReport{ID: s.ID, Phase: members.UpgradeCopying}
	if u.told.Phase != report.Phase {
		return m.tellUpgrade(ctx, report) // it is to be known while it lasts
	}
	report.Message = u.told.Message
	if time.Since(u.tried) < copyAgain {
		return m.tellUpgrade(ctx, report)
	}
	u.tried = time.Now()
	leader, err := u.from.leader(ctx)
	if err != nil {
		return err
	}
	if leader == "" {
		u.tried = time.Time{}
		report.Message = "nobody leads the generation that is to be upgraded: see the condition Available"
		return m.tellUpgrade(ctx, report)
	}
	if err := u.job.Copy(ctx, leader); err != nil {
		if ctx.Err() == nil {
			m.log.Warn("cannot copy", "error", err)
		}
		report.Message = err.Error() + ". It is tried again every minute"
		return m.tellUpgrade(ctx, report)
	}
	s.Stage = upgrade.Following
	if err := s.Save(); err != nil {
		return err
	}
	u.tried, u.heard, u.checked = time.Time{}, time.Now(), time.Time{}
	return m.tellUpgrade(ctx, members.UpgradeReport{ID: s.ID, Phase: members.UpgradeChecking})
}

// followFormer keeps the copy up to date, and finds out whether it can be upgraded. Once the fence is there it goes on to the end.
func (m *member) followFormer(ctx context.Context, w wantedUpgrade, s upgrade.State) error {
	u := &m.upgrading
	if u.heard.IsZero() {
		u.heard = time.Now()
	}
	fence, err := u.from.pods.Fence(ctx, w.Scope)
	if err != nil {
		return err
	}
	if fence == w.ID && s.Checked {
		return m.catchUp(ctx, w, s)
	}
	u.fencedAt = time.Time{}
	leader, err := u.from.leader(ctx)
	if err != nil {
		return err
	}
	why := "the copy does not hear from the leader"
	if leader != "" {
		if err := u.job.Follow(ctx, leader); err != nil {
			why = "the copy does not follow: " + err.Error()
		}
	}
	ask, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	streams, err := u.job.Streams(ask)
	switch {
	case streams || leader == "":
		u.heard = time.Now()
	case time.Since(u.heard) > strayLimit:
		// It needs something that is there no longer, or has something that the leader never had.
		m.log.Warn("copying anew: the copy does not follow", "error", err)
		s.Stage, s.Checked = upgrade.Copying, false
		if err := s.Save(); err != nil {
			return err
		}
		return m.tellUpgrade(ctx, members.UpgradeReport{ID: s.ID, Phase: members.UpgradeCopying, Message: "the former copy could not follow"})
	}
	if !streams {
		if now := time.Now(); now.Sub(u.heard) > renewAfter && now.Sub(u.renewed) > renewAfter {
			u.renewed = now
			u.job.Stop() // the leader may have more of something than the copy began with
		}
		return m.tellUpgrade(ctx, members.UpgradeReport{ID: s.ID, Phase: cmp.Or(u.told.Phase, members.UpgradeChecking), Message: why})
	}
	return m.check(ctx, s)
}

// check whether the copy can be upgraded: once when it can, every minute when it cannot.
func (m *member) check(ctx context.Context, s upgrade.State) error {
	u := &m.upgrading
	report := members.UpgradeReport{ID: s.ID, Phase: members.UpgradeReady}
	switch {
	case u.checked.IsZero():
		report.Phase = members.UpgradeChecking
		if u.told.Phase != report.Phase {
			return m.tellUpgrade(ctx, report)
		}
	case u.verdict.Findings == "":
		return m.tellUpgrade(ctx, report)
	case time.Since(u.checked) < checkAgain:
		report.Phase = members.UpgradeIncompatible
		return m.tellUpgrade(ctx, report)
	}
	v, err := u.job.Check(ctx)
	if err != nil {
		m.log.Warn("cannot try the upgrade", "error", err)
		report.Phase, report.Message = members.UpgradeChecking, err.Error()
		return m.tellUpgrade(ctx, report)
	}
	u.checked, u.verdict = time.Now(), v
	s.Checked, s.Options = v.Findings == "", v.Options
	if err := s.Save(); err != nil {
		return err
	}
	report.Phase = members.UpgradeReady
	if !s.Checked {
		report.Phase = members.UpgradeIncompatible
	}
	return m.tellUpgrade(ctx, report)
}

// catchUp with the leader that stops for the fence. Nobody can write from now on, so it does not wait for another turn.
func (m *member) catchUp(ctx context.Context, w wantedUpgrade, s upgrade.State) error {
	u := &m.upgrading
	if u.fencedAt.IsZero() {
		u.fencedAt = time.Now()
	}
	_ = m.tellUpgrade(ctx, members.UpgradeReport{ID: s.ID, Phase: members.UpgradeCatchingUp})
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
	if err != nil {
		return err
	}
	if c.System != end.System || c.Position != end.Position || c.Timeline != end.Timeline {
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
	for ctx.Err() == nil {
		fence, err := u.from.pods.Fence(ctx, w.Scope)
		if err != nil {
			return nil, err
		}
		if fence != w.ID { // somebody thought better of it, and the leader did not stop or leads again
			return nil, m.tellUpgrade(ctx, members.UpgradeReport{ID: s.ID, Phase: members.UpgradeReady})
		}
		leader, err := u.from.leader(ctx)
		if err != nil {
			return nil, err
		}
		// One that was just started has to replay what it has, and a leader does not stop before it follows.
		if err := u.job.Follow(ctx, leader); err != nil {
			m.log.Warn("the copy does not follow", "error", err)
		}
		end, err := u.from.stopped(ctx, w.ID)
		if end != nil || err != nil {
			return end, err
		}
		if time.Since(u.fencedAt) > stopLimit {
			return nil, m.fail(ctx, s, fmt.Sprintf("the former leader did not stop cleanly within %s: see what its member says", stopLimit))
		}
		sleep(ctx, closely)
	}
	return nil, ctx.Err()
}

// convert the copy, which has all that there is, and accept it.
func (m *member) convert(ctx context.Context, w wantedUpgrade, s upgrade.State) error {
	u := &m.upgrading
	if err := m.stillFenced(ctx, w, s); err != nil {
		return err
	}
	_ = m.tellUpgrade(ctx, members.UpgradeReport{ID: s.ID, Phase: members.UpgradeConverting})
	begun := time.Now()
	var spent *upgrade.Unusable
	if err := u.job.Convert(ctx, s.Options); errors.As(err, &spent) {
		return m.fail(ctx, s, spent.Why)
	} else if err != nil {
		return err
	}
	m.log.Info("converted", "took", time.Since(begun).Round(time.Millisecond).String())
	if err := m.stillFenced(ctx, w, s); err != nil {
		return err
	}
	if err := upgrade.Accept(); err != nil {
		return err
	}
	s.Stage = upgrade.Settling
	return s.Save()
}

// stillFenced fails the upgrade when the generation before may go on: what it writes from then on the copy would not have.
func (m *member) stillFenced(ctx context.Context, w wantedUpgrade, s upgrade.State) error {
	fence, err := m.upgrading.from.pods.Fence(ctx, w.Scope)
	if err != nil {
		return err
	}
	if fence != w.ID {
		return m.fail(ctx, s, "the generation before went on, and the copy lacks what it wrote")
	}
	return nil
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
