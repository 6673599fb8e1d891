// SPDX-License-Identifier: Apache-2.0

package pgbackrest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/process"
)

// maxSaid is how much of what pgBackRest says is kept, in bytes.
const maxSaid = 900

// grace is how long pgBackRest gets to end what it does in good order once the context has ended.
const grace = 10 * time.Second

// A Runner runs pgBackRest with a configuration.
type Runner struct {
	Program, Config string
	// Grace after the context has ended. Default: 10 s.
	Grace time.Duration
}

// A Failure of pgBackRest, in its own words.
type Failure struct{ Command, Said string } //nolint:errname // It is pgBackRest's failure.

func (f *Failure) Error() string { return fmt.Sprintf("pgbackrest %s: %s", f.Command, f.Said) }

// noise is what stands before each line of pgBackRest: level, and code of the error.
var noise = regexp.MustCompile(`^(P\d+ +)?(ERROR: \[\d+\]: |ERROR: |WARN: |HINT: )?`)

// passing is what is another each time the same goes wrong: which segment it is, and how long tries took. A report must
// change only when a fact does.
var passing = regexp.MustCompile(` '?[0-9A-F]{24}'?| on \d+ retr(y|ies) (from|at) [0-9-]+ms`)

// answer of a server that pgBackRest quotes, up to what it says next, and the code in it.
var (
	answer = regexp.MustCompile(`(?s):\s*\*\*\* Path/Query \*\*\*:.*?(\n[^\n]*(ERROR:|WARN:|INFO:|HINT:)|\n\s*\[[A-Z]\w+Error\]|\z)`)
	reason = regexp.MustCompile(`<Code>([A-Za-z]{1,64})</Code>`)
)

// withoutAnswers of servers in it, except their codes: each has a number and a time of its own.
func withoutAnswers(said string) string {
	return answer.ReplaceAllStringFunc(said, func(text string) string {
		short := ""
		if m := reason.FindStringSubmatch(text); m != nil {
			short = ": " + m[1]
		}
		if strings.Contains(text, "Action=AssumeRoleWithWebIdentity") {
			short += ", by the STS: see the trust policy of the role"
		}
		return short + answer.FindStringSubmatch(text)[1]
	})
}

// Run a command and return what it prints. The error is a *Failure when pgBackRest said why.
func (r Runner) Run(ctx context.Context, command string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, r.Program, append([]string{"--config=" + r.Config, command}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	// It ends its own processes and removes its lock at SIGTERM.
	err := process.Do(cmd, cmp.Or(r.Grace, grace))
	if err == nil {
		return out.String(), nil
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("pgbackrest %s did not end in time: %w", command, ctx.Err())
	}
	if text := words(said.String()); text != "" {
		return "", &Failure{command, explained(text)}
	}
	return "", fmt.Errorf("cannot run pgbackrest %s: %w", command, err)
}

// words of pgBackRest in one line: its errors with their hints, and then what it warned of, which may be the cause.
func words(said string) string {
	var errs, warnings []string
	into := &warnings
	for line := range strings.SplitSeq(withoutAnswers(said), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			continue
		case strings.Contains(line, "ERROR:"):
			into = &errs
		case strings.Contains(line, "WARN:"), strings.Contains(line, "INFO:"):
			into = &warnings
		}
		*into = append(*into, noise.ReplaceAllString(line, ""))
	}
	return process.Head(passing.ReplaceAllString(strings.Join(append(errs, warnings...), "; "), ""), maxSaid)
}

// A Stanza is what there is of one.
type Stanza struct {
	Name    string   `json:"name"`
	Status  Status   `json:"status"`
	Backups []Backup `json:"backup"`
	// Repositories that it is in, which is one.
	Repositories []struct {
		Status Status `json:"status"`
	} `json:"repo"`
	// Archives of the stanza, one for each server that it ever was of.
	Archives []Archive `json:"archive"`
	// Servers that it ever was of, the last one last.
	Servers []Origin `json:"db"`
}

// An Origin is a server that a Stanza is of.
type Origin struct {
	// System identifier of its data, and its major Version.
	System  uint64 `json:"system-id"`
	Version string `json:"version"`
}

// Origin of the Stanza; zero when it is unknown.
func (s Stanza) Origin() Origin {
	if n := len(s.Servers); n > 0 {
		return s.Servers[n-1]
	}
	return Origin{}
}

// An Archive of a Stanza.
type Archive struct {
	ID string `json:"id"`
	// Max is the last segment there is.
	Max string `json:"max"`
}

// trouble of a Stanza, as its repository reports it: of itself it reports only that there is some.
func (s Stanza) trouble() string {
	for _, r := range s.Repositories {
		if r.Status.Code != 0 && r.Status.Message != "" {
			return r.Status.Message
		}
	}
	return s.Status.Message
}

// Archived is the last segment that a Stanza has, by its place in the write-ahead log; 0 when there is none.
func (s Stanza) Archived() LSN {
	var last LSN
	for _, a := range s.Archives {
		if at, ok := segment(a.Max); ok {
			last = max(last, at)
		}
	}
	return last
}

// LastSegment is the name of the last segment that a Stanza has; "" when there is none.
func (s Stanza) LastSegment() string {
	last := ""
	for _, a := range s.Archives {
		if at, ok := segment(a.Max); ok && at >= s.Archived() {
			last = max(last, a.Max)
		}
	}
	return last
}

// Status of a Stanza: code 0 is well, 2 that there is no backup yet.
type Status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Types of backups.
const (
	Full        = "full"
	Incremental = "incr"
)

