// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errLink and errKind are about a path that Surplus names and that is no checkpoint by itself.
var (
	errLink = errors.New("there is a symbolic link in its path, and Capstan follows none: remove it by hand")
	errKind = errors.New("it is neither a folder nor a file: remove it by hand")
)

// removedPrefix begins the names of what is being removed. A number follows.
func (f Folder) removedPrefix() string { return ownPrefix + f.Training + "-removed-" }

// Remove checkpoints by their names, and nothing that one of the others which are kept links to. A checkpoint first gets a name of
// Capstan's, so that it is there as a whole or not at all, also after a crash. It returns the names that are gone.
func (f Folder) Remove(names, kept []string) ([]string, error) {
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return nil, f.explain("remove checkpoints from", err)
	}
	defer func() { _ = root.Close() }()
	targets := f.targets(kept)
	var gone []string
	var failed error
	for i, name := range names {
		if linked(targets, filepath.Join(f.Dir, filepath.FromSlash(name))) {
			continue
		}
		if err := f.remove(root, name, f.removedPrefix()+strconv.FormatInt(time.Now().UnixNano()+int64(i), 10)); err != nil {
			failed = cmp.Or(failed, fmt.Errorf("%s: %w", name, err)) // One is enough to act on.
			continue
		}
		gone = append(gone, name)
	}
	if err := cmp.Or(failed, f.sweep(root)); err != nil {
		return gone, f.explain("remove checkpoints from", err)
	}
	return gone, nil
}

// targets of the links among the checkpoints that are kept.
func (f Folder) targets(kept []string) []string {
	var all []string
	for _, name := range kept {
		own := filepath.Join(f.Dir, filepath.FromSlash(name))
		if target, err := filepath.EvalSymlinks(own); err == nil && target != own {
			all = append(all, target)
		}
	}
	return all
}

// linked reports whether one of the targets is a path or below it.
func linked(targets []string, own string) bool {
	own, err := filepath.EvalSymlinks(own)
	if err != nil {
		return false
	}
	for _, target := range targets {
		if below, err := filepath.Rel(own, target); err == nil && filepath.IsLocal(below) {
			return true
		}
	}
	return false
}

// remove one checkpoint. One that is not there is gone.
func (f Folder) remove(root *os.Root, name, as string) error {
	switch err := plain(root, name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	err := root.Rename(filepath.FromSlash(name), as)
	switch {
	case err == nil:
		return nil // The sweep removes it.
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return err
	}
	// Some file systems of object stores cannot rename folders. What is half removed is not complete there.
	if f.Complete != "" {
		marks, err := fs.Glob(root.FS(), path.Clean(f.Complete))
		if err != nil {
			return err
		}
		for _, mark := range marks {
			if strings.HasPrefix(mark, name+"/") {
				if err := root.Remove(filepath.FromSlash(mark)); err != nil {
					return err
				}
			}
		}
	}
	return root.RemoveAll(filepath.FromSlash(name))
}

// plain returns an error unless a path is a folder or a file, and no part of it a link.
func plain(root *os.Root, name string) error {
	parts := strings.Split(name, "/")
	for i := range parts {
		info, err := root.Lstat(filepath.Join(parts[:i+1]...))
		switch {
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return errLink
		case i == len(parts)-1 && !info.IsDir() && !info.Mode().IsRegular():
			return errKind
		}
	}
	return nil
}

// sweep away what has a name of what is being removed, also by a coordinator that ended meanwhile.
func (f Folder) sweep(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	var failed error
	for _, e := range entries {
		number, ours := strings.CutPrefix(e.Name(), f.removedPrefix())
		if _, err := strconv.ParseUint(number, 10, 64); !ours || err != nil {
			continue
		}
		failed = cmp.Or(failed, root.RemoveAll(e.Name()))
	}
	return failed
}
