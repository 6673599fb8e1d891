// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// ErrGone says that no server has a package any more.
var ErrGone = errors.New("no server has it any more")

// errMissing says that one server does not have it.
var errMissing = errors.New("not found")

// fetchers is how many packages are downloaded at a time: many are small, and mirrors take their time to answer.
const fetchers = 8

// A Store keeps packages on this machine, by what is in them.
type Store struct {
	// Dir is the folder of the store.
	Dir     string
	Mirrors Mirrors
	// Snapshot is the address of an archive that forgets nothing; empty is none.
	Snapshot string
	// Client does the downloads; nil is one that waits no longer than a minute for an answer.
	Client *http.Client
}

// Path of a package in the store, whether or not it is there.
func (s *Store) Path(p Package) string { return filepath.Join(s.Dir, p.SHA256+".deb") }

// Fetch downloads those packages that the store lacks, and counts them. The error of one that every server has dropped is
// ErrGone.
func (s *Store) Fetch(ctx context.Context, l Lock, packages []Package, done *atomic.Int64) error {
	if err := os.MkdirAll(s.Dir, 0o750); err != nil {
		return fmt.Errorf("cannot create the store of packages: %w", err)
	}
	queue := make(chan Package)
	var mu sync.Mutex
	var failures []error
	var workers sync.WaitGroup
	for range fetchers {
		workers.Go(func() {
			for p := range queue {
				if err := s.fetch(ctx, l.Snapshots[p.Suite], p); err != nil {
					mu.Lock()
					failures = append(failures, fmt.Errorf("cannot download %s %s of %s: %w", p.Name, p.Version, p.Suite, err))
					mu.Unlock()
				}
				done.Add(1)
			}
		})
	}
	for _, p := range packages {
		queue <- p
	}
	close(queue)
	workers.Wait()
	return errors.Join(failures...)
}

// fetch asks the machine's mirror, which is near, then the snapshot service, which forgets nothing.
func (s *Store) fetch(ctx context.Context, moment time.Time, p Package) error {
	if _, err := os.Stat(s.Path(p)); err == nil {
		return nil
	}
	mirror := s.Mirrors[p.Archive()]
	if mirror == "" {
		return fmt.Errorf("no mirror has the archive %s: name one in %s", p.Archive(), MirrorVariable)
	}
	nearErr := s.download(ctx, mirror, p)
	if nearErr == nil {
		return nil
	}
	farErr := fmt.Errorf("%w: %s names no archive of what mirrors have dropped", errMissing, SnapshotVariable)
	if s.Snapshot != "" {
		farErr = s.download(ctx, fmt.Sprintf("%s/%s/%s", s.Snapshot, p.Archive(), moment.UTC().Format(snapshotLayout)), p)
	}
	if farErr == nil {
		return nil
	}
	both := errors.Join(nearErr, farErr)
	// A snapshot service that cannot be reached from here may have it, but that is of no help.
	var unreachable *url.Error
	if errors.Is(nearErr, errMissing) && (errors.Is(farErr, errMissing) || errors.As(farErr, &unreachable)) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrGone, both)
	}
	return both
}

// download keeps a package only if it is what the lock names.
func (s *Store) download(ctx context.Context, server string, p Package) error {
	address, err := url.JoinPath(server, p.Path)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	client := s.Client
	if client == nil {
		client = &http.Client{Timeout: time.Minute}
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone:
		return fmt.Errorf("%w: %s", errMissing, address)
	default:
		return fmt.Errorf("%s answers %s", address, resp.Status)
	}
	tmp, err := os.CreateTemp(s.Dir, ".deb-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(tmp, sum), resp.Body)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != p.SHA256 {
		return fmt.Errorf("%s has sha256 %s, and the lock names %s", address, got, p.SHA256)
	}
	return os.Rename(tmp.Name(), s.Path(p))
}
