// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"errors"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/binlog"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

// concurrent transactions get their times before their order: they may go back by as much.
const concurrent = time.Second

// A Backwards reports that a clock went back, so that a time is no moment: transactions from before it come after ones from after it.
type Backwards struct { //nolint:errname // restore.Backwards says it.
	// At is the time that was requested.
	At time.Time
	// From is the first time that came twice, and Until the last one, as far as is known.
	From, Until time.Time
}

func (b *Backwards) Error() string {
	return fmt.Sprintf("%s is no single moment: the clock of a leader was set back, and what was committed at %s comes after what was committed at %s. Choose a time before "+
		"%[2]s, one after %[3]s, or a restore point", stamp(b.At), stamp(b.From), stamp(b.Until))
}

// A cut is where a restore to a time ends: before the first transaction after it.
type cut struct {
	at time.Time
	// has are the transactions before the cut, and of the logs that were read behind it.
	has gtid.Set
	// highest time so far of what comes after the cut, and back what is wrong with it.
	highest time.Time
	back    *Backwards
}

// add what was committed after the cut.
func (c *cut) add(committed time.Time) {
	if committed.After(c.highest) {
		c.highest = committed
	}
	if committed.After(c.at) || c.highest.Sub(committed) <= concurrent {
		return
	}
	if c.back == nil {
		c.back = &Backwards{At: c.at, From: committed}
	}
	if committed.Before(c.back.From) {
		c.back.From = committed
	}
	c.back.Until = c.highest
}

// err of what comes after the cut.
func (c *cut) err() error {
	if c.back == nil {
		return nil
	}
	return c.back
}

// read what a log has that comes after the cut.
func (c *cut) read(file string, l repository.Log) error {
	var bad error
	err := binlog.Each(file, func(t binlog.Transaction) bool {
		var one gtid.Set
		if one, bad = t.Set(); bad == nil && !c.has.Contains(one) {
			c.add(t.Committed)
		}
		return bad == nil
	})
	if err = errors.Join(err, bad); err != nil {
		return fmt.Errorf("cannot read the binary log %s of %s: %w", l.File, l.Server, err)
	}
	c.has = c.has.Union(l.Set)
	return nil
}
