// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
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
	// copyAgain is the pause after a copy that failed, and checkAgain that between two tries whether the data can be upgraded while it
	// cannot. What can be upgraded is tried again after checkStale, for definitions change.
	copyAgain  = time.Minute
	checkAgain = time.Minute
	checkStale = time.Hour
	// strayLimit is how long a copy may neither hear of a leader that is there nor replay what it has before it is made anew.
	strayLimit = 2 * time.Minute
	// renewAfter is how long it may hear nothing before its server is started anew.
	renewAfter = 20 * time.Second
)

// upgrading is an upgrade that this member does.
type upgrading struct {
	job  *upgrade.Job
	from former
	told members.UpgradeReport
	// tried is when the last copy or check began, heard when the copy last got on, replayed how far it was then, renewed when its server
	// was last started anew because it did not, and fencedAt when the fence was first seen.
	tried, heard, renewed, fencedAt time.Time
	replayed                        string
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
		u.job, u.from = &upgrade.Job{From: w.From, To: m.Version}, former{client, w.Scope}
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
	case upgrade.Copying, upgrade.Following:
		fence, err := u.from.pods.Fence(ctx, w.Scope)
		switch {
		case err != nil:
			return err
		case fence == w.ID && s.Fit():
			return m.catchUp(ctx, w, s)
		case fence == w.ID:
			// Nobody leads, or nobody is about to, and there is nothing to go on with.
			return m.fail(ctx, s, "the generation before was fenced, and there is no copy that can be upgraded")
		}
		u.fencedAt = time.Time{}
		if s.Stage == upgrade.Copying {
			return m.copyFormer(ctx, s)
		}
		return m.followFormer(ctx, s)
	case upgrade.Converting, upgrade.Settling:
		return m.convert(ctx, w, s)
	case upgrade.Failed:
	}
	return m.tellUpgrade(ctx, s, members.UpgradeFailed, s.Failure)
}

// tellUpgrade writes how far the upgrade is, and returns what this member waits for.
func (m *member) tellUpgrade(ctx context.Context, s upgrade.State, phase, message string) error {
	u := &m.upgrading
	r := members.UpgradeReport{ID: s.ID, Phase: phase, Message: message}
	if v := s.Verdict; v != nil {
		r.Findings, r.Checked = v.Findings, v.At.UTC().Format(time.RFC3339)
		r.GapSeconds = int64((v.Took + time.Second - 1) / time.Second)
	}
	if r != u.told {
		if err := m.pods.Annotate(ctx, members.AnnotationUpgrade, r); err != nil {
			return err
		}
		u.told = r
		m.log.Info("upgrade", "phase", r.Phase, "message", r.Message, "findings", r.Findings, "gapSeconds", r.GapSeconds)
	}
	said := "the upgrade is in the phase " + r.Phase
	if more := cmp.Or(r.Message, r.Findings); more != "" {
		said += ": " + more
	}
	return &volume.Wait{Reason: upgradeRuns, Message: said}
}

// fail for good, with nothing changed in the generation before.
func (m *member) fail(ctx context.Context, s upgrade.State, why string) error {
	s.Stage, s.Failure = upgrade.Failed, why
	if err := s.Save(); err != nil {
		return err
	}
	// Somebody may be waiting to write: it is told before the copy's server has stopped.
	told := m.tellUpgrade(ctx, s, members.UpgradeFailed, why)
	m.upgrading.job.Stop()
	return told
}

// copyFormer copies the data of the generation before.
func (m *member) copyFormer(ctx context.Context, s upgrade.State) error {
	u := &m.upgrading
	if u.told.Phase != members.UpgradeCopying {
		return m.tellUpgrade(ctx, s, members.UpgradeCopying, "") // it is to be known while it lasts
	}
	if time.Since(u.tried) < copyAgain {
		return m.tellUpgrade(ctx, s, members.UpgradeCopying, u.told.Message)
	}
	leader, err := u.from.leader(ctx)
	if err != nil {
		return err
	}
	if leader == "" {
		return m.tellUpgrade(ctx, s, members.UpgradeCopying, "nobody leads the generation that is to be upgraded: see the condition Available")
	}
	u.tried = time.Now()
	if err := u.job.Copy(ctx, leader); err != nil {
		if ctx.Err() == nil {
			m.log.Warn("cannot copy", "error", err)
		}
		return m.tellUpgrade(ctx, s, members.UpgradeCopying, err.Error()+". It is tried again every minute")
	}
	s.Stage = upgrade.Following
	if err := s.Save(); err != nil {
		return err
	}
	u.tried, u.heard, u.replayed = time.Time{}, time.Now(), ""
	return m.tellUpgrade(ctx, s, members.UpgradeChecking, "")
}

// followFormer keeps the copy up to date, and finds out whether it can be upgraded.
func (m *member) followFormer(ctx context.Context, s upgrade.State) error {
	u := &m.upgrading
	if u.heard.IsZero() {
		u.heard = time.Now()
	}
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
	if streams {
		u.heard = time.Now()
		return m.check(ctx, s)
	}
	if segment := u.job.Replays(); segment > u.replayed {
		// What was written during a long copy takes long, and so does what it got before a restart.
		u.replayed, u.heard = segment, time.Now()
	}
	now := time.Now()
	switch {
	case leader == "":
		u.heard = now
	case now.Sub(u.heard) > strayLimit:
		// It needs something that is there no longer, or has something that the leader never had.
		m.log.Warn("copying anew: the copy does not follow", "error", err)
		s.Stage, s.Verdict = upgrade.Copying, nil
		if err := s.Save(); err != nil {
			return err
		}
		return m.tellUpgrade(ctx, s, members.UpgradeCopying, "the former copy could not follow")
	case now.Sub(u.heard) > renewAfter && now.Sub(u.renewed) > renewAfter:
		u.renewed = now
		u.job.Stop() // the leader may have more of something than the copy began with
	}
	return m.tellUpgrade(ctx, s, phaseOf(s), why)
}

// check whether the copy can be upgraded.
func (m *member) check(ctx context.Context, s upgrade.State) error {
	u := &m.upgrading
	again := checkAgain
	if s.Fit() {
		again = checkStale
	}
	switch {
	case s.Verdict != nil && time.Since(s.Verdict.At) < again:
		return m.tellUpgrade(ctx, s, phaseOf(s), "")
	case time.Since(u.tried) < checkAgain:
		return m.tellUpgrade(ctx, s, phaseOf(s), u.told.Message)
	case s.Verdict == nil && u.told.Phase != members.UpgradeChecking:
		return m.tellUpgrade(ctx, s, members.UpgradeChecking, "") // it is to be known while it lasts
	}
	u.tried = time.Now()
	v, err := u.job.Check(ctx)
	if err != nil {
		m.log.Warn("cannot try the upgrade", "error", err)
		return m.tellUpgrade(ctx, s, phaseOf(s), err.Error()+". It is tried again every minute")
	}
	u.tried, s.Verdict = time.Time{}, &v
	if err := s.Save(); err != nil {
		return err
	}
	return m.tellUpgrade(ctx, s, phaseOf(s), "")
}

// phaseOf an upgrade whose copy is whole.
func phaseOf(s upgrade.State) string {
	switch {
	case s.Verdict == nil:
		return members.UpgradeChecking
	case s.Fit():
		return members.UpgradeReady
	}
	return members.UpgradeIncompatible
}
