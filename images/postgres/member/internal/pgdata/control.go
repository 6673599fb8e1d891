// SPDX-License-Identifier: Apache-2.0

// Package pgdata looks at the data folder of PostgreSQL, and at its write-ahead log.
package pgdata

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/volume"
)

// Control returns the values of the control file of a data folder by the words of pg_controldata, from the programs of its major
// version.
func Control(ctx context.Context, programs, data string) (map[string]string, error) {
	said, err := process.Run(ctx, "", filepath.Join(programs, "pg_controldata"), data)
	if err != nil {
		return nil, fmt.Errorf("cannot read the control file of the data: %w: %s", err, process.Head(said, 1500))
	}
	return ParseControl(said), nil
}

// ParseControl understands what pg_controldata writes.
func ParseControl(said string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(said) {
		key, value, _ := strings.Cut(line, ":")
		values[key] = strings.TrimSpace(value)
	}
	return values
}

// Read what a data folder holds, with the programs of the data's major version. The server must not run.
func Read(ctx context.Context, programs, data string) (volume.Content, error) {
	empty, err := volume.Empty(data)
	if err != nil || empty {
		return volume.Content{Empty: empty}, err
	}
	if _, err := os.Stat(filepath.Join(data, "global", "pg_control")); errors.Is(err, fs.ErrNotExist) {
		// A copy that did not end. Patroni removes it and copies again.
		return volume.Content{Empty: true}, nil
	}
	values, err := Control(ctx, programs, data)
	if err != nil {
		return volume.Content{}, err
	}
	c, err := content(values)
	if err != nil {
		return volume.Content{}, err
	}
	c.Led, err = WasLeader(data)
	return c, err
}

// content of a data folder with the values of a control file.
func content(values map[string]string) (volume.Content, error) {
	c := volume.Content{
		System: values["Database system identifier"], Position: values["Latest checkpoint location"], Clean: values["Database cluster state"] == "shut down",
	}
	// A standby that was promoted upstream replays a timeline before its next checkpoint has it.
	for _, key := range []string{"Latest checkpoint's TimeLineID", "Min recovery ending loc's timeline"} {
		if values[key] == "" {
			continue
		}
		t, err := strconv.ParseInt(values[key], 10, 64)
		if err != nil {
			return volume.Content{}, fmt.Errorf("cannot understand the timeline of the data: %w", err)
		}
		c.Timeline = max(c.Timeline, t)
	}
	if c.System == "" || c.Timeline == 0 {
		return volume.Content{}, errors.New("cannot understand the control file of the data: it has no system identifier or timeline")
	}
	return c, nil
}

// WasLeader reports whether PostgreSQL is the leader on the data, or was when it ran last; else it is a standby.
func WasLeader(data string) (bool, error) {
	_, err := os.Stat(filepath.Join(data, "standby.signal"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot find out whether the data is a replica's: %w", err)
	}
	return err != nil, nil
}

// TakesWrites reports whether a PostgreSQL that runs on the data may take writes. A standby does not, and neither does one that recovers from
// an archive: it removes its signal before it takes the first.
func TakesWrites(data string) (bool, error) {
	led, err := WasLeader(data)
	if err != nil || !led {
		return false, err
	}
	_, err = os.Stat(filepath.Join(data, "recovery.signal"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot find out whether the data is being recovered: %w", err)
	}
	return err != nil, nil
}

// CheckVersion of the data. The error is a *volume.Problem when another major version wrote it. A folder without a version was
// left by a copy that did not end: Patroni removes it and copies again.
func CheckVersion(data, want string) error {
	raw, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the version of the data: %w", err)
	}
	if got := strings.TrimSpace(string(raw)); got != want {
		return &volume.Problem{Reason: members.ReasonDataOfAnotherVersion, Message: fmt.Sprintf("the data is PostgreSQL %s's and version %s is wanted: set spec.version to %s", got, want, got)}
	}
	return nil
}

// Clear a data folder that has no control file, and so is no data of PostgreSQL: what is left of a copy that did not end. With
// one nothing is removed, and the error says so.
func Clear(data string) error {
	entries, err := os.ReadDir(data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the data folder: %w", err)
	}
	if _, err := os.Lstat(filepath.Join(data, "global", "pg_control")); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot clear %s: it is not known to be without data", data)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(data, e.Name())); err != nil {
			return fmt.Errorf("cannot clear what is left of a copy: %w", err)
		}
	}
	return nil
}
