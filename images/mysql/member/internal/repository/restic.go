// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/images/member/bucket"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/process"
)

// Program is restic, found in the PATH of the image.
const Program = "restic"

// Codes that restic ends with.
const (
	exitNone   = 10
	exitLocked = 11
	exitKey    = 12
)

const (
	// grace is how long restic gets to remove its lock once the context has ended.
	grace = 10 * time.Second
	// maxSaid is how much of what restic says is kept, in bytes.
	maxSaid = 600
	// unlockedWithin is a little more than what restic gives a lock that is not refreshed: its program was killed. It looks after each pause.
	unlockedWithin, pause = 35 * time.Minute, 20 * time.Second
)

// copies are the repository of restic of a stanza.
type copies struct {
	at, passphrase, scratch string
	bucket                  bucket.Connection
	// served is the volume that they are on; nil in a bucket.
	served *served
}

func (r *Repository) copies(stanza string) copies {
	if r.served != nil {
		return copies{at: r.served.repository(r.key("copy", stanza)), passphrase: r.passphrase, scratch: r.place.Scratch, served: r.served}
	}
	c := r.connection
	return copies{
		at:         "s3:https://" + net.JoinHostPort(c.Host, c.Port) + "/" + c.Bucket + "/" + r.key("copy", stanza),
		passphrase: r.passphrase, scratch: r.place.Scratch, bucket: c,
	}
}

// A snapshot that was saved. Time is when that began, and the Summary has when it ended.
type snapshot struct {
	ID      string    `json:"id"`
	Time    time.Time `json:"time"`
	Summary struct {
		Ended time.Time `json:"backup_end"`
	} `json:"summary"`
	Size  int64 `json:"size"`
	Added int64 `json:"added"`
}

// ended is when it was whole.
func (s snapshot) ended() time.Time {
	if s.Summary.Ended.After(s.Time) {
		return s.Summary.Ended
	}
	return s.Time
}

// save a folder. Files are always read: a new copy has new files. What they share with the last copy is not sent again.
func (c copies) save(ctx context.Context, data string) (snapshot, error) {
	out, err := c.patiently(ctx, data, "backup", "--force", "--host=member", ".")
	if exited(err, exitNone) {
		if _, err := c.run(ctx, "", "init"); err != nil {
			return snapshot{}, err
		}
		out, err = c.patiently(ctx, data, "backup", "--force", "--host=member", ".")
	}
	if err != nil {
		return snapshot{}, err
	}
	var summary struct {
		Type  string `json:"message_type"`
		ID    string `json:"snapshot_id"`
		Size  int64  `json:"total_bytes_processed"`
		Added int64  `json:"data_added_packed"`
	}
	if err := last(out, &summary); err != nil || summary.Type != "summary" || len(summary.ID) < 8 {
		return snapshot{}, fmt.Errorf("cannot understand what restic says of the backup: %s", process.Tail(string(out), maxSaid))
	}
	return snapshot{ID: summary.ID, Size: summary.Size, Added: summary.Added}, nil
}

