// SPDX-License-Identifier: Apache-2.0

// Package upgrader fills a generation with the data of an earlier major version, and completes it when a member is the leader on it.
package upgrader

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dcs"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/fence"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/upgrade"
)

// A generation of a later major version begins with a copy of the one before, which continues to serve and is never written to:
//
//	Copying → Checking → Ready          the copy follows, nothing else happens
//	        → CatchingUp → Converting   the fence stopped the former leader
//	        → Settling → Done           this generation serves
//
// What is on the volume says how far it is, so the program may end at any time. Until the data is accepted, which is one rename,
// the generation before can continue as if nothing had been.

const (
	// copyAgain is the pause after a copy that failed, and checkAgain that between two tries whether the data can be upgraded
	// while it cannot. What can be upgraded is tried again after checkStale, for definitions change.
	copyAgain  = time.Minute
	checkAgain = time.Minute
	checkStale = time.Hour
	// strayLimit is how long a copy may neither hear of a leader that is there nor replay what it has before it is made again.
	strayLimit = 2 * time.Minute
	// restartAfter is how long it may hear nothing before its server is restarted.
	restartAfter = 20 * time.Second
)

// An Upgrader fills this generation with the data of an earlier one. Only one loop uses it: the loop that starts Patroni, through the gate.
type Upgrader struct {
	Names layout.Names
	Kube  kube.Client
	Pods  *pods.Client
	Log   *slog.Logger

	job      *upgrade.Job
	from     former
	reported members.UpgradeReport
	// tried is when the last copy or check began, heard when the copy last made progress, replayed how far it was then, restarted
	// when its server was last restarted because it made none, and fencedAt when the fence was first observed.
	tried, heard, restarted, fencedAt time.Time
	replayed                          string
	// gaveUp reports that the fence ended, as far as this member is concerned, and warned is what was logged last.
	gaveUp bool
	warned string
}

// Stop the server of the copy, if it runs.
func (u *Upgrader) Stop() { u.job.Stop() }

// Advance the upgrade as far as possible at a time. It returns nil when PostgreSQL may start on the upgraded data, and a Wait
// until then.
func (u *Upgrader) Advance(ctx context.Context, w pgmember.Upgrade, empty bool) error {
	if w.Member != u.Names.Name {
		return &volume.Wait{
			Reason: members.ReasonWaitingForUpgrade, Message: "member " + w.Member + " upgrades the data of the former generation; this one copies it then",
		}
	}
	if u.job == nil {
		u.job = &upgrade.Job{From: w.From, To: u.Names.Version}
		u.from = former{pods.New(u.Kube, u.Names.Namespace, u.Names.Pod, w.Database), dcs.New(u.Kube, u.Names.Namespace, w.Scope), u.Names.PodHost}
	}
	programs := []string{}
	for _, name := range []string{"postgres", "pg_controldata", "pg_basebackup"} {
		programs = append(programs, pgmember.Programs(w.From)+"/"+name)
	}
	if err := volume.CheckImage(append(programs, pgmember.Programs(u.Names.Version)+"/pg_upgrade")...); err != nil {
		return err
	}
	if !empty {
		return u.checkAccepted(ctx, w)
	}
	s, err := upgrade.Load(w.ID)
	if err != nil {
		return err
	}
	switch s.Stage {
	case upgrade.Copying, upgrade.Following:
		fenced, lost, err := u.fence(ctx, w, s)
		switch {
		case err != nil:
			return err
		case lost != "":
			return u.fail(ctx, w, s, lost)
		case fenced && s.Fit():
			return u.catchUp(ctx, w, s)
		case fenced:
			// There is no leader any more, and no copy to continue with.
			return u.fail(ctx, w, s, "the generation before was fenced, and there is no copy that can be upgraded")
		}
		u.fencedAt = time.Time{}
		if s.Stage == upgrade.Copying {
			return u.copy(ctx, s)
		}
		return u.follow(ctx, w, s)
	case upgrade.Converting, upgrade.Settling:
		return u.convert(ctx, w, s)
	case upgrade.Failed:
	}
	return u.fail(ctx, w, s, s.Failure)
}

