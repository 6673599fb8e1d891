// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
)

// remedyNames says how to get rid of names that cannot be used.
const remedyNames = "rename it where the model comes from"

// A Folder is a model that is being written. With any names that it is given, nothing outside of it is touched: the operating system
// resolves them within the folder.
type Folder struct {
	root *os.Root

	mu    sync.Mutex
	files map[string]File
	// links are symbolic links that were made, which may make a file reachable by several names.
	links map[string]bool
}

// NewFolder writes into an open folder, which Close closes.
func NewFolder(root *os.Root) *Folder {
	return &Folder{root: root, files: map[string]File{}, links: map[string]bool{}}
}

// Close the folder.
func (f *Folder) Close() error { return f.root.Close() }

// A Writer writes one file of a Folder.
type Writer struct {
	*os.File

	folder *Folder
	name   string
}

// Create a file and the folders that it is in. A file of this name must not be there yet.
func (f *Folder) Create(name string) (*Writer, error) {
	if err := f.parents(name); err != nil {
		return nil, err
	}
	file, err := f.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, clash(name, err)
	}
	return &Writer{File: file, folder: f, name: name}, nil
}

// Finish the file, whose bytes have a digest, so that it survives a crash of the machine.
func (w *Writer) Finish(size int64, sum [sha256.Size]byte) error {
	err := w.Sync()
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("cannot finish file %q: %w", w.name, err)
	}
	return w.folder.add(File{Path: w.name, Size: size, Sum: sum})
}

// Copy everything from r into the file and finish it. More hashes get the same bytes.
func (w *Writer) Copy(r io.Reader, buf []byte, hashes ...hash.Hash) error {
	sum := sha256.New()
	all := make([]io.Writer, 0, 2+len(hashes))
	all = append(all, w.File, sum)
	for _, h := range hashes {
		all = append(all, h)
	}
	// Plain Readers and Writers use the buffer, which bounds memory.
	size, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(all...)}, struct{ io.Reader }{r}, buf)
	if err != nil {
		_ = w.Close()
		return fmt.Errorf("cannot write file %q: %w", w.name, err)
	}
	return w.Finish(size, [sha256.Size]byte(sum.Sum(nil)))
}

// Mkdir makes a folder and those that it is in.
func (f *Folder) Mkdir(name string) error {
	if err := ValidPath(name); err != nil {
		return unusable(err)
	}
	if err := f.root.MkdirAll(name, 0o775); err != nil {
		return clash(name, err)
	}
	return nil
}

// Remove a file, a link, or a folder with all that is in it. What is not there is gone.
func (f *Folder) Remove(name string) error {
	if err := ValidPath(name); err != nil {
		return unusable(err)
	}
	if err := f.root.RemoveAll(name); err != nil {
		return clash(name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := func(have string) bool { return have == name || strings.HasPrefix(have, name+"/") }
	for have := range f.files {
		if gone(have) {
			delete(f.files, have)
		}
	}
	for have := range f.links {
		if gone(have) {
			delete(f.links, have)
		}
	}
	return nil
}

// Kind of what is there by a name, without following a link; false if there is nothing.
func (f *Folder) Kind(name string) (fs.FileMode, bool) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return 0, false
	}
	return info.Mode().Type(), true
}

