// SPDX-License-Identifier: Apache-2.0

package diverged

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/walvolume"
)

// replaces is the line of Patroni's configuration by which it removes data that cannot follow.
const replaces = "remove_data_directory_on_rewind_failure: true"

// Own data of this member.
var Own = Folder{Path: layout.Diverged, Log: walvolume.Own.Log() + ".diverged", Data: pgmember.FolderData, Measure: volume.Measure}

// MakeRewind makes the link that Patroni runs as pg_rewind. It leads to this program.
func MakeRewind(link string) error {
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find the program of the member: %w", err)
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot make %s: %w", link, err)
	}
	if err := os.Symlink(own, link); err != nil {
		return fmt.Errorf("cannot make %s: %w", link, err)
	}
	return nil
}

// IsRewind reports whether the program was started as pg_rewind.
func IsRewind(program string) bool { return filepath.Base(program) == filepath.Base(layout.Rewind) }

// unclean is what pg_rewind says of data whose server did not stop in good order, which only a run that changes it can correct.
const unclean = "must be shut down cleanly"

// A Rewinder runs pg_rewind with arguments, and returns what it says beside its result.
type Rewinder func(args []string) (said string, err error)

// Rewind runs pg_rewind of a major version, as Patroni does. It returns the exit code.
func Rewind(version string, args []string, stdout, stderr io.Writer) int {
	run := func(args []string) (string, error) {
		var said bytes.Buffer
		cmd := exec.Command(filepath.Join(pgmember.Programs(version), "pg_rewind"), args...)
		cmd.Stdout, cmd.Stderr = stdout, io.MultiWriter(stderr, &said)
		err := cmd.Run()
		return said.String(), err
	}
	raw, _ := os.ReadFile(layout.Configuration)
	// Without data to change, Patroni asks whether there is such a program.
	if !slices.Contains(args, "-D") || !bytes.Contains(raw, []byte(replaces)) {
		_, err := run(args)
		return code(err)
	}
	said, err := Own.Rewound(run, args, time.Now)
	if said != "" {
		_, _ = fmt.Fprintln(stderr, said)
	}
	return code(err)
}

// Rewound data, or data that is kept because Patroni is about to remove it. It is tried first: what fails without a change leaves the
// data as the former leader had it. It returns what it did, for people, and the result.
func (f Folder) Rewound(run Rewinder, args []string, now func() time.Time) (string, error) {
	said, err := run(append([]string{"--dry-run"}, args...))
	if err == nil || strings.Contains(said, unclean) {
		_, err = run(args)
	}
	if err != nil {
		if kerr := f.Keep(now()); kerr != nil {
			return "what only this member has is not kept: " + kerr.Error(), err
		}
		return "what only this member has is kept in " + f.Path, err
	}
	// It follows after all, and what was kept of it in another try has changed with it.
	if f.Shares() {
		if rerr := f.Remove(); rerr != nil {
			return rerr.Error(), nil //nolint:nilerr // The rewind has worked, and what is left over harms nothing.
		}
	}
	return "", nil
}

// code of a program that ended.
func code(err error) int {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	if err != nil {
		return 1
	}
	return 0
}
