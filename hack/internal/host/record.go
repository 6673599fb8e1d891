// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// RecordName is the file in the cache folder with the names of the packages that were installed for us.
const RecordName = "installed-packages"

// Installed are the packages that were installed for us, and were not there before.
func Installed(cache string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(cache, RecordName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read which packages were installed: %w", err)
	}
	return strings.Fields(string(data)), nil
}

// record packages that were installed, beside the earlier ones.
func record(cache string, packages []string) error {
	if len(packages) == 0 {
		return nil
	}
	before, err := Installed(cache)
	if err != nil {
		return err
	}
	all := slices.Concat(before, packages)
	slices.Sort(all)
	return WriteFiles(cache, map[string][]byte{RecordName: []byte(strings.Join(slices.Compact(all), "\n") + "\n")})
}