// A Backup of a Stanza.
type Backup struct {
	Label string `json:"label"`
	// Type: Full or Incremental.
	Type      string `json:"type"`
	Timestamp struct {
		Start int64 `json:"start"`
		Stop  int64 `json:"stop"`
	} `json:"timestamp"`
	// LSN is from where to where the write-ahead log has to be replayed before the data is consistent.
	LSN struct {
		Stop string `json:"stop"`
	} `json:"lsn"`
	// Archive is what of the write-ahead log it needs: the first segment.
	Archive struct {
		Start string `json:"start"`
	} `json:"archive"`
	Info struct {
		// Size of the data, and in the Repository what this backup added.
		Size       int64 `json:"size"`
		Repository struct {
			Delta int64 `json:"delta"`
		} `json:"repository"`
	} `json:"info"`
	Error bool `json:"error"`
}

// Began is when the backup began.
func (b Backup) Began() time.Time { return time.Unix(b.Timestamp.Start, 0).UTC() }

// Remove a stanza with all of its backups and archives. pgBackRest does that only after a stop, which other stanzas do not notice.
func (r Runner) Remove(ctx context.Context, stanza string) error {
	name := "--stanza=" + stanza
	if _, err := r.Run(ctx, "stop", name); err != nil {
		return err
	}
	// No server writes to it: its generation is gone.
	_, err := r.Run(ctx, "stanza-delete", name, "--force", "--pg1-path="+pgmember.FolderData)
	_, again := r.Run(ctx, "start", name)
	return errors.Join(err, again)
}

// Ended is when the backup was consistent: the earliest time that it restores.
func (b Backup) Ended() time.Time { return time.Unix(b.Timestamp.Stop, 0).UTC() }

// Info of a stanza, or of all with "". One that does not exist has no backups.
func (r Runner) Info(ctx context.Context, stanza string) ([]Stanza, error) {
	args := []string{"--output=json"}
	if stanza != "" {
		args = append(args, "--stanza="+stanza)
	}
	out, err := r.Run(ctx, "info", args...)
	if err != nil {
		return nil, err
	}
	var all []Stanza
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		// It quotes bytes that JSON does not have.
		if garbled.MatchString(out) {
			return nil, &Failure{"info", explained(out)}
		}
		return nil, fmt.Errorf("cannot understand what backups there are: %w", err)
	}
	for i := range all {
		// 1: no such stanza. 2: no backup. All others but 0 say that it is unknown.
		if c := all[i].Status.Code; c > 3 {
			return nil, &Failure{"info", explained(words(all[i].trouble()))}
		}
		slices.SortFunc(all[i].Backups, func(a, b Backup) int { return a.Ended().Compare(b.Ended()) })
	}
	return all, nil
}

// Ended is when the last backup of a Stanza ended; the zero time when it has none.
func (s Stanza) Ended() time.Time {
	if last, ok := s.Last(); ok {
		return last.Ended()
	}
	return time.Time{}
}

// Fetch is the command with which PostgreSQL fetches files of its log from the archive of a stanza. pgBackRest says with 1 that the archive
// does not have a file, and with other numbers that it could not find out. PostgreSQL would take both for the end of the archive, and begin
// with less than there is. Above 125 it ends instead.
func (r Runner) Fetch(stanza string) string {
	return fmt.Sprintf(`%s --config=%s --stanza=%s archive-get %%f "%%p" || { test $? -eq 1 && exit 1; exit 255; }`, r.Program, r.Config, stanza)
}

// Missing reports whether the one requested stanza is still to be made.
func Missing(all []Stanza) bool {
	return len(all) == 0 || all[0].Status.Code == 1 || all[0].Status.Code == 3
}

// Last backup of a Stanza; false when it has none.
func (s Stanza) Last() (Backup, bool) {
	if n := len(s.Backups); n > 0 {
		return s.Backups[n-1], true
	}
	return Backup{}, false
}

// Latest stanza: the one with backups whose last one ended last. "" when none has any.
func Latest(all []Stanza) Stanza {
	var best Stanza
	for _, s := range all {
		if len(s.Backups) > 0 && s.Ended().After(best.Ended()) {
			best = s
		}
	}
	return best
}

// An LSN is a place in the write-ahead log, in bytes from its begin.
type LSN uint64

// ParseLSN as PostgreSQL writes it, for instance 0/3000148.
func ParseLSN(text string) (LSN, error) {
	high, low, ok := strings.Cut(text, "/")
	h, errH := strconv.ParseUint(high, 16, 32)
	l, errL := strconv.ParseUint(low, 16, 32)
	if !ok || errH != nil || errL != nil {
		return 0, fmt.Errorf("cannot understand the place %q in the write-ahead log", text)
	}
	return LSN(h<<32 | l), nil
}

func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint64(l)&0xffffffff) }

// segment is where a segment of the write-ahead log begins, by its name: timeline, file and part, of eight digits each.
func segment(name string) (LSN, bool) {
	if len(name) != 24 {
		return 0, false
	}
	file, errF := strconv.ParseUint(name[8:16], 16, 32)
	part, errP := strconv.ParseUint(name[16:], 16, 32)
	return LSN(file<<32 + part*SegmentSize), errF == nil && errP == nil
}

// Before is the last backup that is consistent by a place in the write-ahead log.
func (s Stanza) Before(at LSN) (Backup, bool) {
	for i := len(s.Backups) - 1; i >= 0; i-- {
		if stop, err := ParseLSN(s.Backups[i].LSN.Stop); err == nil && stop <= at && !s.Backups[i].Error {
			return s.Backups[i], true
		}
	}
	return Backup{}, false
}
