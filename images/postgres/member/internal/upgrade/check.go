// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// portTrial is where the server of a trial listens, in the folder of sockets.
const portTrial = 50440

// maxFindings is how much of what stands in the way is reported, in bytes.
const maxFindings = 1500

// A Verdict on a copy.
type Verdict struct {
	// At is when it was tried.
	At time.Time `json:"at"`
	// Findings are why it cannot be upgraded, in PostgreSQL's words; nothing when it can.
	Findings string `json:"findings,omitempty"`
	// Took is the time of what an upgrade does while no client can write, as far as it was tried.
	Took time.Duration `json:"took,omitempty"`
	// Options that the later server needs, for Convert.
	Options []string `json:"options,omitempty"`
	// Unversioned reports that the later server does not know versions of columns, for Convert.
	Unversioned bool `json:"unversioned,omitempty"`
}

// Check whether the copy can be upgraded, while it follows: by pg_upgrade's own check, which only looks, and by loading the
// definitions of everything in the databases into a new server of the later version, which is most of what an upgrade does.
//
// An error says that it could not be found out.
func (j *Job) Check(ctx context.Context) (Verdict, error) {
	options, err := j.options(ctx)
	if err != nil {
		return Verdict{}, err
	}
	if err := j.initialize(ctx); err != nil {
		return Verdict{}, err
	}
	begun := time.Now()
	said, err := process.Run(ctx, layout.UpgradeWork, j.after("pg_upgrade"), append(j.arguments(layout.UpgradeTrial, options), "--check")...)
	if ctx.Err() != nil {
		return Verdict{}, fmt.Errorf("cannot try the upgrade: %w", ctx.Err())
	}
	if err != nil {
		return Verdict{At: time.Now(), Findings: findings(said, layout.UpgradeTrial)}, nil //nolint:nilerr // That it fails is the finding.
	}
	found, unversioned, size, err := j.rehearse(ctx, options)
	took := time.Since(begun)
	if ctx.Err() != nil {
		return Verdict{}, fmt.Errorf("cannot try the upgrade: %w", ctx.Err())
	}
	if err != nil || found != "" {
		return Verdict{At: time.Now(), Findings: found}, err
	}
	// What was written for it is written again in the upgrade, beside its write-ahead log.
	u, err := volume.Measure(pgmember.FolderVolume)
	if err != nil {
		return Verdict{}, err
	}
	if free := u.Free + size; free < 2*size {
		return Verdict{At: time.Now(), Findings: fmt.Sprintf("the volume has %d MiB free, and the definitions of everything in the databases take %d MiB twice: "+
			"raise spec.storage", free>>20, size>>20)}, nil
	}
	// The upgrade begins with nothing in it, and must not lose time with that.
	return Verdict{At: time.Now(), Took: took, Options: options, Unversioned: unversioned}, j.prepare(ctx)
}

// initialize data of the later version to try something with. The members' other data is made the same way.
func (j *Job) initialize(ctx context.Context) error {
	if err := os.RemoveAll(layout.UpgradeTrial); err != nil {
		return fmt.Errorf("cannot remove what an earlier try left: %w", err)
	}
	err := run(ctx, j.after("initdb"), "--pgdata="+layout.UpgradeTrial, "--username="+pgmember.RoleSuperuser, "--data-checksums",
		"--encoding=UTF8", "--locale=C.UTF-8", "--auth=peer")
	if err != nil {
		return fmt.Errorf("cannot make data of version %s: %w", j.To, err)
	}
	return nil
}

// prepare the data that will become the data of the later version. It is there as a whole or not at all.
func (j *Job) prepare(ctx context.Context) error {
	if err := j.initialize(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(layout.UpgradeData); err != nil {
		return fmt.Errorf("cannot remove what an earlier try left: %w", err)
	}
	if err := os.Rename(layout.UpgradeTrial, layout.UpgradeData); err != nil {
		return fmt.Errorf("cannot make data of version %s: %w", j.To, err)
	}
	return durable.Sync(layout.Upgrade)
}

// options of the later server, so that it can load what is in the databases: the libraries of the former one.
func (j *Job) options(ctx context.Context) ([]string, error) {
	var libraries, cron string
	err := ask(ctx, "select replace(current_setting('shared_preload_libraries'), ' ', ''), coalesce(current_setting('cron.database_name', true), '')", nil, &libraries, &cron)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the copy for its libraries: %w", err)
	}
	var out []string
	if libraries != "" {
		out = append(out, "shared_preload_libraries="+libraries)
	}
	if cron != "" {
		out = append(out, "cron.database_name="+cron)
	}
	return out, nil
}

// withoutHugePages run all servers of an upgrade, because the pages of the pod are for the server of the member.
const withoutHugePages = "huge_pages=off"

// arguments of pg_upgrade into data.
func (j *Job) arguments(data string, options []string) []string {
	args := slices.Grow([]string{
		"--old-bindir=" + pgmember.Programs(j.From), "--new-bindir=" + pgmember.Programs(j.To), "--old-datadir=" + layout.UpgradeCopy,
		"--new-datadir=" + data, "--username=" + pgmember.RoleSuperuser, "--old-port=5432", "--link",
	}, len(options))
	for _, o := range append([]string{withoutHugePages}, options...) {
		// The shell reads this, and a database may have any name.
		args = append(args, "--new-options=-c '"+strings.ReplaceAll(o, "'", `'\''`)+"'")
	}
	return args
}