// Names of what is directly in a folder.
func (f *Folder) Names(dir string) ([]string, error) {
	entries, err := fs.ReadDir(f.root.FS(), dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, clash(dir, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Hardlink makes a file that is there reachable by another name.
func (f *Folder) Hardlink(target, name string) error {
	if err := ValidPath(target); err != nil {
		return unusable(err)
	}
	if err := f.parents(name); err != nil {
		return err
	}
	if kind, ok := f.Kind(target); !ok || !kind.IsRegular() {
		return failure.New(failure.Invalid, fmt.Sprintf("cannot link %q to %q: that is no file", name, target), "build the image again")
	}
	if err := f.root.Link(target, name); err != nil {
		return clash(name, err)
	}
	f.mu.Lock()
	file, known := f.files[target]
	if !known {
		// It was reached through a symbolic link. Then everything is read again in the end.
		f.links[name] = true
	}
	f.mu.Unlock()
	file.Path = name
	return f.add(file)
}

// Symlink makes a link whose target, as in an image, counts from the top of the folder if it begins with a slash, and never
// climbs above it. Seal removes links to nothing.
func (f *Folder) Symlink(target, name string) error {
	if err := f.parents(name); err != nil {
		return err
	}
	if err := f.root.Symlink(within(target, name), name); err != nil {
		return clash(name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.links[name] = true
	return nil
}

// within returns the target of a link relative to where the link is.
func within(target, name string) string {
	if !path.IsAbs(target) {
		target = path.Join(path.Dir("/"+name), target)
	}
	target = strings.TrimPrefix(path.Join("/", target), "/")
	up := strings.Repeat("../", strings.Count(name, "/"))
	if up+target == "" {
		return "."
	}
	return up + target
}

// Seal makes sure that all folders survive a crash, that no link points out, and returns what the model consists of.
func (f *Folder) Seal(ctx context.Context, log *slog.Logger) (Manifest, error) {
	if err := f.checkLinks(log); err != nil {
		return nil, err
	}
	m, err := f.manifest(ctx)
	if err != nil {
		return nil, err
	}
	if len(m) == 0 {
		return nil, failure.New(failure.Invalid, "the model has no files", "look at what was uploaded")
	}
	if err := m.Matches(f.root); err != nil {
		return nil, fmt.Errorf("cannot verify what was written: %w", err)
	}
	return m, fs.WalkDir(f.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		// Others are to read the model, and pods of another user, who are of the same group, to remove it.
		if err := f.root.Chmod(name, 0o775); err != nil {
			return err
		}
		dir, err := f.root.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }()
		return dir.Sync()
	})
}

func (f *Folder) manifest(ctx context.Context) (Manifest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.links) > 0 {
		// A file that was written through a link to a folder is somewhere else than its name said.
		return Of(ctx, f.root)
	}
	m := make(Manifest, 0, len(f.files))
	for _, file := range f.files {
		m = append(m, file)
	}
	m.sort()
	return m, nil
}

func (f *Folder) checkLinks(log *slog.Logger) error {
	links := make([]string, 0, len(f.links))
	for name := range f.links {
		links = append(links, name)
	}
	slices.Sort(links)
	var dangling []string
	for _, name := range links {
		if kind, ok := f.Kind(name); !ok || kind&fs.ModeSymlink == 0 {
			continue
		}
		_, err := f.root.Stat(name)
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist):
			dangling = append(dangling, name)
		default:
			return &failure.Failure{
				Reason: failure.Invalid, Cause: fmt.Sprintf("link %s points out of the model or in a circle", strconv.Quote(name)),
				Remedy: "put the file itself into the model", Err: err,
			}
		}
	}
	for _, name := range dangling {
		log.Warn("left out a link to nothing", "link", name)
		if err := f.root.Remove(name); err != nil {
			return clash(name, err)
		}
	}
	return nil
}

func (f *Folder) add(file File) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files[file.Path] = file
	return Countable(len(f.files))
}

// Countable refuses numbers of files that are out of bounds.
func Countable(files int) error {
	if files <= maxFiles {
		return nil
	}
	return failure.New(failure.Invalid, fmt.Sprintf("the model has more than %d files", maxFiles),
		"point to the folder of the model alone, or pack its files")
}

// parents makes the folders that a file is in.
func (f *Folder) parents(name string) error {
	if err := ValidPath(name); err != nil {
		return unusable(err)
	}
	if dir := path.Dir(name); dir != "." {
		if err := f.root.MkdirAll(dir, 0o775); err != nil {
			return clash(name, err)
		}
	}
	return nil
}

func unusable(err error) error {
	return &failure.Failure{Reason: failure.Invalid, Cause: err.Error(), Remedy: remedyNames, Err: err}
}

// clash explains why a name cannot be used, unless it is the disk that cannot.
func clash(name string, err error) error {
	why := err
	var onPath *fs.PathError
	var onLink *os.LinkError
	switch {
	case failure.NoRoom(err), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot write %q: %w", name, err)
	case errors.As(err, &onLink):
		why = onLink.Err
	}
	for errors.As(why, &onPath) {
		why = onPath.Err
	}
	return &failure.Failure{
		Reason: failure.Invalid, Cause: fmt.Sprintf("cannot write %s: %s", strconv.Quote(name), why), Remedy: remedyNames, Err: err,
	}
}
