// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/lines"
)

// A configuration is what Patroni of this member starts with beyond what all members share.
type configuration struct {
	// apart: new data and new copies have their log on the volume from the start.
	apart bool
	// marks of the lines of this member; nil if they are text.
	marks *lines.Marks
}

// prepare what Patroni is started with in a folder, and return its path: a file, or that folder, where a later file counts more.
func (c configuration) prepare(folder string) (string, error) {
	if !c.apart && c.marks == nil {
		return layout.Configuration, nil
	}
	if err := c.write(folder); err != nil {
		return "", fmt.Errorf("cannot prepare the configuration of Patroni: %w", err)
	}
	return folder, nil
}

func (c configuration) write(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	links := map[string]string{"1-all.yaml": layout.Configuration}
	if c.apart {
		links["2-wal.yaml"] = layout.ConfigurationWAL
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if c.marks == nil {
		return nil
	}
	// What a member has of its own counts more than what all of them share. JSON is YAML.
	raw, err := json.Marshal(map[string]any{
		"log":        map[string]any{"format": c.marks.Patroni()},
		"postgresql": map[string]any{"parameters": map[string]any{"log_line_prefix": c.marks.Server()}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "3-logs.yaml"), raw, 0o600)
}
