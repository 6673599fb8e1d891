// SPDX-License-Identifier: Apache-2.0

package walvolume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
)

// Configuration is what Patroni is started with: a file, or a folder of files, where a later file counts more. New data and new copies have
// their log on the volume from the start.
func (p Place) Configuration() (string, error) {
	if !p.Mounted() {
		return layout.Configuration, nil
	}
	if err := os.MkdirAll(layout.Configurations, 0o700); err != nil {
		return "", fmt.Errorf("cannot prepare the configuration of Patroni: %w", err)
	}
	for name, to := range map[string]string{"1-all.yaml": layout.Configuration, "2-wal.yaml": layout.ConfigurationWAL} {
		if err := os.Symlink(to, filepath.Join(layout.Configurations, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("cannot prepare the configuration of Patroni: %w", err)
		}
	}
	return layout.Configurations, nil
}
