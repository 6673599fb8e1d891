// SPDX-License-Identifier: Apache-2.0

// Package promotion lets a member be promoted only once no standby that could acknowledge a commit still receives what the former leader
// writes.
//
// With the quorum commit of Patroni, a commit needs one of several standbys. A former leader that was frozen thaws with commits under way,
// and Patroni stops it only a moment later. Until then a standby that still follows it acknowledges them, beside the member that is
// promoted: they would be lost. So the member that has the lock waits until those standbys follow it or the former leader has stopped, and
// none of them has more than it has.
package promotion

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dcs"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
)

const (
	// Limit is how long a promotion waits. After it the lock is released, and another member may be the better one.
	Limit = 15 * time.Second
	// pause between two looks, and askLimit of one question.
	pause    = 50 * time.Millisecond
	askLimit = time.Second
)

// A Guard holds the promotion of a member that has the leader's lock.
type Guard struct {
	layout.Names

	DCS  *dcs.Client
	Pods *pods.Client
	Log  *slog.Logger
}

// Wait until the member may be promoted. The error says why it may not.
func (g *Guard) Wait(ctx context.Context) error {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	s, addresses, err := g.known(ctx)
	if err != nil {
		return err
	}
	need := Needs(s, g.Pod)
	if need == 0 {
		return nil
	}
	// In the background, because one that is frozen takes its time not to answer.
	stopped := make(chan struct{})
	go g.followFormer(ctx, addresses[s.Leader], stopped)
	last := errors.New("they were not asked yet")
	ended := false
	for {
		select {
		case <-stopped:
			ended = true
		default:
		}
		with, asked := g.behind(ctx, s.Voters, addresses, ended)
		if len(with) >= need {
			g.Log.Info("no standby can have more: promoting", "leader", s.Leader, "stopped", ended, "standbys", with, "took", time.Since(begun).Round(time.Millisecond).String())
			return nil
		}
		var ahead *aheadError
		switch {
		case errors.As(asked, &ahead):
			return asked
		case ctx.Err() == nil && asked != nil:
			last = asked
		case ctx.Err() == nil:
			last = fmt.Errorf("%d of %s follow this member, and %d have to", len(with), strings.Join(s.Voters, ", "), need)
		default:
			return fmt.Errorf("standbys that may acknowledge commits of %s do not follow this member after %s: %w", s.Leader, Limit, last)
		}
		loop.Sleep(ctx, pause)
	}
}

// known is what is recorded of synchronous replication, and the addresses of the members by their pods. The API server answered a moment ago,
// so each question is repeated when it does not.
func (g *Guard) known(ctx context.Context) (dcs.Synchronous, map[string]string, error) {
	for {
		s, err := g.DCS.Synchronous(ctx)
		if err == nil {
			var all map[string]string
			if all, err = g.addresses(ctx); err == nil {
				return s, all, nil
			}
		}
		if ctx.Err() != nil {
			return dcs.Synchronous{}, nil, err
		}
		loop.Sleep(ctx, pause)
	}
}

// Needs is how many voters beside a member have to follow it, so that no commit of the former leader gets an acknowledgement without one
// that does: as many as it needed to be elected.
func Needs(s dcs.Synchronous, pod string) int {
	switch {
	case s.Leader == "", s.Leader == pod:
		return 0
	case slices.Contains(s.Voters, pod):
		return s.Quorum
	default:
		return s.Quorum + 1
	}
}

// aheadError is a standby that has more than the member that should be promoted. Both are positions in the log.
type aheadError struct {
	pod       string
	has, here int64
}

func (e *aheadError) Error() string {
	return fmt.Sprintf("%s has received %d, and this member %d: what the former leader acknowledged last may be there only", e.pod, e.has, e.here)
}

// behind are the voters that have no more than this member has, and receive no more from the former leader: they stream from this member, or
// the former leader has stopped. A voter that does not answer is not one of them, and the error is about it.
func (g *Guard) behind(ctx context.Context, voters []string, addresses map[string]string, stopped bool) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	conn, err := managed.Connect(ctx, pgmember.FolderSocket, pgmember.PortPostgres, "postgres")
	if err != nil {
		return nil, err
	}
	defer managed.Close(ctx, conn)
	var streaming []string
	if err := conn.QueryRow(ctx, "select coalesce(array_agg(application_name), '{}') from pg_stat_replication").Scan(&streaming); err != nil {
		return nil, fmt.Errorf("cannot find out which standbys follow this member: %w", err)
	}
	var with []string
	var silent error
	for _, pod := range voters {
		if pod == g.Pod || !stopped && !slices.Contains(streaming, pod) {
			continue
		}
		// A standby has one connection for what it receives. What it received before is in no view here: it says so itself.
		has, err := patroni.At(addresses[pod]).Received(ctx)
		if err != nil {
			silent = err
			continue
		}
		// This member may still receive more from the former leader, which it has when it is promoted.
		var here int64
		err = conn.QueryRow(ctx, "select greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn").Scan(&here)
		if err != nil {
			return nil, fmt.Errorf("cannot find out what this member has received: %w", err)
		}
		if has > here {
			return nil, &aheadError{pod: pod, has: has, here: here}
		}
		with = append(with, pod)
	}
	return with, silent
}

// followFormer asks the Patroni of the former leader until it says that its server takes no writes. It closes the channel then.
func (g *Guard) followFormer(ctx context.Context, address string, stopped chan<- struct{}) {
	for address != "" && ctx.Err() == nil {
		ask, cancel := context.WithTimeout(ctx, askLimit)
		s, err := patroni.At(address).State(ask)
		cancel()
		if err == nil && s.Demoted() {
			close(stopped)
			return
		}
		loop.Sleep(ctx, pause)
	}
}

// addresses of the members by the names of their pods.
func (g *Guard) addresses(ctx context.Context) (map[string]string, error) {
	list, err := g.Pods.List(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, p := range list {
		all[p.Name] = p.IP
	}
	return all, nil
}
