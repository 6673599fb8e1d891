// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	apimembers "github.com/capstan-dev/capstan/apis/members"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/memory"
	"github.com/capstan-dev/capstan/function/database/names"
)

// whileUpgrading are the reasons of members during an upgrade without a problem.
var whileUpgrading = []string{apimembers.ReasonUpgrading, apimembers.ReasonWaitingForUpgrade}

// An upgradeState is what is reported of an upgrade.
type upgradeState struct {
	v1alpha1.UpgradeStatus

	status corev1.ConditionStatus
	reason xpv2.ConditionReason
}

// upgraded reports the outcome of an upgrade, or its progress.
func upgraded(s *decision.Pass) xpv2.Condition {
	if st := upgradeProgress(s); st != nil {
		return xpv2.Condition{Status: st.status, Reason: st.reason, Message: st.ID + ": " + st.Message}
	}
	return xpv2.Condition{}
}

// upgradeStatus is the same in the status.
func upgradeStatus(s *decision.Pass) *v1alpha1.UpgradeStatus {
	if st := upgradeProgress(s); st != nil {
		return &st.UpgradeStatus
	}
	return nil
}

// upgradeProgress of the upgrade that is under way, or else requested, or else was carried out last.
func upgradeProgress(s *decision.Pass) *upgradeState {
	if len(s.Problems) > 0 {
		return nil
	}
	if step := s.Memory.Step; step != nil && step.IsUpgrade() {
		return progressOfUpgrade(s, step)
	}
	if u := s.Upgrading; u != nil {
		st := &upgradeState{status: corev1.ConditionFalse, reason: u.Reason}
		st.UpgradeStatus = v1alpha1.UpgradeStatus{ID: u.ID, From: u.From, To: u.To, Phase: v1alpha1.UpgradeWaiting, Message: u.Message}
		if u.Reason == "" {
			st.reason, st.Message = v1alpha1.ReasonUpgradeWaiting, "the upgrade starts when Capstan has recorded it"
		}
		return st
	}
	for _, id := range []string{s.UndoID(), s.UpgradeID()} {
		done, ended := s.Memory.Upgraded(id)
		if ended && done.State != v1alpha1.RestoreDone && (id == s.UndoID() || s.IsVersionLater()) {
			return outcomeOfUpgrade(s.Cluster, done)
		}
	}
	for _, done := range slices.Backward(s.Memory.Done) {
		if done.Kind == memory.StepUpgrade && done.State == v1alpha1.RestoreDone && done.To == s.Generation {
			return outcomeOfUpgrade(s.Cluster, done)
		}
	}
	return nil
}

// progressOfUpgrade of a step that is under way.
func progressOfUpgrade(s *decision.Pass, step *memory.Step) *upgradeState {
	r := s.UpgradeReport()
	st := &upgradeState{status: corev1.ConditionFalse}
	st.UpgradeStatus = v1alpha1.UpgradeStatus{
		ID: step.ID, From: s.VersionOf(step.From), To: s.VersionOf(step.To),
		Findings: r.Findings, GapSeconds: cmp.Or(r.GapSeconds, step.Gap), Since: &metav1.Time{Time: step.Since},
	}
	switch {
	case step.Kind == memory.StepUndoUpgrade:
		st.From, st.To, st.Phase, st.reason = st.To, st.From, v1alpha1.UpgradeUndoing, v1alpha1.ReasonUpgradeUndoing
		_, st.Message = progressOf(s, step)
		st.Message += fmt.Sprintf("; COMMITS MADE SINCE THE UPGRADE STAY BEHIND in generation %d", step.From)
		return st
	case step.Phase == v1alpha1.RestoreFencing:
		st.Phase = v1alpha1.UpgradeSwitching
		st.reason, st.Message = switching(s, step, r)
	default:
		st.Phase, st.reason, st.Message = preparing(s, step, r)
	}
	if s.Pending != "" {
		st.Message += fmt.Sprintf("; waiting for Credential %q to record the next step", s.Called(names.SuffixAccess))
	}
	return st
}

// switching is what is reported while the active generation is fenced.
func switching(s *decision.Pass, step *memory.Step, r observev1alpha1.UpgradeReport) (xpv2.ConditionReason, string) {
	if m := cannotFence(s.Cluster); m != nil {
		return v1alpha1.ReasonCannotFence, about(*m) + ", and continues to serve; if this lasts two minutes, the upgrade fails and changes nothing"
	}
	message := fmt.Sprintf("generation %d takes no writes while its data is upgraded: clients are switched to generation %d when it has a leader", step.From, step.To)
	if r.Phase != "" {
		message += "; the member that upgrades is in the phase " + r.Phase
	}
	if m := blockedUpgrade(s.Siblings[step.To]); m != nil {
		message += ": " + about(*m)
	}
	until := step.FencedUntil()
	switch record := s.FenceRecord(); {
	case record.State == apimembers.FenceCommitted:
		return v1alpha1.ReasonUpgradeSwitching, message + fmt.Sprintf("; its members recorded that generation %d takes over, so generation %d does not continue by itself", step.To, step.From)
	case s.Fence().Withdraw:
		return v1alpha1.ReasonUpgradeSwitching, message + fmt.Sprintf("; the upgrade is being stopped, and generation %d continues when one of its members has recorded that", step.From)
	case record.Until != nil:
		until = *record.Until
	}
	return v1alpha1.ReasonUpgradeSwitching, message + fmt.Sprintf("; if this does not end by %s, the former version continues", until.UTC().Format(time.RFC3339))
}