// report writes how far the upgrade is, and returns what this member waits for.
func (u *Upgrader) report(ctx context.Context, s upgrade.State, phase, message string) error {
	r := members.UpgradeReport{ID: s.ID, Phase: phase, Message: message}
	if v := s.Verdict; v != nil {
		r.Findings, r.Checked = v.Findings, v.At.UTC().Format(time.RFC3339)
		r.GapSeconds = int64((v.Took + time.Second - 1) / time.Second)
	}
	if r != u.reported {
		if err := u.Pods.Annotate(ctx, members.AnnotationUpgrade, r); err != nil {
			return err
		}
		u.reported = r
		u.Log.Info("upgrade", "phase", r.Phase, "message", r.Message, "findings", r.Findings, "gapSeconds", r.GapSeconds)
	}
	said := "the upgrade is in the phase " + r.Phase
	if more := cmp.Or(r.Message, r.Findings); more != "" {
		said += ": " + more
	}
	return &volume.Wait{Reason: members.ReasonUpgrading, Message: said}
}

// fail for good, with nothing changed in the generation before.
func (u *Upgrader) fail(ctx context.Context, w pgmember.Upgrade, s upgrade.State, why string) error {
	if s.Stage != upgrade.Failed {
		s.Stage, s.Failure = upgrade.Failed, why
		if err := s.Save(); err != nil {
			return err
		}
	}
	// Clients may be waiting to write: the fence ends, and that is reported, before the copy's server has stopped.
	if s.Offered && !u.gaveUp {
		if err := u.from.dcs.GiveUpFence(ctx, w.ID, u.Names.Database, why); err != nil {
			u.Log.Warn("cannot end the fence, trying on", "error", err)
		} else {
			u.gaveUp = true
		}
	}
	err := u.report(ctx, s, members.UpgradeFailed, why)
	u.job.Stop()
	return err
}

// fence reports whether the generation before is fenced for this upgrade, and why this one can never take over, if that is known.
func (u *Upgrader) fence(ctx context.Context, w pgmember.Upgrade, s upgrade.State) (fenced bool, lost string, err error) {
	o, err := u.from.dcs.Fence(ctx)
	if err != nil {
		return false, "", err
	}
	switch why, is := o.Lost(w.ID, u.Names.Database); {
	case s.Offered && is:
		return false, "the generation before continues: " + why, nil
	case !s.Offered && o.ID == w.ID && o.To != "":
		// Members of the generation before end this fence by themselves, and this one would not ask them.
		return false, "the fence has an end, and this member has not offered to ask before it serves", nil
	}
	committed := s.Offered && o.Record.State == members.FenceCommitted
	return committed || o.InForce() == w.ID, "", nil
}

// offer to ask before this generation serves, if all members of the one before know what that means. Otherwise only the function ends a
// fence, and so it is when the platform's policy does not let this member write there.
func (u *Upgrader) offer(ctx context.Context, w pgmember.Upgrade, s *upgrade.State) error {
	if s.Offered || !s.Fit() {
		return nil
	}
	list, err := u.from.pods.List(ctx)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.Started && !p.Stopping && !p.Decides {
			u.warnOnce("the fence has no end of its own: " + p.Name + " runs an earlier image")
			return nil
		}
	}
	switch err := u.from.dcs.OfferFence(ctx, w.ID, u.Names.Database); {
	case errors.Is(err, fence.ErrTaken), kerrors.IsForbidden(err):
		u.warnOnce("the fence has no end of its own: " + err.Error())
		return nil
	case err != nil:
		return err
	}
	s.Offered = true
	return s.Save()
}

// warnOnce about what does not change soon.
func (u *Upgrader) warnOnce(what string) {
	if u.warned != what {
		u.Log.Warn(what)
		u.warned = what
	}
}

// copy copies the data of the generation before.
func (u *Upgrader) copy(ctx context.Context, s upgrade.State) error {
	if u.reported.Phase != members.UpgradeCopying {
		return u.report(ctx, s, members.UpgradeCopying, "") // reported before it begins
	}
	if time.Since(u.tried) < copyAgain {
		return u.report(ctx, s, members.UpgradeCopying, u.reported.Message)
	}
	leader, err := u.from.leader(ctx)
	if err != nil {
		return err
	}
	if leader.Address == "" {
		return u.report(ctx, s, members.UpgradeCopying, "the generation to upgrade has no leader: see its condition Available")
	}
	u.tried = time.Now()
	if err := u.job.Copy(ctx, leader); err != nil {
		if ctx.Err() == nil {
			u.Log.Warn("cannot copy", "error", err)
		}
		return u.report(ctx, s, members.UpgradeCopying, err.Error()+". It is tried again every minute")
	}
	s.Stage = upgrade.Following
	if err := s.Save(); err != nil {
		return err
	}
	u.tried, u.heard, u.replayed = time.Time{}, time.Now(), ""
	return u.report(ctx, s, members.UpgradeChecking, "")
}

