// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
)

// A Control is what the control file of the copy says.
type Control struct {
	// State of the data, as in "shut down in recovery".
	State string
	// System identifier, Position of the latest checkpoint and its Timeline.
	System, Position string
	Timeline         int64
	// Settings that a standby needs at least, by their names.
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
	values, err := pgdata.Control(ctx, pgmember.Programs(j.From), layout.UpgradeCopy)
	if err != nil {
		return Control{}, err
	}
	return control(values)
}

// control understands the values of a control file.
func control(values map[string]string) (Control, error) {
	c := Control{
		State: values["Database cluster state"], System: values["Database system identifier"], Position: values["Latest checkpoint location"],
		Settings: map[string]string{},
	}
	var err error
	if c.Timeline, err = strconv.ParseInt(values["Latest checkpoint's TimeLineID"], 10, 64); err != nil {
		return Control{}, fmt.Errorf("cannot understand the timeline of the copy: %w", err)
	}
	for key, name := range settings {
		if value, ok := values[key]; ok {
			c.Settings[name] = value
		}
	}
	if c.System == "" || c.Position == "" || c.Timeline == 0 || len(c.Settings) != len(settings) {
		return Control{}, errors.New("cannot understand the control file of the copy: it lacks something")
	}
	return c, nil
}
