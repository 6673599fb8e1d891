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
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/crew"
)

// scheme of a URI. What has one is not a path.
var scheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*://`)

// Exists reports whether a reported checkpoint may still be there. Only paths can be checked.
func (f Folder) Exists(uri string) bool {
	if scheme.MatchString(uri) {
		return true
	}
	if !filepath.IsAbs(uri) {
		uri = filepath.Join(f.Dir, uri)
	}
	_, err := os.Stat(uri)
	return !errors.Is(err, fs.ErrNotExist)
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
		if !below || len(steps) == 0 || seen[first] {
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
