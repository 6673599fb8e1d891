// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/capstan-dev/capstan/images/member/durable"
)

var (
	// errNone: there is no such object.
	errNone = errors.New("there is no such object")
	// errName: no object can have this name.
	errName = errors.New("no object can have this name")
	// errChanged: what is there is not what the request is for.
	errChanged = errors.New("the object is not as the request wants it")
	// errFull: the volume has no room for it.
	errFull = errors.New("the volume is full")
)

// incoming is the folder of what is not whole yet. No key is in there, for none has a step that begins with a dot.
const incoming = ".incoming"

const (
	// reserve is the room, in bytes, that only small objects may take: locks, indexes and manifests. Without them nothing could be removed from
	// a volume that is full.
	reserve = 32 << 20
	// small is how large such an object is at most, in bytes.
	small = 1 << 20
)

// step of a key.
var step = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,200}$`)

// A tree of objects in a folder, which no key escapes. An object is there as a whole or not at all.
type tree struct {
	root *os.Root
	// free bytes of the volume.
	free func() (int64, error)
	// changing lets one change at a time be seen.
	changing sync.Mutex
	numbers  atomic.Int64
}

// grow a tree in a folder, which is made if it is not there. What is left of writes that did not end is removed.
func grow(folder string, free func() (int64, error)) (*tree, error) {
	if err := durable.Folders(folder); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder of objects: %w", err)
	}
	if err := errors.Join(root.RemoveAll(incoming), root.Mkdir(incoming, 0o700)); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot prepare the folder of objects: %w", err), root.Close())
	}
	return &tree{root: root, free: free}, nil
}

func (t *tree) close() { _ = t.root.Close() }

// valid reports whether a key can be the one of an object.
func valid(key string) bool {
	for s := range strings.SplitSeq(key, "/") {
		if !step.MatchString(s) {
			return false
		}
	}
	return true
}

// tagOf a file. Each write makes another file, so a tag is never the one of other content.
func tagOf(info fs.FileInfo) string {
	inode := uint64(0)
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = s.Ino
	}
	return fmt.Sprintf(`"%x-%x-%x"`, inode, info.ModTime().UnixNano(), info.Size())
}

// open an object, to be read.
func (t *tree) open(key string) (*os.File, fs.FileInfo, error) {
	if !valid(key) {
		return nil, nil, errName
	}
	f, err := t.root.Open(key)
	if err != nil {
		return nil, nil, missing(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNone
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// missing is errNone when an object, or a folder above it, is not there.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return errNone
	}
	return err
}

// put an object of a size. It takes the place of another one if that is allowed, by its tag, or "" for none. It outlasts a host that is lost.
func (t *tree) put(key string, body io.Reader, size int64, allowed func(tag string) bool) error {
	if !valid(key) {
		return errName
	}
	if free, err := t.free(); err == nil && size > small && free-size < reserve {
		return errFull
	}
	next := path.Join(incoming, strconv.FormatInt(t.numbers.Add(1), 10))
	err := t.receive(next, body, size)
	if err == nil {
		err = t.place(next, key, allowed)
	}
	if err != nil {
		_ = t.root.Remove(next) // It is gone when the program starts again, at the latest.
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return errFull
		}
	}
	return err
}

// receive what is sent, as a whole.
func (t *tree) receive(name string, body io.Reader, size int64) error {
	f, err := t.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, body)
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// place what was received under its key.
func (t *tree) place(next, key string, allowed func(tag string) bool) error {
	t.changing.Lock()
	defer t.changing.Unlock()
	tag := ""
	switch info, err := t.root.Lstat(key); {
	case err == nil && !info.Mode().IsRegular():
		return errName
	case err == nil:
		tag = tagOf(info)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if !allowed(tag) {
		return errChanged
	}
	if err := t.folders(path.Dir(key)); err != nil {
		return err
	}
	if err := t.root.Rename(next, key); err != nil {
		return err
	}
	return t.sync(path.Dir(key))
}

// folders on the way to an object, which are all there after a loss of power.
func (t *tree) folders(to string) error {
	if to == "." {
		return nil
	}
	if _, err := t.root.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := t.folders(path.Dir(to)); err != nil {
		return err
	}
	if err := t.root.Mkdir(to, 0o700); err != nil {
		return err
	}
	return t.sync(path.Dir(to))
}

// sync a folder.
func (t *tree) sync(folder string) error { return durable.Sync(path.Join(t.root.Name(), folder)) }

// remove an object, and the folders that are empty then.
func (t *tree) remove(key string) error {
	if !valid(key) {
		return errName
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	info, err := t.root.Lstat(key)
	if err == nil && !info.Mode().IsRegular() {
		return errNone
	}
	if err == nil {
		err = t.root.Remove(key)
	}
	if err != nil {
		return missing(err)
	}
	folder := path.Dir(key)
	for folder != "." && t.root.Remove(folder) == nil {
		folder = path.Dir(folder)
	}
	return t.sync(folder)
}

// list the objects whose keys begin with a prefix; with shallow only the folders and objects right below it.
func (t *tree) list(prefix string, shallow bool) ([]Entry, error) {
	folder, begins := path.Split(prefix)
	if folder = strings.TrimSuffix(folder, "/"); folder == "" {
		folder = "."
	} else if !valid(folder) {
		return nil, errName
	}
	all := []Entry{}
	err := t.each(folder, func(name string, d fs.DirEntry) error {
		switch key := path.Join(folder, name); {
		case !strings.HasPrefix(name, begins):
			return nil
		case !d.IsDir():
			return t.add(&all, key, d)
		case shallow:
			some, err := t.holds(key)
			if some {
				all = append(all, Entry{Key: key + "/"})
			}
			return err
		default:
			return t.below(key, func(key string, d fs.DirEntry) error { return t.add(&all, key, d) })
		}
	})
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return all, err
}

// add an object to a list, unless it was removed meanwhile.
func (t *tree) add(all *[]Entry, key string, d fs.DirEntry) error {
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	*all = append(*all, Entry{Key: key, Tag: tagOf(info), Written: info.ModTime().UTC(), Size: info.Size()})
	return nil
}

// each object and folder of a folder, which may be gone: it is empty then.
func (t *tree) each(folder string, do func(name string, d fs.DirEntry) error) error {
	all, err := fs.ReadDir(t.root.FS(), folder)
	if err = missing(err); errors.Is(err, errNone) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range all {
		if !step.MatchString(d.Name()) || !d.IsDir() && !d.Type().IsRegular() {
			continue
		}
		if err := do(d.Name(), d); err != nil {
			return err
		}
	}
	return nil
}

// below a folder, each object.
func (t *tree) below(folder string, do func(key string, d fs.DirEntry) error) error {
	return t.each(folder, func(name string, d fs.DirEntry) error {
		key := path.Join(folder, name)
		if d.IsDir() {
			return t.below(key, do)
		}
		return do(key, d)
	})
}

// errFound ends a search.
var errFound = errors.New("found")

// holds reports whether a folder has an object, in it or below.
func (t *tree) holds(folder string) (bool, error) {
	err := t.below(folder, func(string, fs.DirEntry) error { return errFound })
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}
