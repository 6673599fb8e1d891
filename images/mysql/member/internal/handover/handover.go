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
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/peers"
)

const (
	// electLimit is how long the group waits for transactions under way. Those that take longer are rolled back.
	electLimit = 10 * time.Second
	// askLimit is how long members may take to say what they have.
	askLimit = time.Second
	// shutLimit is how long it may take to send clients away.
	shutLimit = 5 * time.Second
	// Limit of a handover, which is part of the time that the pod has to stop.
	Limit = 30 * time.Second
	// announcedFor is how long an announcement holds. The kubelet stops the container as soon as its hook has ended.
	announcedFor = Limit + 15*time.Second
)

// short is how many transactions a member may have yet to receive and execute that takes over at once.
const short = 1_000

// A Candidate to be the leader after this one.
type Candidate struct {
	// Server is the id of its data.
	Server, Member string
	// Lacks is how many transactions of the leader it did not receive, and Queue how many it received and did not execute.
	Lacks, Queue int64
	// silent reports that the program of the member did not say what it received.
	silent bool
}

// behind is by how many transactions, at least. One that waits for its check may count in both numbers.
func (c Candidate) behind() int64 { return max(c.Lacks, c.Queue) }

// Candidates are the members that can be the leader after this one, the best one first. They are online, have the same version, because one that
// is older could not follow it, and received and executed almost all. Pods that stop are none. Others are what members said of themselves, by name,
// after the look.
func Candidates(l decision.Look, others map[string]decision.Member, stopping []string) []Candidate {
	own := l.Own()
	var fit []Candidate
	for _, p := range l.Group {
		if p.Server == own.Server || p.State != decision.Online || p.Version != own.Version ||
			slices.Contains(stopping, layout.Pod(layout.MemberOf(p.Host))) {
			continue
		}
		if c := candidate(l, p, others); c.behind() <= short {
			fit = append(fit, c)
		}
	}
	slices.SortFunc(fit, func(a, b Candidate) int {
		switch {
		case a.silent == b.silent:
			return cmp.Or(cmp.Compare(a.behind(), b.behind()), cmp.Compare(a.Member, b.Member))
		case a.silent:
			return 1
		default:
			return -1
		}
	})
	return fit
}

// Next leader by the id of its data, as a person requests it: the member with this pod, or the best one without a name. Unlike a candidate the
// named one may have a long queue, and its pod may stop.
func Next(l decision.Look, others map[string]decision.Member, pod string) (server string, err error) {
	if pod == "" {
		fit := Candidates(l, others, nil)
		if len(fit) == 0 {
			return "", errors.New("no other member is fit to be the leader")
		}
		return fit[0].Server, nil
	}
	for _, p := range l.Group {
		if layout.Pod(layout.MemberOf(p.Host)) != pod || p.State != decision.Online {
			continue
		}
		if c := candidate(l, p, others); c.Lacks > short {
			return "", fmt.Errorf("%s has not received %d transactions that the leader has: see the condition HighlyAvailable of the Database", pod, c.Lacks)
		}
		return p.Server, nil
	}
	return "", fmt.Errorf("%s is not online", pod)
}

// candidate that a member is. One that does not hear from others of its group may lack a lot, and has an empty queue.
func candidate(l decision.Look, p decision.Peer, others map[string]decision.Member) Candidate {
	c := Candidate{Server: p.Server, Member: layout.MemberOf(p.Host), Queue: p.Queue, silent: true}
	has, err := gtid.Parse(l.Executed)
	if o := others[c.Member]; err == nil && o.Server == p.Server {
		c.Lacks, c.silent = has.Minus(o.Has).Count(), false
	}
	return c
}

// Ask the other members of a group that this one hears from what they have, by name. Those that do not answer soon are not in the result.
func Ask(ctx context.Context, l decision.Look, scope string) map[string]decision.Member {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	hosts := map[string]string{}
	for _, p := range l.Group {
		if p.Server != l.Server && p.State == decision.Online {
			hosts[layout.MemberOf(p.Host)] = p.Host
		}
	}
	return peers.AskNow(ctx, scope, hosts)
}

// Leave it to another member of the scope to be the leader, if this one is, and send its clients away. It returns what was done. A commit that is under way while the server
// leaves the group would hold its stop up for a minute, so that none is when this returns.
func Leave(ctx context.Context, s *mysql.Server, scope string, stopping []string) (string, error) {
	l, err := look(ctx, s)
	if err != nil {
		return "", err
	}
	if own := l.Own(); own.State != decision.Online || own.Role != decision.Primary {
		return "nothing to hand over", nil
	}
	said := "no other member is fit to be the leader"
	if fit := Candidates(l, Ask(ctx, l, scope), stopping); len(fit) > 0 {
		begun := time.Now()
		if err = Elect(ctx, s, fit[0].Server); err == nil {
			said = fmt.Sprintf("member %s is the leader after %s", fit[0].Member, time.Since(begun).Round(time.Millisecond))
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