// load a snapshot into a folder. Keys that may only read cannot lock the copies, which then may expire meanwhile.
func (c copies) load(ctx context.Context, id, data string) error {
	args := []string{id, "--target=" + data}
	_, err := c.patiently(ctx, "", "restore", args...)
	var f *failure
	if errors.As(err, &f) && strings.Contains(f.said, "unable to create lock") {
		_, err = c.patiently(ctx, "", "restore", append(args, "--no-lock")...)
	}
	if errors.As(err, &f) && f.code != exitKey && damaged(f.said) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// damaged reports whether restic found something that is not what was saved.
func damaged(said string) bool {
	for _, word := range []string{
		"does not match", "ciphertext verification failed", "not found in repository", "not found in index", "invalid data returned", "unexpected EOF", "does not exist",
	} {
		if strings.Contains(said, word) {
			return true
		}
	}
	return false
}

// list all snapshots; none when nothing was ever saved.
func (c copies) list(ctx context.Context) ([]snapshot, error) {
	out, err := c.patiently(ctx, "", "snapshots")
	if exited(err, exitNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []snapshot
	if err := last(out, &all); err != nil {
		return nil, fmt.Errorf("cannot understand the snapshots that restic lists: %w", err)
	}
	return all, nil
}

// forget snapshots, and give back what only they need. It does not wait for others who use the copies.
func (c copies) forget(ctx context.Context, ids []string) error {
	if err := c.unlock(ctx); err != nil {
		return err
	}
	_, err := c.run(ctx, "", "forget", append([]string{"--prune"}, ids...)...)
	return busy(err)
}

// unlock what programs that were killed left.
func (c copies) unlock(ctx context.Context) error {
	_, err := c.run(ctx, "", "unlock")
	return err
}

// patiently runs a command that waits for others, which use the copies in a way that does not go along with it.
func (c copies) patiently(ctx context.Context, folder, verb string, args ...string) ([]byte, error) {
	for until := time.Now().Add(unlockedWithin); ; loop.Sleep(ctx, pause) {
		out, err := c.run(ctx, folder, verb, args...)
		if !exited(err, exitLocked) {
			return out, err
		}
		if ctx.Err() != nil || time.Now().After(until) {
			return nil, busy(err)
		}
		if err := c.unlock(ctx); err != nil {
			return nil, err
		}
	}
}

// A failure of restic, in its own words.
type failure struct {
	command, said string
	code          int
}

func (f *failure) Error() string { return fmt.Sprintf("restic %s: %s", f.command, f.said) }

func exited(err error, code int) bool {
	var f *failure
	return errors.As(err, &f) && f.code == code
}

func busy(err error) error {
	if exited(err, exitLocked) {
		return ErrBusy
	}
	return err
}

// run a command in a folder, and return what it prints.
func (c copies) run(ctx context.Context, folder, verb string, args ...string) ([]byte, error) {
	cmd, err := c.command(ctx, folder, append([]string{verb}, args...)...)
	if err != nil {
		return nil, err
	}
	defer closeAll(cmd.ExtraFiles)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err = process.Do(cmd, grace); err == nil {
		return out.Bytes(), nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("restic %s did not end in time: %w", verb, ctx.Err())
	}
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return nil, fmt.Errorf("cannot run restic: %w", err)
	}
	if ended.ExitCode() == exitKey {
		return nil, mismatch("the copies do not open with the key that is given: give the key that they were made with")
	}
	return nil, &failure{verb, words(said.String()), ended.ExitCode()}
}

// command of restic in a folder.
func (c copies) command(ctx context.Context, folder string, args ...string) (*exec.Cmd, error) {
	scratch := cmp.Or(c.scratch, os.TempDir())
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, fmt.Errorf("cannot prepare a folder for files: %w", err)
	}
	options := []string{"--json", "--repo=" + c.at, "--cache-dir=" + filepath.Join(scratch, "restic"), "--cleanup-cache"}
	if c.passphrase == "" {
		options = append(options, "--insecure-no-password")
	}
	environment := append(os.Environ(), "LC_ALL=C", "HOME="+scratch, "TMPDIR="+scratch, "RESTIC_PROGRESS_FPS=0.01", "RESTIC_PASSWORD="+c.passphrase)
	var opened []*os.File
	if c.served != nil {
		identity, err := c.served.identity()
		if err != nil {
			return nil, err
		}
		opened = []*os.File{identity}
		options = append(options, "--cacert="+c.served.files.CA, "--tls-client-cert="+firstExtra)
	} else {
		options = append(options, "--option=s3.region="+c.bucket.Region, "--option=s3.bucket-lookup=path")
		environment = append(environment,
			"AWS_ACCESS_KEY_ID="+c.bucket.Key, "AWS_SECRET_ACCESS_KEY="+c.bucket.Secret, "AWS_SESSION_TOKEN="+c.bucket.Token)
	}
	if c.bucket.CA != "" {
		options = append(options, "--cacert="+c.bucket.CA)
	}
	cmd := exec.CommandContext(ctx, Program, append(options, args...)...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = folder, environment, opened
	return cmd, nil
}

// firstExtra is where a command finds the first of its extra files.
const firstExtra = "/proc/self/fd/3"

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// words of restic's messages without their form.
func words(said string) string {
	var all []string
	for line := range strings.SplitSeq(said, "\n") {
		var m struct {
			Type    string `json:"message_type"`
			Message string `json:"message"`
			Item    string `json:"item"`
			Error   struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		switch {
		case json.Unmarshal([]byte(line), &m) != nil:
			all = append(all, line)
		case m.Error.Message != "":
			all = append(all, strings.TrimSpace(m.Item+": "+m.Error.Message))
		case m.Message != "":
			all = append(all, m.Message)
		}
	}
	return process.Tail(strings.Join(all, " "), maxSaid)
}

// last line of JSON in what restic printed.
func last(out []byte, into any) error {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return json.Unmarshal(lines[len(lines)-1], into)
}
