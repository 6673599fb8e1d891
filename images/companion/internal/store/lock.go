// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// A Lock keeps others from downloading the same model. It is a file, because locks of the operating system do not reach other
// nodes on every file system. Its holder rewrites it again and again; one that does not move any more was left behind by a pod
// that is gone. No clocks are compared.
type Lock struct {
	store  *Store
	cancel context.CancelFunc
	done   chan struct{}
}

// errLost is why the work of a holder is cancelled who was taken for dead.
var errLost = errors.New("another pod has taken over the download")

// Lost reports whether the holder of a context of Lock was taken for dead, which happens when the volume or the node was frozen
// for long. It may just try again.
func Lost(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errLost) }

// Lock waits until no other pod downloads the model, or one has downloaded it. The context that it returns is
// cancelled when the lock is lost.
func (s *Store) Lock(ctx context.Context) (context.Context, *Lock, error) {
	seen, since, told := "", time.Now(), false
	for {
		switch err := s.acquire(); {
		case err == nil:
			held, l := s.hold(ctx)
			return held, l, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, nil, fmt.Errorf("cannot lock the model: %w", err)
		}
		now := s.holder()
		switch {
		case now != seen:
			seen, since = now, time.Now()
		case time.Since(since) >= s.Stale:
			s.log.Warn("the pod that downloads the model does not move any more")
			s.takeOver(seen)
			seen, since = "", time.Now()
		}
		if s.mine(now) {
			s.takeOver(now)
			continue
		}
		if !told {
			s.log.Info("waiting for another pod that downloads the same model")
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(min(time.Second, s.Stale/4)):
		}
	}
}

// acquire the lock if it is free.
func (s *Store) acquire() error {
	f, err := s.root.OpenFile(s.lock(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o664)
	if err != nil {
		return err
	}
	_, err = f.WriteString(s.line(0))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = s.root.Remove(s.lock())
	}
	return err
}

// hold the lock until it is released or lost.
func (s *Store) hold(ctx context.Context) (context.Context, *Lock) {
	held, lose := context.WithCancelCause(ctx)
	l := &Lock{store: s, done: make(chan struct{}), cancel: func() { lose(nil) }}
	go func() {
		defer close(l.done)
		beat := time.NewTicker(s.Stale / 6)
		defer beat.Stop()
		for n := 1; ; n++ {
			select {
			case <-held.Done():
				return
			case <-beat.C:
			}
			if s.renew(n) {
				continue
			}
			s.log.Warn("another pod has taken over the download")
			lose(errLost)
			return
		}
	}()
	return held, l
}

// Release the lock.
func (l *Lock) Release() {
	l.cancel()
	<-l.done
	if s := l.store; strings.HasPrefix(s.holder(), s.id) {
		_ = s.root.Remove(s.lock())
	}
}

// renew moves the lock. It is lost only when another has it, or none: a volume that cannot be written for a moment is no reason
// to stop.
func (s *Store) renew(n int) bool {
	f, err := s.root.OpenFile(s.lock(), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = f.Close() }()
	line := s.line(n)
	have := make([]byte, len(line))
	if _, err := f.ReadAt(have, 0); err != nil || !strings.HasPrefix(string(have), s.id) {
		return err != nil && !errors.Is(err, fs.ErrNotExist)
	}
	// Through the file that was just read: if another pod has moved it aside meanwhile, theirs stays as it is.
	_, _ = f.WriteAt([]byte(line), 0)
	return true
}

// takeOver a lock that has had this content for too long. Of several that try only one gets it.
func (s *Store) takeOver(content string) {
	aside := path.Join(own, s.Key+lockSuffix+"."+s.id)
	if err := s.root.Rename(s.lock(), aside); err != nil {
		return
	}
	if got, err := s.root.ReadFile(aside); err == nil && string(got) != content {
		// Another pod was faster, and this is its lock.
		_ = s.root.Link(aside, s.lock())
	}
	_ = s.root.Remove(aside)
}

// holder is the content of the lock; it is empty when it is free, or has just begun to.
func (s *Store) holder() string {
	content, err := s.root.ReadFile(s.lock())
	if err != nil {
		return ""
	}
	return string(content)
}

// mine reports whether an earlier container of this pod has left the lock behind.
func (s *Store) mine(content string) bool {
	_, pod, _ := strings.Cut(content, " ")
	pod, _, _ = strings.Cut(pod, " ")
	return s.Pod != "" && pod == s.Pod && !strings.HasPrefix(content, s.id)
}

// line is the content of the lock; it always has the same length.
func (s *Store) line(n int) string { return fmt.Sprintf("%s %s %012d\n", s.id, s.pod(), n) }

func (s *Store) pod() string {
	if s.Pod == "" {
		return "-"
	}
	return s.Pod
}

func (s *Store) lock() string { return path.Join(own, s.Key+lockSuffix) }
