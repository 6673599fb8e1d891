// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/upgrade"
)

const (
	// settleEvery is how often it is looked whether there is something to settle.
	settleEvery = 10 * time.Second
	// settleLimit is how often statistics that cannot be computed are tried.
	settleLimit = 3
)

// Parts of a member in settling an upgrade.
type part int

const (
	// idle: there is nothing to do, or nothing yet.
	idle part = iota
	// work: it leads, and settles.
	work
	// tidy: it did the upgrade, and another that leads by now has settled.
	tidy
)

// partOf this pod, which has the state of an upgrade or none on its volume.
func partOf(pod string, leads bool, s *upgrade.State, wanted *wantedUpgrade, list []pods.Pod) part {
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

// inherited tells whether the upgrade that a generation begins with was begun to settle by the member that did it, and by nobody in the end.
func inherited(w wantedUpgrade, list []pods.Pod) bool {
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

// settle what an upgrade leaves to do, on the member that leads: extensions are brought to the version that comes with the server, and
// statistics computed, without which queries are planned badly. It serves meanwhile. In the end the copy goes. When another member leads
// before that is done, it does it, and the member that did the upgrade removes the copy then.
func (m *member) settle(ctx context.Context) error {
	tries := 0
	for {
		if err := m.settleOnce(ctx, &tries); err != nil && ctx.Err() == nil {
			m.log.Warn("cannot settle the upgrade", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settleEvery):
		}
	}
}

// settleOnce does what there is to do now.
func (m *member) settleOnce(ctx context.Context, tries *int) error {
	leads := m.leads.Load()
	var s *upgrade.State
	if own, left, err := upgrade.Left(); err != nil {
		return err
	} else if left {
		s = &own
	}
	wanted, err := readWanted()
	if err != nil {
		return err
	}
	if (s == nil || s.Stage != upgrade.Settling) && (!leads || wanted.Upgrade == nil) {
		return nil
	}
	list, err := m.pods.List(ctx)
	if err != nil {
		return err
	}
	report := members.UpgradeReport{Phase: members.UpgradeSettling}
	if s != nil {
		report.ID = s.ID
		if err := m.tellSettling(ctx, report, list); err != nil {
			return err
		}
	} else {
		report.ID = wanted.Upgrade.ID
	}
	message := ""
	switch partOf(m.Pod, leads, s, wanted.Upgrade, list) {
	case idle:
		return nil
	case work:
		if message, err = m.complete(ctx, tries); err != nil {
			return err
		}
	case tidy:
	}
	if err := upgrade.Discard(); err != nil {
		return err
	}
	report.Phase, report.Message = members.UpgradeDone, message
	m.log.Info("upgrade", "phase", report.Phase, "message", report.Message)
	if err := m.pods.Annotate(ctx, members.AnnotationUpgrade, report); err != nil {
		return err
	}
	return upgrade.Forget()
}

// tellSettling once somebody leads on the data, unless the pod says so already.
func (m *member) tellSettling(ctx context.Context, r members.UpgradeReport, list []pods.Pod) error {
	if leading(list) == "" {
		return nil
	}
	for _, p := range list {
		if p.Name == m.Pod && p.Upgrade != nil && *p.Upgrade == r {
			return nil
		}
	}
	m.log.Info("upgrade", "phase", r.Phase)
	return m.pods.Annotate(ctx, members.AnnotationUpgrade, r)
}

// complete extensions and statistics of the server, and return what could not be.
func (m *member) complete(ctx context.Context, tries *int) (string, error) {
	begun := time.Now()
	// One that does not want to is named, and serves in its former version.
	stuck, err := managed.UpdateExtensions(ctx, layout.Postgres)
	if err != nil {
		return "", err
	}
	*tries++
	said, err := process.Run(ctx, layout.Volume, layout.Programs(m.Version)+"/vacuumdb", vacuum(m.Version)...)
	if err != nil {
		err = fmt.Errorf("cannot compute statistics: %w: %s", err, said)
		if *tries < settleLimit || !m.leads.Load() || ctx.Err() != nil {
			return "", err
		}
		// What an expression of an index does wrong, it does each time.
		m.log.Warn("statistics are not complete", "error", err)
		stuck = joined(stuck, err.Error()+": run ANALYZE in that database")
	}
	m.log.Info("settled", "took", time.Since(begun).Round(time.Millisecond).String())
	return stuck, nil
}

// joined texts, of which any may be empty.
func joined(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "; ")
}

// vacuum are the arguments that compute statistics: rough ones first, so that no table is without for long. From 18 on statistics come
// along, but for those that somebody defined.
func vacuum(major string) []string {
	args := []string{"--host=" + layout.Postgres, "--username=" + managed.Owner, "--no-password", "--all", "--analyze-in-stages", "--jobs=2"}
	if major >= "18" {
		args = append(args, "--missing-stats-only")
	}
	return args
}
