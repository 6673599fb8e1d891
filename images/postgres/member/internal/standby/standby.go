// SPDX-License-Identifier: Apache-2.0

// Package standby brings back a standby that cannot follow any more, because its leader has removed what it needs next of the
// write-ahead log: the standby replays the archive, or else it is copied again.
package standby

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
)

const (
	// lookEvery is the time between two looks at a standby.
	lookEvery = 5 * time.Second
	// limit of one look.
	limit = 20 * time.Second
	// silentFor is how long a standby has to be without its leader before it requests from the leader what it needs.
	silentFor = 10 * time.Second
	// standsFor is how long a lost standby may not advance before it is copied again, and standsInArchive the same when there is
	// an archive: one segment of an archive may take a minute.
	standsFor       = 15 * time.Second
	standsInArchive = 2 * time.Minute
	// streamsFor is how many looks in a row have to find that it streams. One that is lost does so for a moment at each try.
	streamsFor = 2
)

// A Keeper watches over a standby.
type Keeper struct {
	Pod     string
	Pods    *pods.Client
	Patroni *patroni.Client
	// Holder is the pod that has the leader's lock, as it was last observed.
	Holder   func() string
	Reporter *report.Reporter
	Log      *slog.Logger

	state state
}

// state of a standby.
type state struct {
	// silent is since when it does not stream, lost since when the leader is known to have removed what it needs, and stood since
	// when it has not advanced from its position. Zero: it is not so.
	silent, lost, stood time.Time
	position            string
	streams             int
}

// Once looks at the standby, and returns the pause before the next look.
func (k *Keeper) Once(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, err := k.Patroni.State(ctx)
	if err != nil {
		return lookEvery // others report that
	}
	before := k.state
	k.state = before.next(s, time.Now())
	if k.state.silent.IsZero() {
		k.found(before)
		return lookEvery
	}
	if !s.Follows() || time.Since(k.state.silent) < silentFor {
		return lookEvery // it is copied, or starts
	}
	if err := k.look(ctx); err != nil && ctx.Err() == nil {
		k.Log.Warn("cannot find out why this standby does not follow", "error", err)
	}
	return lookEvery
}

// next state by what Patroni reports.
func (s state) next(p patroni.State, now time.Time) state {
	switch {
	case p.Leads, p.State == "running" && p.Role != "replica":
		return state{}
	case p.Follows() && p.Replication == "streaming":
		if s.streams++; s.streams >= streamsFor || s.lost.IsZero() {
			return state{streams: s.streams}
		}
		return s
	}
	s.streams = 0
	if s.silent.IsZero() {
		s.silent = now
	}
	return s
}

// at a position, and whether the leader has removed what comes next.
func (s state) at(position string, removed bool, now time.Time) state {
	if removed && s.lost.IsZero() {
		s.lost = now
	}
	if position != s.position || s.stood.IsZero() {
		s.position, s.stood = position, now
	}
	return s
}

// copies reports whether the standby has to be copied again: it is lost, and has stood too long.
func (s state) copies(archive bool, now time.Time) bool {
	most := standsFor
	if archive {
		most = standsInArchive
	}
	return !s.lost.IsZero() && now.Sub(s.stood) >= most
}

// found the leader again, or became the leader.
func (k *Keeper) found(before state) {
	k.Reporter.Clear(members.ReasonStandbyLost)
	if before.lost.IsZero() {
		return
	}
	k.Log.Info("this standby follows again", "after", time.Since(before.lost).Round(time.Second).String())
	if err := os.Remove(layout.Fetch); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.Log.Warn("PostgreSQL continues to read the archive", "error", err)
	}
}

// look at a standby that runs and does not stream.
func (k *Keeper) look(ctx context.Context) error {
	holder := k.Holder()
	if holder == "" || holder == k.Pod {
		return nil // it cannot follow anybody
	}
	list, err := k.Pods.List(ctx)
	if err != nil {
		return err
	}
	leader := ""
	for _, p := range list {
		if p.Name == holder {
			leader = p.IP
		}
	}
	if leader == "" {
		return nil
	}
	place, err := own(ctx)
	if err != nil {
		return err
	}
	if place.Paused {
		return nil // a person stopped the replay
	}
	removed, err := place.removed(ctx, leader)
	if err != nil {
		return err
	}
	k.state = k.state.at(place.LSN, removed, time.Now())
	if k.state.lost.IsZero() {
		return nil
	}
	return k.bringBack(ctx, removed, list)
}

// lostMessage is what every message of a lost standby begins with.
const lostMessage = "the leader has removed the write-ahead log that this standby needs next: "

// bringBack a lost standby: from the archive as long as that helps, else by a new copy, while no other member is copied.
func (k *Keeper) bringBack(ctx context.Context, removed bool, list []pods.Pod) error {
	config, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	archive := config.Backup != nil && config.Backup.Enabled
	if archive {
		if err := os.WriteFile(layout.Fetch, nil, 0o600); err != nil {
			return fmt.Errorf("cannot let PostgreSQL read the archive: %w", err)
		}
	}
	if !removed || !k.state.copies(archive, time.Now()) {
		how := "it will be copied again"
		if archive {
			how = "it replays the archive"
		}
		k.Reporter.Block(members.ReasonStandbyLost, lostMessage+how)
		return nil
	}
	if first := before(list, k.Pod); first != "" {
		k.Reporter.Block(members.ReasonStandbyLost, lostMessage+"it will be copied again after member "+first)
		return nil
	}
	k.Reporter.Block(members.ReasonStandbyLost, lostMessage+"it is copied again from the leader")
	k.Log.Warn("copying this standby again", "position", k.state.position, "lost", time.Since(k.state.lost).Round(time.Second).String())
	if err := k.Patroni.Reinitialize(ctx); err != nil {
		k.Reporter.Block(members.ReasonStandbyLost, lostMessage+"it cannot be copied again: "+err.Error())
		return err
	}
	k.state.stood = time.Now()
	return nil
}

// before this member another one is copied: one that is being copied, or that is lost, too, and has an earlier name. "" when there
// is none.
func before(list []pods.Pod, own string) string {
	if other := pods.Copying(list, own); other != "" {
		return other
	}
	for _, p := range list {
		if p.Name < own && p.Reason == members.ReasonStandbyLost && p.Started && !p.Stopping {
			return p.Member
		}
	}
	return ""
}
