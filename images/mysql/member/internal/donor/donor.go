// SPDX-License-Identifier: Apache-2.0

// Package donor finds the member whose data a backup copies.
package donor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

const (
	// answerWithin is how long a member may take to say how it is. In a pod that was just started, half a minute may pass until network
	// policies let it through.
	answerWithin = 30 * time.Second
	// behind is how many transactions a standby may have to execute: a backup has what was executed.
	behind = 10_000
)

// A Donor is a member to copy.
type Donor struct {
	Host string
	// Group is the name of its group, and IsLeader reports whether it is the leader there.
	Group    string
	IsLeader bool
	// Executed has the transactions that it had executed when it answered.
	Executed gtid.Set

	queue int64
}

// Find the members that are fit to be copied, best first: standbys that are online and have little to execute, and the leader at last.
func Find(ctx context.Context, identity *tls.Config, hosts []string) ([]Donor, error) {
	var (
		mu       sync.Mutex
		all      sync.WaitGroup
		donors   []Donor
		problems []error
	)
	for _, host := range hosts {
		all.Go(func() {
			d, err := ask(ctx, identity, host)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", layout.MemberOf(host), err))
				return
			}
			donors = append(donors, d)
		})
	}
	all.Wait()
	if len(donors) == 0 {
		return nil, fmt.Errorf("no member can be copied: %w", errors.Join(problems...))
	}
	slices.SortFunc(donors, better)
	return donors, nil
}

// better of two donors is before the other one.
func better(a, b Donor) int {
	last := func(d Donor) int {
		if d.IsLeader {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(a.queue, b.queue), cmp.Compare(a.Host, b.Host))
}

// ask a member whether it is fit.
func ask(ctx context.Context, identity *tls.Config, host string) (Donor, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	s, err := mysql.Of(host, mysqlmember.AccountBackup, identity)
	if err != nil {
		return Donor{}, err
	}
	defer s.Close()
	l, err := s.Look(ctx)
	if err != nil {
		return Donor{}, err
	}
	d := Donor{Host: host}
	if d.Executed, err = gtid.Parse(l.Executed); err != nil {
		return Donor{}, err
	}
	d.Group, err = s.Group(ctx)
	return d.judge(l), cmp.Or(fit(l), err)
}

// OfLeader is what the leader had executed, of all that are fit; empty if it is not one of them.
func OfLeader(all []Donor) gtid.Set {
	for _, d := range all {
		if d.IsLeader {
			return d.Executed
		}
	}
	return gtid.Set{}
}

// judge what a member shows.
func (d Donor) judge(l decision.Look) Donor {
	own := l.Own()
	d.IsLeader, d.queue = own.Role == decision.Primary, own.Queue
	return d
}

// fit returns why a member is not to be copied; nil if it is.
func fit(l decision.Look) error {
	switch own := l.Own(); {
	case own.State != decision.Online:
		return fmt.Errorf("it is %s in its group", cmp.Or(own.State, decision.Outside))
	case !l.Majority():
		return errors.New("its group has no majority")
	case own.Queue > behind:
		return fmt.Errorf("it has %d transactions to execute", own.Queue)
	}
	return nil
}
