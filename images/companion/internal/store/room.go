// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
)

const (
	// unused is how long no pod must have started with a model before it may go to make room.
	unused = 24 * time.Hour
	// spare is what stays free, for the file system's own needs.
	spare = 16 << 20
)

// Room makes room for a model of this many bytes, if need be by removing models that no pod has started with for a day, longest
// unused first. It never removes the store's own model, nor one that it has to keep.
func (s *Store) Room(need int64) error {
	have, err := s.free()
	if err != nil || have >= need+spare {
		return err
	}
	now, err := s.now()
	if err != nil {
		return err
	}
	s.sweepPartials(now)
	for _, key := range s.candidates(now) {
		if have, err = s.free(); err != nil || have >= need+spare {
			return err
		}
		if err := s.evict(key, now); err != nil {
			return err
		}
	}
	if have, err = s.free(); err != nil || have >= need+spare {
		return err
	}
	return failure.New(failure.NoSpace,
		fmt.Sprintf("the model needs %s and the volume for models has %s left", Bytes(need), Bytes(max(0, have-spare))),
		"make spec.model.cache.resources.requests.storage larger or, without a cache, give nodes more disk")
}

// available bytes of the volume.
func (s *Store) available() (int64, error) {
	f, err := s.root.Open(".")
	if err != nil {
		return 0, fmt.Errorf("cannot ask how much room there is: %w", err)
	}
	defer func() { _ = f.Close() }()
	var stat syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &stat); err != nil {
		return 0, fmt.Errorf("cannot ask how much room there is: %w", err)
	}
	return int64(stat.Bavail) * stat.Bsize, nil //nolint:gosec,unconvert,nolintlint // A disk has less than 8 EiB; types differ by platform.
}

// now by the clock of the volume, which times of files come from.
func (s *Store) now() (time.Time, error) {
	if err := s.touch(s.Key); err != nil {
		return time.Time{}, err
	}
	return s.used(s.Key)
}

// used is when a pod last started with a model.
func (s *Store) used(key string) (time.Time, error) {
	info, err := s.root.Stat(path.Join(own, key+usedSuffix))
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot find out when model %q was used: %w", key, err)
	}
	return info.ModTime(), nil
}

// candidates are keys of models that may go, longest unused first.
func (s *Store) candidates(now time.Time) []string {
	when := map[string]time.Time{}
	var keys []string
	for _, name := range s.list(recordSuffix) {
		key := strings.TrimSuffix(name, recordSuffix)
		if !keyPattern.MatchString(key) || key == s.Key || slices.Contains(s.Keep, key) {
			continue
		}
		if used, err := s.used(key); err == nil && now.Sub(used) >= unused {
			when[key] = used
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(when[a].Compare(when[b]), cmp.Compare(a, b)) })
	return keys
}

// evict a model, unless a pod starts with it at this moment.
func (s *Store) evict(key string, now time.Time) error {
	aside := s.partial(key)
	if err := s.root.Rename(key, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			s.forget(key)
			return nil
		}
		return fmt.Errorf("cannot make room: %w", err)
	}
	if used, err := s.used(key); err != nil || now.Sub(used) < unused {
		if err := s.root.Rename(aside, key); err != nil {
			return fmt.Errorf("cannot put back a model that is used again: %w", err)
		}
		return nil
	}
	s.forget(key)
	s.log.Info("removed a model to make room", "key", key)
	if err := s.root.RemoveAll(aside); err != nil {
		return fmt.Errorf("cannot make room: %w", err)
	}
	return nil
}

// forget a model that is gone.
func (s *Store) forget(key string) {
	_ = s.root.Remove(path.Join(own, key+recordSuffix))
	_ = s.root.Remove(path.Join(own, key+usedSuffix))
}

// sweepPartials removes what is left of downloads of other models that have not progressed for a day.
func (s *Store) sweepPartials(now time.Time) {
	for _, name := range s.list(partialSuffix) {
		if keyOf(name) == s.Key {
			continue
		}
		info, err := s.root.Stat(path.Join(own, keyOf(name)+lockSuffix))
		if errors.Is(err, fs.ErrNotExist) {
			info, err = s.root.Stat(path.Join(own, name))
		}
		if err == nil && now.Sub(info.ModTime()) >= unused {
			_ = s.root.RemoveAll(path.Join(own, name))
		}
	}
}

// Bytes writes a number of bytes for people, so roughly that it does not change from try to try.
func Bytes(n int64) string {
	const unit = 1024
	value, prefix := float64(n), ""
	for _, p := range []string{"Ki", "Mi", "Gi", "Ti"} {
		if value < unit {
			break
		}
		value, prefix = value/unit, p
	}
	if prefix == "" {
		return fmt.Sprintf("%d bytes", n)
	}
	if value < 10 {
		return fmt.Sprintf("%.1f %sB", value, prefix)
	}
	return fmt.Sprintf("%.0f %sB", value, prefix)
}
