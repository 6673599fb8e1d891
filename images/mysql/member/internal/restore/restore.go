// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/binlog"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/server"
)

const (
	// A batch of logs is replayed while the next one is fetched. It ends with the log that exceeds batchSize, in bytes, or at batchLogs.
	batchSize = 64 << 20
	batchLogs = 64
	// fetches at a time.
	fetches = 4
	// replayedEvery is how often it is looked whether a batch was replayed.
	replayedEvery = 100 * time.Millisecond
)

// A Restorer restores into a folder.
type Restorer struct {
	Repository *repository.Repository
	// Server is how the server over the data is started.
	Server server.Scratch
	Log    *slog.Logger
}

// A Result of a restore.
type Result struct {
	// Loaded and Replayed are how long it took to load the backup, and to replay the logs.
	Loaded, Replayed time.Duration
	// Set are the transactions of the data, and Last is when the last one of them that was replayed was committed, or when the backup ended.
	Set  gtid.Set
	Last time.Time
}

// Restore what was planned, and leave a server running over the data. What is in the folder is removed first. Nothing is left running when
// there is an error.
func (r Restorer) Restore(ctx context.Context, p Plan) (*server.Running, Result, error) {
	begun := time.Now()
	if err := os.RemoveAll(r.Server.Data); err != nil {
		return nil, Result{}, fmt.Errorf("cannot remove what is left of a restore: %w", err)
	}
	r.Log.Info("loading a backup", "label", p.Backup.Label, "size", p.Backup.Size)
	if err := r.Repository.Load(ctx, p.Backup.Label, r.Server.Data); err != nil {
		return nil, Result{}, err
	}
	running, err := r.Server.Start(ctx)
	if err != nil {
		return nil, Result{}, err
	}
	out := Result{Loaded: time.Since(begun), Last: p.Backup.Ended}
	r.Log.Info("loaded the backup", "label", p.Backup.Label, "took", out.Loaded.String())
	begun = time.Now()
	if err := r.replay(ctx, running, p, &out); err != nil {
		running.Kill()
		return nil, Result{}, err
	}
	out.Replayed = time.Since(begun)
	r.Log.Info("replayed what was archived", "logs", len(p.Logs), "took", out.Replayed.String(), "until", stamp(out.Last))
	return running, out, nil
}

// A batch of logs in the folder of the data.
type batch struct {
	channel, first string
	// set has the transactions that there are once it is replayed, and before the one that ends the restore, if it is among them.
	set, before gtid.Set
	last        time.Time
	logs        int
}

