// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
)

const (
	// own is the folder of what is not a model.
	own = ".capstan"

	recordSuffix  = ".model"
	usedSuffix    = ".used"
	lockSuffix    = ".lock"
	partialSuffix = ".partial"
)

// keyPattern has no dot, so that keys never meet names of our own.
var keyPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Options of a Store.
type Options struct {
	// Dir is the folder of the volume.
	Dir string
	// Key of the model, and its folder's name.
	Key string
	// Keep are keys that are never removed to make room.
	Keep []string
	// Pod distinguishes pods. A pod that starts again takes over what it had locked. Empty if unknown.
	Pod string
	// Stale is how long a lock must not have moved before another takes it over.
	Stale time.Duration
}

// A Store keeps models, and this pod cares about one of them.
type Store struct {
	Options

	log  *slog.Logger
	root *os.Root
	// id of this process.
	id string
	// free bytes of the volume.
	free func() (int64, error)
}

// Open the store in a folder, which must be there.
func Open(log *slog.Logger, o Options) (*Store, error) {
	for _, key := range append([]string{o.Key}, o.Keep...) {
		if !keyPattern.MatchString(key) {
			return nil, failure.New(failure.Invalid, fmt.Sprintf("key %q is not the name of a folder for models", key),
				"use 1 to 63 lower case letters, digits and dashes")
		}
	}
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the volume for models: %w", err)
	}
	// Group members of other pods make files in it, too.
	if err := root.Mkdir(own, 0o775); err == nil {
		_ = root.Chmod(own, 0o775|fs.ModeSetgid)
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, errors.Join(fmt.Errorf("cannot write to the volume for models: %w", err), root.Close())
	}
	s := &Store{Options: o, log: log, root: root, id: strings.ToLower(rand.Text())[:12]}
	s.free = s.available
	return s, nil
}

// Close the store.
func (s *Store) Close() error { return s.root.Close() }

// Use records that this pod starts with the model, and returns what it consists of if it is there and whole. Each file's size is
// compared with what was verified when it was written; its content is not read again.
func (s *Store) Use() (model.Manifest, error) {
	// Before looking: who makes room looks at it after taking a model away, and then puts this one back.
	if err := s.touch(s.Key); err != nil {
		return nil, err
	}
	m, err := s.record(s.Key)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("cannot use the model on the volume, so it is downloaded again", "error", err)
		}
		return nil, nil
	}
	folder, err := s.root.OpenRoot(s.Key)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	if err := m.Matches(folder); err != nil {
		s.log.Warn("the model on the volume is damaged, so it is downloaded again", "error", err)
		return nil, nil
	}
	return m, nil
}

// A Partial is a model that is being downloaded.
type Partial struct {
	*model.Folder

	name string
}

// Begin a download. What others have left of the same model goes. It needs the lock.
func (s *Store) Begin() (*Partial, error) {
	for _, name := range s.list(partialSuffix) {
		if keyOf(name) == s.Key {
			if err := s.root.RemoveAll(path.Join(own, name)); err != nil {
				return nil, fmt.Errorf("cannot remove what is left of a download: %w", err)
			}
		}
	}
	name := s.partial(s.Key)
	if err := s.root.Mkdir(name, 0o775); err != nil {
		return nil, fmt.Errorf("cannot begin a download: %w", err)
	}
	folder, err := s.root.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("cannot begin a download: %w", err)
	}
	return &Partial{Folder: model.NewFolder(folder), name: name}, nil
}

// Discard a download.
func (s *Store) Discard(p *Partial) {
	_ = p.Close()
	if err := s.root.RemoveAll(p.name); err != nil {
		s.log.Warn("cannot remove what is left of a download; the next one tries again", "error", err)
	}
}

// Publish a sealed download under the store's key.
func (s *Store) Publish(p *Partial, m model.Manifest) error {
	_ = p.Close()
	if err := s.remove(s.Key); err != nil {
		return err
	}
	if err := s.write(s.Key+recordSuffix, m.Write); err != nil {
		return err
	}
	if err := s.root.Rename(p.name, s.Key); err != nil {
		return fmt.Errorf("cannot put the model in its place: %w", err)
	}
	return s.flush(".")
}

// remove a model that is damaged, or a folder that was made in its place.
func (s *Store) remove(key string) error {
	aside := s.partial(key)
	if err := s.root.Rename(key, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("cannot remove model %q: %w", key, err)
	}
	if err := s.root.RemoveAll(aside); err != nil {
		return fmt.Errorf("cannot remove model %q: %w", key, err)
	}
	return nil
}

// partial returns a new name for a folder that is no model.
func (s *Store) partial(key string) string {
	return path.Join(own, key+"."+s.id+strings.ToLower(rand.Text())[:4]+partialSuffix)
}

func (s *Store) record(key string) (model.Manifest, error) {
	f, err := s.root.Open(path.Join(own, key+recordSuffix))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return model.Read(f)
}

func (s *Store) touch(key string) error {
	name := path.Join(own, key+usedSuffix)
	// Writing lets the file server's own clock say when, and clocks of nodes may differ.
	if err := s.root.WriteFile(name, []byte(s.id+"\n"), 0o664); err != nil {
		return fmt.Errorf("cannot write to the volume for models: %w", err)
	}
	return nil
}

// write a file of the own folder, which appears as a whole.
func (s *Store) write(name string, content func(w io.Writer) error) error {
	draft := path.Join(own, name+"."+s.id)
	f, err := s.root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o664)
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	err = content(f)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = s.root.Rename(draft, path.Join(own, name))
	}
	if err != nil {
		_ = s.root.Remove(draft)
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	return s.flush(own)
}

// flush makes the names in a folder survive a crash.
func (s *Store) flush(dir string) error {
	f, err := s.root.Open(dir)
	if err != nil {
		return fmt.Errorf("cannot flush the volume for models: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("cannot flush the volume for models: %w", err)
	}
	return nil
}

// list the names in the own folder with an ending.
func (s *Store) list(suffix string) []string {
	entries, err := fs.ReadDir(s.root.FS(), own)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			names = append(names, e.Name())
		}
	}
	return names
}

// keyOf is the key that a name of the own folder begins with.
func keyOf(name string) string {
	key, _, _ := strings.Cut(filepath.Base(name), ".")
	return key
}
