// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/peers"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/record"
)

const (
	// copyEvery is the time between two looks at the request, and copyLimit how long one may take.
	copyEvery = 5 * time.Second
	copyLimit = 20 * time.Second
)

// A Copier lets this member be copied again from its group when a person requests that, once for each id.
type Copier struct {
	names    layout.Names
	pods     *pods.Client
	store    *record.Client
	seen     func() Seen
	reporter *report.Reporter
	log      *slog.Logger
	// restart the server, which then discards its data.
	restart func()

	// mu is held by a look at the request. The Supervisor discards data between two of them.
	mu   sync.Mutex
	away atomic.Bool
	// left is what the data has since it was decided to discard it; nil before, and once that was tried.
	left *gtid.Set
}

// A sight of a request is what this volume knows of the moment when its member first saw the request.
type sight struct {
	ID string `json:"id"`
	// Reported are the transactions that the data had, if by then the member reported that the group lacks some of them.
	Reported gtid.Set `json:"reported"`
	// Answered reports that the server has answered since then.
	Answered bool `json:"answered"`
}

// next sight, of the request that there is now. own is what the data has, if the server answers, and reported whether the member
// reports that the group lacks some of it.
func (s sight) next(id string, own gtid.Set, answers, reported bool) sight {
	if s.ID != id {
		s = sight{ID: id}
		if reported {
			s.Reported = own
		}
	}
	s.Answered = s.Answered || answers
	return s
}

// Away reports whether the member has to leave its group, and to stay out of it.
func (c *Copier) Away() bool { return c.away.Load() }

// once looks at the request, and returns the pause before the next look.
func (c *Copier) once(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	step, err := c.look(ctx)
	// A member that cannot know how the others are stays in the group.
	c.away.Store(step != decision.Stay)
	if err != nil && ctx.Err() == nil {
		c.log.Warn("cannot copy this member again as requested", "error", err)
	}
	if step == decision.Leave {
		return retryEvery
	}
	return copyEvery
}

// look at the request, and begin the next step.
func (c *Copier) look(ctx context.Context) (decision.Step, error) {
	config, err := layout.ReadConfig()
	if err != nil {
		return decision.Stay, err
	}
	requested := ""
	if r := config.Reinitialize; r != nil && r.Member == c.names.Name {
		requested = r.ID
	}
	var last members.ReinitializeReport
	known, err := durable.ReadJSON(layout.Reinitialized, &last)
	if err != nil {
		return decision.Stay, fmt.Errorf("cannot read the last request: %w", err)
	}
	if !known {
		return decision.Stay, c.keep(report.FirstRequest(requested))
	}
	former, err := exists(layout.Former)
	if err != nil {
		return decision.Stay, err
	}
	begun := last.Outcome == members.ReinitializeCopying
	switch {
	case begun && !former:
		requested = last.ID // The data is gone, also if the request is.
	case begun && requested != last.ID:
		last = members.ReinitializeReport{}
		return decision.Stay, c.keep(last) // It was withdrawn before the data was removed.
	case requested == "", requested == last.ID && !begun:
		c.show(last)
		return decision.Stay, nil
	}
	now, err := c.situation(ctx, config.Domain)
	if err != nil {
		return decision.Stay, err
	}
	now.ID, now.Last, now.Former = requested, last, former
	if err := c.own(&now); err != nil {
		return decision.Stay, err
	}
	return c.proceed(now)
}

// proceed as far as the situation allows, and report how far that is.
func (c *Copier) proceed(now decision.Again) (decision.Step, error) {
	next, step := decision.CopyAgain(now)
	c.left = nil
	if step == decision.Discard {
		c.left = &now.Has
	}
	switch {
	case step == decision.Discard:
		// What is on the volume says that it has begun before it has: a request is carried out at most once.
		if err := errors.Join(durable.Write(layout.Former, nil), c.keep(next)); err != nil {
			return decision.Stay, err
		}
		c.log.Warn("this member is copied again from the group, as requested", "id", now.ID)
		c.restart()
	case next.Outcome == members.ReinitializeRefused:
		return step, errors.Join(remove(layout.Former), c.keep(next))
	case next.Outcome == members.ReinitializeWaiting:
		c.show(next)
	case next != now.Last:
		return step, c.keep(next)
	default:
		c.show(next)
	}
	return step, nil
}

