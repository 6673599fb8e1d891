// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/process"
)

// Content is what a volume holds, as far as it matters for which member may begin.
type Content struct {
	// Empty volumes have no data at all.
	Empty bool `json:"empty,omitempty"`
	// Led tells that PostgreSQL led when it ran on this data last; else it followed.
	Led bool `json:"led,omitempty"`
	// Timeline of the data; each change of the lead begins another.
	Timeline int64 `json:"timeline,omitempty"`
	// Position in the write-ahead log up to which the data is known to be whole, as in 0/3000148.
	Position string `json:"position,omitempty"`
	// System identifier that PostgreSQL made with the data.
	System string `json:"system,omitempty"`
	// Clean tells that PostgreSQL led and was shut down in good order.
	Clean bool `json:"-"`
}

// Read what a data folder holds, with a program of the data's major version. The server must not run.
func Read(ctx context.Context, programs, data string) (Content, error) {
	empty, err := Empty(data)
	if err != nil || empty {
		return Content{Empty: empty}, err
	}
	if _, err := os.Stat(filepath.Join(data, "global", "pg_control")); errors.Is(err, fs.ErrNotExist) {
		// A copy that did not end. Patroni removes it and copies again.
		return Content{Empty: true}, nil
	}
	said, err := process.Run(ctx, "", filepath.Join(programs, "pg_controldata"), data)
	if err != nil {
		return Content{}, fmt.Errorf("cannot read the control file of the data: %w", err)
	}
	c, err := parse(said)
	if err != nil {
		return Content{}, err
	}
	c.Led, err = Led(data)
	return c, err
}

// Led tells whether PostgreSQL leads on the data, or did when it ran last; else it follows.
func Led(data string) (bool, error) {
	_, err := os.Stat(filepath.Join(data, "standby.signal"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot tell whether the data is a replica's: %w", err)
	}
	return err != nil, nil
}

// parse what pg_controldata writes.
func parse(out string) (Content, error) {
	var c Content
	lines := bufio.NewScanner(strings.NewReader(out))
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch key {
		case "Database cluster state":
			c.Clean = value == "shut down"
		case "Database system identifier":
			c.System = value
		case "Latest checkpoint's TimeLineID", "Min recovery ending loc's timeline":
			// A replica that was promoted upstream replays a timeline before its next checkpoint says so.
			t, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return Content{}, fmt.Errorf("cannot understand the timeline of the data: %w", err)
			}
			c.Timeline = max(c.Timeline, t)
		case "Latest checkpoint location":
			c.Position = value
		}
	}
	if c.System == "" || c.Timeline == 0 {
		return Content{}, errors.New("cannot understand the control file of the data: it has no system identifier or timeline")
	}
	return c, nil
}
