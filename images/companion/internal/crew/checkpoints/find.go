// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/capstan-dev/capstan/apis/crew"
)

// scheme of a URI. What has one is not a path.
var scheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*://`)

// there reports whether a reported checkpoint may be there, and is complete. Only paths can be checked. In the folder the pattern
// decides, because a program may name a checkpoint before it has written it.
func (f Folder) there(uri string, complete []crew.Checkpoint) bool {
	if scheme.MatchString(uri) {
		return true
	}
	if !filepath.IsAbs(uri) {
		uri = filepath.Join(f.Dir, uri)
	}
	below, err := filepath.Rel(f.Dir, uri)
	if err == nil && filepath.IsLocal(below) && f.Complete != "" {
		first, _, _ := strings.Cut(filepath.ToSlash(below), "/")
		return slices.ContainsFunc(complete, func(c crew.Checkpoint) bool { return filepath.Base(c.URI) == first })
	}
	_, err = os.Stat(uri)
	for _, none := range []error{fs.ErrNotExist, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.EINVAL} {
		if errors.Is(err, none) {
			return false
		}
	}
	return true // Another error may pass.
}

// numbers in the name of a folder.
var numbers = regexp.MustCompile(`[0-9]+`)

// complete checkpoints by the pattern. A folder whose name has no number is none, because its age is unknown.
func (f Folder) complete() ([]crew.Checkpoint, error) {
	if f.Complete == "" {
		return nil, nil
	}
	found, err := fs.Glob(os.DirFS(f.Dir), path.Clean(f.Complete))
	if err != nil {
		return nil, fmt.Errorf("%q is no pattern: %w", f.Complete, err)
	}
	// Glob ignores folders that it cannot read. The first one must be readable, or no checkpoint would look like none.
	if _, err := os.ReadDir(f.Dir); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var all []crew.Checkpoint
	for _, name := range found {
		first, _, below := strings.Cut(name, "/")
		steps := numbers.FindAllString(first, -1)
		if !below || len(steps) == 0 || seen[first] || strings.HasPrefix(first, ownPrefix) {
			continue
		}
		step, err := strconv.ParseInt(steps[len(steps)-1], 10, 64)
		if err != nil {
			continue
		}
		info, err := os.Stat(filepath.Join(f.Dir, filepath.FromSlash(name)))
		if err != nil {
			continue // It has been removed since.
		}
		seen[first] = true
		all = append(all, crew.Checkpoint{Step: step, URI: filepath.Join(f.Dir, first), At: modified(info)})
	}
	return all, nil
}
