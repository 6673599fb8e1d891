// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/lines"
)

// A configuration is what Patroni of this member starts with beyond what all members share. What needs a program of this image is here, so that
// no member is configured to call a program that its image lacks.
type configuration struct {
	// apart: new data and new copies have their log on the volume from the start.
	apart bool
	// marks of the lines of this member; nil if they are text.
	marks *lines.Marks
	// parameters that follow from its pod.
	parameters Parameters
}

// Parameters of the server that follow from the pod of a member, such as its huge pages. They come as JSON.
type Parameters map[string]string

// UnmarshalText reads them.
func (p *Parameters) UnmarshalText(text []byte) error {
	return json.Unmarshal(text, (*map[string]string)(p))
}

// prepare what Patroni is started with in a folder, where a later file counts more, and return its path.
func (c configuration) prepare(folder string) (string, error) {
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
	// What a member has of its own counts more than what all of them share. JSON is YAML.
	parameters := map[string]string{}
	own := map[string]any{"postgresql": map[string]any{"parameters": parameters, "pre_promote": members.Program + " before-promotion"}}
	maps.Copy(parameters, c.parameters)
	if c.marks != nil {
		own["log"], parameters["log_line_prefix"] = map[string]any{"format": c.marks.Patroni()}, c.marks.Server()
	}
	raw, err := json.Marshal(own)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "3-own.yaml"), raw, 0o600)
}