// own part of a decision: how this member is, what it has, and what the person knew who made the request.
func (c *Copier) own(now *decision.Again) error {
	s := c.seen()
	answers := s.Server != ""
	if answers {
		var err error
		if now.Has, err = has(s.Look); err != nil {
			return err
		}
		now.Own = s.Own()
	}
	var before sight
	if _, err := durable.ReadJSON(layout.Requested, &before); err != nil {
		return fmt.Errorf("cannot read when the request was made: %w", err)
	}
	reported := c.reporter.Report().Reason == mysqlmember.ReasonExtraTransactions
	after := before.next(now.ID, now.Has, answers, reported)
	if after.ID != before.ID || after.Answered != before.Answered {
		if err := durable.WriteJSON(layout.Requested, after); err != nil {
			return fmt.Errorf("cannot keep when the request was made: %w", err)
		}
	}
	now.Reported = after.Reported
	if !answers {
		now.Unknown = after.Answered && c.left == nil
		if c.left != nil {
			now.Has = *c.left
		}
	}
	return nil
}

// Discard the data before the server starts on it, if a request has come so far and the others are still well.
func (c *Copier) Discard(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	// It was no longer the data when the program ended before.
	const gone = mysqlmember.FolderData + ".former"
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("cannot remove data that was replaced: %w", err)
	}
	var last members.ReinitializeReport
	_, err := durable.ReadJSON(layout.Reinitialized, &last)
	if err != nil {
		return fmt.Errorf("cannot read the last request: %w", err)
	}
	former, err := exists(layout.Former)
	if err != nil || !former || last.Outcome != members.ReinitializeCopying {
		return err
	}
	config, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	now, err := c.situation(ctx, config.Domain)
	if err != nil {
		c.log.Warn("the data stays, because the others are not known", "error", err)
		return nil
	}
	now.ID, now.Last, now.Former = last.ID, last, true
	// The server has stopped. A program that began since then does not know what the data has, and lets the server say it first.
	err = c.own(&now)
	c.left = nil
	if err != nil {
		return err
	}
	if next, step := decision.CopyAgain(now); step != decision.Discard {
		c.log.Warn("the data stays", "reason", next.Message)
		return nil
	}
	// From the new name on there is no data: half of it is worse than none.
	if err := os.Rename(mysqlmember.FolderData, gone); err != nil {
		return fmt.Errorf("cannot remove data that is replaced: %w", err)
	}
	if err := errors.Join(durable.Sync(filepath.Dir(gone)), os.RemoveAll(gone)); err != nil {
		return fmt.Errorf("cannot remove data that is replaced: %w", err)
	}
	c.away.Store(false)
	c.log.Info("removed the data, as requested", "id", last.ID)
	return nil
}

// situation of the others, as they say themselves.
func (c *Copier) situation(ctx context.Context, domain string) (decision.Again, error) {
	rec, err := c.store.Read(ctx)
	if err != nil {
		return decision.Again{}, err
	}
	list, err := c.pods.List(ctx)
	if err != nil {
		return decision.Again{}, err
	}
	hosts := hostsOf(membersOf(list), rec.View, domain)
	delete(hosts, c.names.Name)
	return decision.Again{
		Name: c.names.Name, Others: peers.Ask(ctx, c.names.Scope, hosts), Count: len(hosts), Copying: pods.Copying(list, c.names.Pod),
		Seated: slices.ContainsFunc(rec.View, func(s record.Seat) bool { return s.Name == c.names.Name }),
	}, nil
}

// show what becomes of the request.
func (c *Copier) show(r members.ReinitializeReport) {
	c.reporter.Change(func(m *members.Report) { m.Reinitialize = r })
}

// keep on the volume what became of the request, and show it.
func (c *Copier) keep(r members.ReinitializeReport) error {
	c.show(r)
	if err := durable.WriteJSON(layout.Reinitialized, r); err != nil {
		return fmt.Errorf("cannot keep what became of the request: %w", err)
	}
	return nil
}

func exists(file string) (bool, error) {
	_, err := os.Stat(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot look at the data: %w", err)
	}
	return err == nil, nil
}

func remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot forget a request: %w", err)
	}
	return nil
}