// rehearse loads all definitions into a server of the later version. It returns why that does not work, or whether that version knows no
// versions of columns, and the bytes that it took.
func (j *Job) rehearse(ctx context.Context, options []string) (found string, unversioned bool, size int64, err error) {
	args := slices.Grow([]string{
		"-D", layout.UpgradeTrial, "-k", layout.UpgradeWork, "-p", strconv.Itoa(portTrial), "-c", "listen_addresses=", "-c", "fsync=off", "-c", "autovacuum=off", "-c", withoutHugePages,
	}, 2*len(options))
	for _, o := range options {
		args = append(args, "-c", o)
	}
	server, err := process.Start(j.after("postgres"), nil, args...)
	if err != nil {
		return "", false, 0, err
	}
	defer stop(server)
	if err := j.answers(ctx, server, portTrial); err != nil {
		return fmt.Sprintf("version %s does not start with the libraries of %s, %s: %v", j.To, j.From, strings.Join(options, " "), err), false, 0, nil
	}
	if unversioned, err = j.unversioned(ctx); err != nil {
		return "", false, 0, err
	}
	databases, err := j.databases(ctx)
	if err != nil {
		return "", false, 0, err
	}
	file := filepath.Join(layout.UpgradeWork, "definitions.sql")
	defer func() { _ = os.Remove(file) }()
	from := []string{"--host=" + layout.UpgradeWork, "--port=5432", "--username=" + pgmember.RoleSuperuser, "--no-password", "--file=" + file}
	into := []string{"--host=" + layout.UpgradeWork, "--port=" + strconv.Itoa(portTrial), "--username=" + pgmember.RoleSuperuser, "--no-password", "--no-psqlrc", "--quiet", "--file=" + file}

	// Roles first. The superuser is there already, which is no finding; a role that is missing is one, in the definitions.
	if err := run(ctx, j.after("pg_dumpall"), append(slices.Clip(from), "--globals-only", "--database="+pgmember.RoleSuperuser)...); err != nil {
		return "", false, 0, fmt.Errorf("cannot read the roles of the copy: %w", err)
	}
	if err := run(ctx, j.after("psql"), append(slices.Clip(into), "--dbname="+pgmember.RoleSuperuser)...); err != nil {
		return "", false, 0, fmt.Errorf("cannot make the roles of the copy: %w", err)
	}
	for _, d := range databases {
		read, load := append(slices.Clip(from), "--schema-only", "--dbname="+dbname(d)), append(slices.Clip(into), "--set=ON_ERROR_STOP=1")
		if d == pgmember.RoleSuperuser || d == "template1" { // they are there
			load = append(load, "--dbname="+d)
		} else {
			read, load = append(read, "--create"), append(load, "--dbname="+pgmember.RoleSuperuser)
		}
		if said, err := process.Run(ctx, layout.UpgradeWork, j.after("pg_dump"), read...); err != nil {
			if ctx.Err() != nil {
				return "", false, 0, fmt.Errorf("cannot read the definitions of the copy: %w", ctx.Err())
			}
			return fmt.Sprintf("the definitions of database %q cannot be read with version %s: %s", d, j.To, process.Tail(said, maxFindings)), false, 0, nil
		}
		if unversioned {
			if err := stripFile(file); err != nil {
				return "", false, 0, err
			}
		}
		if said, err := process.Run(ctx, layout.UpgradeWork, j.after("psql"), load...); err != nil {
			if ctx.Err() != nil {
				return "", false, 0, fmt.Errorf("cannot load the definitions of the copy: %w", ctx.Err())
			}
			return fmt.Sprintf("the definitions of database %q cannot be loaded into version %s: %s", d, j.To, process.Tail(said, maxFindings)), false, 0, nil
		}
	}
	size, err = usage(layout.UpgradeTrial)
	return "", unversioned, size, err
}

// dbname of a database as a connection string: a plain name may look like one.
func dbname(name string) string {
	return "dbname='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name) + "'"
}

// databases that an upgrade brings along.
func (j *Job) databases(ctx context.Context) ([]string, error) {
	conn, err := connect(ctx, 5432)
	if err != nil {
		return nil, err
	}
	defer managed.Close(ctx, conn)
	out, err := managed.List(ctx, conn, "select datname::text from pg_database where datallowconn and datname <> 'template0' order by 1")
	if err != nil {
		return nil, fmt.Errorf("cannot list the databases of the copy: %w", err)
	}
	return out, nil
}

// findings of pg_upgrade into data: what it says when it ends, and the lists that it points to.
func findings(said, data string) string {
	var kept []string
	for line := range strings.SplitSeq(said, "\n") {
		line = strings.TrimSpace(line)
		// What is well, headings, and where lists are that no other program can read.
		if line == "" || strings.HasSuffix(line, " ok") || strings.HasPrefix(line, "---") || strings.HasPrefix(line, "Performing") ||
			strings.HasPrefix(line, layout.Upgrade) || line == "Failure, exiting" {
			continue
		}
		kept = append(kept, strings.TrimSuffix(strings.Join(strings.Fields(line), " "), " fatal"))
	}
	lists, _ := filepath.Glob(filepath.Join(data, "pg_upgrade_output.d", "*", "*.txt"))
	for _, l := range lists {
		raw, err := os.ReadFile(l)
		if err == nil {
			kept = append(kept, strings.Join(strings.Fields(string(raw)), " "))
		}
	}
	return process.Head(strings.Join(kept, " "), maxFindings)
}

// usage of a folder, in bytes.
func usage(folder string) (int64, error) {
	var n int64
	err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		n += info.Size()
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("cannot measure a folder: %w", err)
	}
	return n, nil
}

// ignoreGone: a file that a running server removed takes no room.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