// preparing is what is reported while the active generation serves.
func preparing(s *decision.Pass, step *memory.Step, r observev1alpha1.UpgradeReport) (v1alpha1.UpgradePhase, xpv2.ConditionReason, string) {
	t := s.Siblings[step.To]
	begun := fmt.Sprintf("generation %d of version %s is being prepared while generation %d serves", step.To, s.VersionOf(step.To), step.From)
	back := fmt.Sprintf("; to cancel, set spec.version back to %q", s.VersionOf(step.From))
	phase := v1alpha1.UpgradePhase(r.Phase)
	if m := blockedUpgrade(t); m != nil {
		return cmp.Or(phase, v1alpha1.UpgradeCopying), xpv2.ConditionReason(m.Reason), begun + ": " + about(*m) + back
	}
	if r.Message != "" {
		begun += ": " + r.Message
	}
	switch r.Phase {
	case apimembers.UpgradeIncompatible:
		return phase, v1alpha1.ReasonUpgradeIncompatible, fmt.Sprintf("the data cannot be upgraded: %s; drop or change the objects that this names: Capstan tries again every minute%s",
			strings.TrimRight(r.Findings, ". "), back)
	case apimembers.UpgradeReady:
		g := s.MayFence()
		return phase, cmp.Or(g.Reason, v1alpha1.ReasonUpgradeWaiting), "the copy is ready: " + cmp.Or(g.Message, "clients are about to be switched") + back
	case apimembers.UpgradeChecking:
		return phase, v1alpha1.ReasonUpgradePreparing, begun + "; Capstan copies the data next, and tries the upgrade on the copy" + back
	case "":
		if a := awaitedBy(s, t); a != nil {
			begun += ": " + a.Message
		}
	}
	return v1alpha1.UpgradeCopying, v1alpha1.ReasonUpgradePreparing, begun + "; the data is being copied" + back
}

// cannotFence is the leader that should stop for a fence but continues to serve, if it does.
func cannotFence(s *facts.Cluster) *observev1alpha1.TopologyMember {
	i := slices.IndexFunc(s.Seen.Members, func(m observev1alpha1.TopologyMember) bool { return m.Reason == string(v1alpha1.ReasonCannotFence) })
	if i < 0 || s.Fence().ID == "" {
		return nil
	}
	return &s.Seen.Members[i]
}

// blockedUpgrade is the member that upgrades, if something blocks it.
func blockedUpgrade(s *decision.Decision) *observev1alpha1.TopologyMember {
	if s == nil {
		return nil
	}
	if m := blocked(s.Cluster); m != nil && !slices.Contains(whileUpgrading, m.Reason) {
		return m
	}
	return nil
}

// outcomeOfUpgrade is what is reported of an upgrade that is over.
func outcomeOfUpgrade(s *facts.Cluster, done memory.Done) *upgradeState {
	from, to := s.Memory.Versions[done.From], s.Memory.Versions[done.To]
	st := &upgradeState{status: corev1.ConditionFalse}
	st.UpgradeStatus = v1alpha1.UpgradeStatus{ID: done.ID, From: from, To: to, Since: &metav1.Time{Time: done.When}}
	again := "to try again, set spec.upgrade to {retry: <a new word>}"
	switch done.State {
	case v1alpha1.RestoreFailed:
		st.Phase, st.reason = v1alpha1.UpgradeFailed, v1alpha1.ReasonUpgradeFailed
		st.Message = fmt.Sprintf("the upgrade failed, and generation %d of version %s continues unchanged: %s; %s, or set spec.version back to %q",
			done.From, from, strings.TrimRight(done.Why, ". "), again, from)
	case v1alpha1.RestoreUndone:
		st.Phase, st.reason = v1alpha1.UpgradeUndone, v1alpha1.ReasonUpgradeUndone
		st.Message = fmt.Sprintf("clients were switched back to generation %d of version %s; commits made after the upgrade are only in generation %d; set spec.version to %q and remove spec.upgrade.undo; %s",
			done.From, from, done.To, from, again)
	default:
		st.status, st.Phase, st.reason = corev1.ConditionTrue, v1alpha1.UpgradeDone, v1alpha1.ReasonUpgraded
		st.Message = fmt.Sprintf("clients were switched to generation %d of version %s", done.To, to)
		if s.Memory.Keeps(done.From) {
			st.Message += fmt.Sprintf("; generation %d of version %s is kept: to go back to it, WITHOUT the commits made since, set spec.upgrade to {undo: %s} and spec.version to %q",
				done.From, from, done.ID, from)
		}
		settling(s, st, done)
	}
	return st
}

// settling adds the report of the member that upgraded the data and serves.
func settling(s *facts.Cluster, st *upgradeState, done memory.Done) {
	if s.WaitsForStandby() {
		st.status, st.Phase, st.reason = corev1.ConditionFalse, v1alpha1.UpgradeSettling, v1alpha1.ReasonUpgradeSettling
		st.Message += "; commits wait until a standby has copied the data (spec.upgrade.wait): to acknowledge them before, set spec.upgrade.wait to None"
	}
	r := s.Seen.Upgrade
	if r == nil || r.ID != done.ID {
		return
	}
	if r.Phase != apimembers.UpgradeDone {
		st.Phase, st.reason = v1alpha1.UpgradeSettling, v1alpha1.ReasonUpgradeSettling
		st.Message += "; statistics are being computed, and some queries may be slower until then"
	}
	if r.Message != "" {
		st.Message += "; " + r.Message
	}
}
