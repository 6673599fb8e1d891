// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/upgrade"
)

const (
	// settleEvery is how often a member checks for something to settle.
	settleEvery = 10 * time.Second
	// settleLimit is how often statistics that cannot be computed are tried.
	settleLimit = 3
)

// Parts of a member in settling an upgrade.
type part int

const (
	// idle: there is nothing to do, or nothing yet.
	idle part = iota
	// work: it is the leader, and settles.
	work
	// tidy: it did the upgrade, and another leader has settled it.
	tidy
)

// partOf this pod, which has the state of an upgrade or none on its volume.
func partOf(pod string, leads bool, s *upgrade.State, wanted *pgmember.Upgrade, list []pods.Pod) part {
	if s != nil && s.Stage == upgrade.Settling {
		if leads {
			return work
		}
		for _, p := range list {
			if p.Name != pod && p.Upgrade != nil && p.Upgrade.ID == s.ID && p.Upgrade.Phase == members.UpgradeDone {
				return tidy
			}
		}
		return idle
	}
	if leads && s == nil && wanted != nil && inherited(*wanted, list) {
		return work
	}
	return idle
}

// inherited reports whether the upgrade was begun to settle by the member that did it, and no member has finished that.
func inherited(w pgmember.Upgrade, list []pods.Pod) bool {
	settling := false
	for _, p := range list {
		if p.Upgrade == nil || p.Upgrade.ID != w.ID {
			continue
		}
		if p.Upgrade.Phase == members.UpgradeDone {
			return false
		}
		settling = settling || (p.Member == w.Member && p.Upgrade.Phase == members.UpgradeSettling)
	}
	return settling
}

// A Settler does what an upgrade leaves to do, on the leader: it brings extensions to the version that comes with the server and
// computes statistics, without which queries are planned badly. The member serves meanwhile. In the end the copy is
// removed. When another member becomes the leader before that is done, it does it, and the member that did the upgrade removes
// the copy then.
type Settler struct {
	Names layout.Names
	Pods  *pods.Client
	// `Leads` reports whether this member is the leader.
	Leads func() bool
	Log   *slog.Logger

	tries int
}

// Once does what there is to do now, and returns the pause before the next time.
func (s *Settler) Once(ctx context.Context) time.Duration {
	if err := s.settle(ctx); err != nil && ctx.Err() == nil {
		s.Log.Warn("cannot settle the upgrade", "error", err)
	}
	return settleEvery
}

func (s *Settler) settle(ctx context.Context) error {
	leads := s.Leads()
	var state *upgrade.State
	if own, left, err := upgrade.Left(); err != nil {
		return err
	} else if left {
		state = &own
	}
	config, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	if (state == nil || state.Stage != upgrade.Settling) && (!leads || config.Upgrade == nil) {
		return nil
	}
	list, err := s.Pods.List(ctx)
	if err != nil {
		return err
	}
	report := members.UpgradeReport{Phase: members.UpgradeSettling}
	if state != nil {
		report.ID = state.ID
		if err := s.reportSettling(ctx, report, list); err != nil {
			return err
		}
	} else {
		report.ID = config.Upgrade.ID
	}
	message := ""
	switch partOf(s.Names.Pod, leads, state, config.Upgrade, list) {
	case idle:
		return nil
	case work:
		if message, err = s.complete(ctx); err != nil {
			return err
		}
	case tidy:
	}
	if err := upgrade.Discard(); err != nil {
		return err
	}
	report.Phase, report.Message = members.UpgradeDone, message
	s.Log.Info("upgrade", "phase", report.Phase, "message", report.Message)
	if err := s.Pods.Annotate(ctx, members.AnnotationUpgrade, report); err != nil {
		return err
	}
	return upgrade.Forget()
}

// reportSettling once a member is the leader on the data, unless the pod has it already.
func (s *Settler) reportSettling(ctx context.Context, r members.UpgradeReport, list []pods.Pod) error {
	if leaderOf(list).Name == "" {
		return nil
	}
	if u := s.Pods.Own(list).Upgrade; u != nil && *u == r {
		return nil
	}
	s.Log.Info("upgrade", "phase", r.Phase)
	return s.Pods.Annotate(ctx, members.AnnotationUpgrade, r)
}

// complete extensions and statistics of the server, and return what could not be.
func (s *Settler) complete(ctx context.Context) (string, error) {
	begun := time.Now()
	// An extension that cannot be updated is named, and serves in its former version.
	stuck, err := managed.UpdateExtensions(ctx, pgmember.FolderSocket)
	if err != nil {
		return "", err
	}
	s.tries++
	said, err := process.Run(ctx, pgmember.FolderVolume, pgmember.Programs(s.Names.Version)+"/vacuumdb", vacuum(s.Names.Version)...)
	if err != nil {
		err = fmt.Errorf("cannot compute statistics: %w: %s", err, said)
		if s.tries < settleLimit || !s.Leads() || ctx.Err() != nil {
			return "", err
		}
		// An expression of an index that fails does so each time.
		s.Log.Warn("statistics are not complete", "error", err)
		if stuck != "" {
			stuck += "; "
		}
		stuck += err.Error() + ": run ANALYZE in that database"
	}
	s.Log.Info("settled", "took", time.Since(begun).Round(time.Millisecond).String())
	return stuck, nil
}

// vacuum are the arguments that compute statistics: rough ones first, so that no table is without for long. From 18 on pg_upgrade
// brings statistics along, except those that users defined.
func vacuum(major string) []string {
	args := []string{
		"--host=" + pgmember.FolderSocket, "--username=" + pgmember.RoleSuperuser, "--no-password", "--all", "--analyze-in-stages", "--jobs=2",
		// Statistics do not wait for a standby, as commits of clients may.
		"--maintenance-db=dbname=postgres options='-c synchronous_commit=local'",
	}
	if major >= "18" {
		args = append(args, "--missing-stats-only")
	}
	return args
}