// replay the logs of a plan.
func (r Restorer) replay(ctx context.Context, s *server.Running, p Plan, out *Result) error {
	has, err := s.Executed(ctx)
	if err != nil {
		return err
	}
	if !has.Contains(p.Backup.Set) || !p.Backup.Set.Contains(has) {
		return fmt.Errorf("the backup %s should have the transactions %s, and has %s", p.Backup.Label, p.Backup.Set, has)
	}
	out.Set = has
	group, ctx := errgroup.WithContext(ctx)
	batches := make(chan batch)
	group.Go(func() error {
		defer close(batches)
		return r.fetch(ctx, p, has, func(b batch) error {
			select {
			case batches <- b:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	group.Go(func() error {
		done := 0
		for b := range batches {
			if err := r.apply(ctx, s, b); err != nil {
				return err
			}
			out.Set = b.set
			if !b.last.IsZero() {
				out.Last = b.last
			}
			done += b.logs
			r.Log.Info("replaying", "logs", done, "of", len(p.Logs), "until", stamp(out.Last))
		}
		return nil
	})
	return group.Wait()
}

// fetch the logs of a plan in batches, up to the one in which it ends.
func (r Restorer) fetch(ctx context.Context, p Plan, has gtid.Set, give func(batch) error) error {
	for n, left := 1, p.Logs; len(left) > 0; n++ {
		logs := left[:next(left)]
		left = left[len(logs):]
		b := batch{channel: fmt.Sprintf("capstan%d", n), logs: len(logs)}
		files := make([]string, len(logs))
		loading, loadingCtx := errgroup.WithContext(ctx)
		loading.SetLimit(fetches)
		for i, l := range logs {
			files[i] = fmt.Sprintf("relay-%s.%06d", b.channel, i+1)
			loading.Go(func() error {
				return r.load(loadingCtx, l, filepath.Join(r.Server.Data, files[i]))
			})
		}
		if err := loading.Wait(); err != nil {
			return err
		}
		for i, l := range logs {
			ended, err := p.within(filepath.Join(r.Server.Data, files[i]), l, &has, &b)
			if err != nil {
				return fmt.Errorf("cannot read the binary log %s of %s: %w", l.File, l.Server, err)
			}
			if ended {
				if err := r.behind(ctx, p, has, logs[i:], files[i:], left); err != nil {
					return err
				}
				files, left = files[:i+1], nil
				break
			}
		}
		b.first, b.set = files[0], has
		index := "./" + strings.Join(files, "\n./") + "\n"
		if err := durable.Write(filepath.Join(r.Server.Data, "relay-"+b.channel+".index"), []byte(index)); err != nil {
			return fmt.Errorf("cannot list the logs to replay: %w", err)
		}
		if err := give(b); err != nil {
			return err
		}
	}
	return p.reached(has)
}

// behind the transaction that ends a restore to a time, nothing may be from before the time. Logs that are loaded are in files, and it loads
// more.
func (r Restorer) behind(ctx context.Context, p Plan, has gtid.Set, logs []repository.Log, files []string, more []repository.Log) error {
	if p.At == nil {
		return nil
	}
	c := cut{at: *p.At, has: has}
	for i, l := range logs {
		if err := c.read(filepath.Join(r.Server.Data, files[i]), l); err != nil {
			return err
		}
	}
	file := filepath.Join(r.Server.Data, "relay-behind")
	for _, l := range more {
		if l.First.After(*p.At) {
			continue
		}
		if err := r.load(ctx, l, file); err != nil {
			return err
		}
		if err := errors.Join(c.read(file, l), os.Remove(file)); err != nil {
			return err
		}
	}
	return c.err()
}

// A Lost log was archived, and is gone or damaged.
type Lost struct { //nolint:errname // restore.Lost says it.
	Log repository.Log
	err error
}

func (l *Lost) Error() string {
	return fmt.Sprintf("the binary log %s of %s, with what was committed between %s and %s, is lost: %v. Choose a time up to %[3]s", l.Log.File, l.Log.Server,
		stamp(l.Log.First), stamp(l.Log.Last), l.err)
}

func (l *Lost) Unwrap() error { return l.err }

// load a log into a file.
func (r Restorer) load(ctx context.Context, l repository.Log, file string) error {
	err := r.Repository.LoadLog(ctx, l, file)
	switch {
	case errors.Is(err, repository.ErrNotFound), errors.Is(err, repository.ErrDamaged):
		return &Lost{l, err}
	case err != nil:
		return fmt.Errorf("cannot load the binary log %s of %s: %w", l.File, l.Server, err)
	}
	return nil
}

// next batch of logs.
func next(logs []repository.Log) int {
	size := int64(0)
	for i, l := range logs {
		if size += l.Size; size > batchSize || i+1 == batchLogs {
			return i + 1
		}
	}
	return len(logs)
}

// apply a batch, and remove its logs.
func (r Restorer) apply(ctx context.Context, s *server.Running, b batch) error {
	if err := s.Replay(ctx, b.channel, b.first, b.before); err != nil {
		return err
	}
	for {
		is, err := s.Replayed(ctx, b.channel)
		ended := b.before.Empty() && is.Executed.Contains(b.set) || !b.before.Empty() && !is.Running
		switch {
		case s.Ended():
			return fmt.Errorf("the server ended while it replayed what was archived: %s", s.Cause())
		case err != nil:
			return err
		case is.Failed != "":
			return fmt.Errorf("what was archived cannot be replayed: %s", s.Cause())
		case ended && (!is.Executed.Contains(b.set) || !b.set.Contains(is.Executed)):
			return fmt.Errorf("the replay ended with the transactions %s, and should have ended with %s", is.Executed, b.set)
		case ended:
			return s.EndReplay(ctx, b.channel)
		case !is.Running:
			return errors.New("the replay ended by itself: see the log of the pod")
		case ctx.Err() != nil:
			return ctx.Err()
		}
		loop.Sleep(ctx, replayedEvery)
	}
}

// within adds the transactions of a log that are not after the target, and reports whether the target is in it.
func (p Plan) within(file string, l repository.Log, has *gtid.Set, b *batch) (ended bool, err error) {
	if p.At == nil && p.Point == nil {
		*has, b.last = has.Union(l.Set), l.Last
		return false, nil
	}
	var bad error
	err = binlog.Each(file, func(t binlog.Transaction) bool {
		one, err := t.Set()
		switch {
		case err != nil:
			bad = err
			return false
		case has.Contains(one):
		case p.ends(one, t.Committed):
			b.before, ended = one, true
		default:
			*has, b.last = has.Union(one), t.Committed
		}
		return !ended
	})
	return ended, errors.Join(err, bad)
}
