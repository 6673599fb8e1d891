// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/process"
)

// A Control is what the control file of the copy says.
type Control struct {
	// State of the data, as in "shut down in recovery".
	State string
	// System identifier, Position of the latest checkpoint and its Timeline.
	System, Position string
	Timeline         int64
	// Settings that a follower needs at least, by their names.
	Settings map[string]string
}

// settings by the words of pg_controldata.
var settings = map[string]string{
	"max_connections setting":      "max_connections",
	"max_worker_processes setting": "max_worker_processes",
	"max_wal_senders setting":      "max_wal_senders",
	"max_prepared_xacts setting":   "max_prepared_transactions",
	"max_locks_per_xact setting":   "max_locks_per_transaction",
}

// Control of the copy.
func (j *Job) Control(ctx context.Context) (Control, error) {
	said, err := process.Run(ctx, layout.UpgradeWork, j.before("pg_controldata"), layout.UpgradeCopy)
	if err != nil {
		return Control{}, fmt.Errorf("cannot read the control file of the copy: %w: %s", err, brief(said))
	}
	return control(said)
}

// control understands what pg_controldata says.
func control(said string) (Control, error) {
	c := Control{Settings: map[string]string{}}
	lines := bufio.NewScanner(strings.NewReader(said))
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Database cluster state":
			c.State = value
		case "Database system identifier":
			c.System = value
		case "Latest checkpoint location":
			c.Position = value
		case "Latest checkpoint's TimeLineID":
			t, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return Control{}, fmt.Errorf("cannot understand the timeline of the copy: %w", err)
			}
			c.Timeline = t
		default:
			if name, ok := settings[key]; ok {
				c.Settings[name] = value
			}
		}
	}
	if c.System == "" || c.Position == "" || c.Timeline == 0 || len(c.Settings) != len(settings) {
		return Control{}, fmt.Errorf("cannot understand the control file of the copy: %s", brief(said))
	}
	return c, nil
}