// follow keeps the copy up to date, and finds out whether it can be upgraded.
func (u *Upgrader) follow(ctx context.Context, w pgmember.Upgrade, s upgrade.State) error {
	if u.heard.IsZero() {
		u.heard = time.Now()
	}
	leader, err := u.from.leader(ctx)
	if err != nil {
		return err
	}
	why := "the copy does not hear from the leader"
	if leader.Address != "" {
		if err := u.job.Follow(ctx, leader); err != nil {
			why = "the copy does not follow: " + err.Error()
		}
	}
	ask, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	streams, err := u.job.Streams(ask)
	if streams {
		u.heard = time.Now()
		return u.check(ctx, w, s)
	}
	if segment := u.job.Replays(); segment > u.replayed {
		// What was written during a long copy takes long, and so does what it got before a restart.
		u.replayed, u.heard = segment, time.Now()
	}
	now := time.Now()
	switch {
	case leader.Address == "":
		u.heard = now
	case now.Sub(u.heard) > strayLimit:
		// It needs something that is there no longer, or has something that the leader never had.
		u.Log.Warn("copying again: the copy does not follow", "error", err)
		s.Stage, s.Verdict = upgrade.Copying, nil
		if err := s.Save(); err != nil {
			return err
		}
		return u.report(ctx, s, members.UpgradeCopying, "the former copy could not follow")
	case now.Sub(u.heard) > restartAfter && now.Sub(u.restarted) > restartAfter:
		u.restarted = now
		u.job.Stop() // the leader may have more of something than the copy began with
	}
	return u.report(ctx, s, phaseOf(s), why)
}

// check whether the copy can be upgraded.
func (u *Upgrader) check(ctx context.Context, w pgmember.Upgrade, s upgrade.State) error {
	if err := u.offer(ctx, w, &s); err != nil {
		return err
	}
	again := checkAgain
	if s.Fit() {
		again = checkStale
	}
	switch {
	case s.Verdict != nil && time.Since(s.Verdict.At) < again:
		return u.report(ctx, s, phaseOf(s), "")
	case time.Since(u.tried) < checkAgain:
		return u.report(ctx, s, phaseOf(s), u.reported.Message)
	case s.Verdict == nil && u.reported.Phase != members.UpgradeChecking:
		return u.report(ctx, s, members.UpgradeChecking, "") // reported before it begins
	}
	u.tried = time.Now()
	v, err := u.job.Check(ctx)
	if err != nil {
		u.Log.Warn("cannot try the upgrade", "error", err)
		return u.report(ctx, s, phaseOf(s), err.Error()+". It is tried again every minute")
	}
	u.tried, s.Verdict = time.Time{}, &v
	if err := s.Save(); err != nil {
		return err
	}
	if err := u.offer(ctx, w, &s); err != nil { // before it is reported to be ready
		return err
	}
	return u.report(ctx, s, phaseOf(s), "")
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

// former is the generation that an upgrade continues from.
type former struct {
	pods *pods.Client
	dcs  *dcs.Client
	// podHost is the name of a pod in the certificates of members.
	podHost func(pod string) string
}

// leader returns the pod that is the leader, or nothing.
func (f former) leader(ctx context.Context) (upgrade.Leader, error) {
	list, err := f.pods.List(ctx)
	return f.at(leaderOf(list)), err
}

// at returns where a pod is reached; nothing without one.
func (f former) at(p pods.Pod) upgrade.Leader {
	if p.IP == "" {
		return upgrade.Leader{}
	}
	return upgrade.Leader{Host: f.podHost(p.Name), Address: p.IP}
}

// leaderOf pods returns the one that is the leader; the zero value without one.
func leaderOf(list []pods.Pod) pods.Pod {
	for _, p := range list {
		if p.Role == members.RoleLeader && !p.Stopping {
			return p
		}
	}
	return pods.Pod{}
}

// stopped returns the pod that is the leader, and where the leader stopped for a fence, once it has stopped and no other member is the
// leader.
func (f former) stopped(ctx context.Context, id string) (leader upgrade.Leader, end *members.FenceReport, err error) {
	list, err := f.pods.List(ctx)
	if err != nil {
		return upgrade.Leader{}, nil, err
	}
	leader = f.at(leaderOf(list))
	for _, p := range list {
		if p.Fenced == nil || p.Fenced.ID != id {
			continue
		}
		holder, err := f.dcs.Holder(ctx)
		if err != nil {
			return leader, nil, err
		}
		if p.Name == holder {
			return leader, p.Fenced, nil
		}
	}
	return leader, nil, nil
}
