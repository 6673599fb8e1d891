// SPDX-License-Identifier: Apache-2.0

// Package handover makes another member the leader before this one stops.
package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

const (
	// electLimit is how long the group waits for transactions under way. Those that take longer are rolled back.
	electLimit = 10 * time.Second
	// shutLimit is how long it may take to send clients away.
	shutLimit = 5 * time.Second
	// Limit of a handover, which is part of the time that the pod has to stop.
	Limit = 30 * time.Second
	// announcedFor is how long an announcement holds. The kubelet stops the container as soon as its hook has ended.
	announcedFor = Limit + 15*time.Second
)

// short is the longest queue of a member that takes over at once.
const short = 1_000

// Candidate is the member that is best fit to be the leader after this one: its id, or nothing when none is. It is online, has the same version,
// because one that is older could not follow it, and executed almost all that it received. Pods that stop are never fit.
func Candidate(l decision.Look, stopping []string) (server, member string) {
	own := l.Own()
	var fit []decision.Peer
	for _, p := range l.Group {
		if p.Server == own.Server || p.State != decision.Online || p.Version != own.Version || p.Queue > short ||
			slices.Contains(stopping, layout.Pod(layout.MemberOf(p.Host))) {
			continue
		}
		fit = append(fit, p)
	}
	if len(fit) == 0 {
		return "", ""
	}
	best := slices.MinFunc(fit, func(a, b decision.Peer) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Host, b.Host))
	})
	return best.Server, layout.MemberOf(best.Host)
}

// Leave it to another member to be the leader, if this one is, and send its clients away. It returns what was done. A commit that is under way while the server
// leaves the group would hold its stop up for a minute, so that none is when this returns.
func Leave(ctx context.Context, s *mysql.Server, stopping []string) (string, error) {
	l, err := look(ctx, s)
	if err != nil {
		return "", err
	}
	if own := l.Own(); own.State != decision.Online || own.Role != decision.Primary {
		return "nothing to hand over", nil
	}
	said := "no other member is fit to be the leader"
	if server, member := Candidate(l, stopping); server != "" {
		begun := time.Now()
		if err = Elect(ctx, s, server); err == nil {
			said = fmt.Sprintf("member %s is the leader after %s", member, time.Since(begun).Round(time.Millisecond))
		}
	}
	shut, cancel := context.WithTimeout(ctx, shutLimit)
	defer cancel()
	return said, errors.Join(err, s.Shut(shut, true), s.TakeNoWrites(shut))
}

// Elect a member by the id of its data, and wait until the group has it as its leader.
func Elect(ctx context.Context, s *mysql.Server, server string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*electLimit)
	defer cancel()
	// The group elects no member while a channel follows another server. The next leader continues with that.
	if err := errors.Join(s.StopImport(ctx), s.Elect(ctx, server, electLimit)); err != nil {
		return err
	}
	for {
		l, err := look(ctx, s)
		if err != nil {
			return err
		}
		for _, p := range l.Group {
			if p.Server == server && p.Role == decision.Primary {
				return nil
			}
		}
		loop.Sleep(ctx, 50*time.Millisecond)
	}
}

func look(ctx context.Context, s *mysql.Server) (decision.Look, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return s.Look(ctx)
}

// Announce that the pod is about to stop. From then on the member admits no clients that it has sent away.
func Announce() error { return Said("") }

// Said is what became of the handover, for the program that runs.
func Said(text string) error {
	if err := durable.Write(layout.Stopping, []byte(text)); err != nil {
		return fmt.Errorf("cannot announce the stop: %w", err)
	}
	return nil
}

// Announced reports whether the pod is about to stop.
func Announced() bool {
	info, err := os.Stat(layout.Stopping)
	return err == nil && time.Since(info.ModTime()) < announcedFor
}

// Overdue reports whether a stop was announced that never came.
func Overdue() bool {
	_, err := os.Stat(layout.Stopping)
	return err == nil && !Announced()
}

// Recall an announcement: the member continues. A leader that handed over to no other member takes writes again.
func Recall(ctx context.Context, s *mysql.Server) error {
	l, err := look(ctx, s)
	if err != nil {
		return err
	}
	if own := l.Own(); own.Role == decision.Primary && l.ReadOnly {
		ctx, cancel := context.WithTimeout(ctx, shutLimit)
		defer cancel()
		if err := s.TakeWrites(ctx); err != nil {
			return err
		}
	}
	if err := os.Remove(layout.Stopping); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot recall that the pod stops: %w", err)
	}
	return nil
}
