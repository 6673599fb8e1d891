// SPDX-License-Identifier: Apache-2.0

// Package lines understands the log lines of PostgreSQL, Patroni and PgBouncer.
package lines

import (
	"crypto/rand"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/images/member/logs"
)

var (
	// server begins with the time, the process and the code of the message.
	server = regexp.MustCompile(`(?s)^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC \[(\d+)\] ([0-9A-Z]{5}) (.*)$`)
	// said is what a message is, and its text.
	said = regexp.MustCompile(`^(DEBUG[1-5]?|LOG|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC|DETAIL|HINT|CONTEXT|STATEMENT|QUERY|LOCATION|BACKTRACE):  (.*)$`)
	// patroni writes the time with a comma.
	patroni = regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) (DEBUG|INFO|WARNING|ERROR|CRITICAL): (.*)$`)
	bouncer = regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) [A-Z]+ \[(\d+)\] (NOISE|DEBUG|LOG|WARNING|ERROR|FATAL) (.*)$`)
)

// parts of a message, which follow it.
var parts = map[string]bool{"DETAIL": true, "HINT": true, "CONTEXT": true, "STATEMENT": true, "QUERY": true, "LOCATION": true, "BACKTRACE": true}

// Marks are in each line of PostgreSQL and Patroni of one run of a member, and cannot be guessed. The server writes the names of a user and a
// database as a client gives them before login, with any line breaks. So only the marks say where a line begins and a name ends. Every login can
// read them as log_line_prefix, and can forge lines then.
type Marks struct{ mark string }

// NewMarks are unlike any others.
func NewMarks() *Marks { return &Marks{mark: rand.Text()} }

// Server is the log_line_prefix of PostgreSQL. What follows %q is in lines of sessions only. The server cleans the name of an application.
func (k *Marks) Server() string {
	return k.mark + "%m [%p] %e %q%h %a" + k.mark + "%u" + k.mark + "%d" + k.mark
}

// Patroni is the format of its lines.
func (k *Marks) Patroni() string { return k.mark + "%(asctime)s %(levelname)s: %(message)s" }

// Member reads lines of PostgreSQL and Patroni, and what Patroni starts.
func (k *Marks) Member(line string, last *logs.Entry) *logs.Entry {
	if text, marked := strings.CutPrefix(line, k.mark); marked {
		if m := server.FindStringSubmatch(text); m != nil {
			return k.ofServer(m[1], m[2], m[3], m[4], last)
		}
		if m := patroni.FindStringSubmatch(text); m != nil {
			return &logs.Entry{Time: at(m[1] + "." + m[2]), Level: logs.Level(m[3]), Message: m[4], Source: "patroni"}
		}
	}
	// PostgreSQL begins further lines of a message with a tab. Patroni does not.
	if text, continues := strings.CutPrefix(line, "\t"); continues && last != nil && last.Source == sourceServer {
		last.Continue(text)
		return nil
	}
	if last != nil && last.Source == "patroni" {
		last.Continue(line)
		return nil
	}
	return logs.Raw(line)
}

const (
	sourceServer  = "postgres"
	sourceBouncer = "pgbouncer"
)

// ofServer is a line of PostgreSQL after its time, process and code. What names a session comes first: its host and application, its user and its
// database, each with a mark behind it. No host looks like the beginning of a message.
func (k *Marks) ofServer(when, pid, code, text string, last *logs.Entry) *logs.Entry {
	e := &logs.Entry{Time: at(when), Source: sourceServer}
	e.PID, _ = strconv.Atoi(pid)
	if code != successful {
		e.Code = code
	}
	m := said.FindStringSubmatch(text)
	if m == nil {
		session := strings.SplitN(text, k.mark, 4)
		if len(session) < 4 {
			return logs.Unfinished(k.mark) // A name has line breaks.
		}
		host, application, _ := strings.Cut(session[0], " ")
		e.Application, e.User, e.Database, text = application, session[1], session[2], session[3]
		if host != "[local]" {
			e.Host = host
		}
		if m = said.FindStringSubmatch(text); m == nil {
			e.Level, e.Message = "INFO", text
			return e
		}
	}
	if parts[m[1]] && last != nil && last.Source == sourceServer && last.PID == e.PID {
		last.Add(strings.ToLower(m[1]), m[2])
		return nil
	}
	e.Severity, e.Level, e.Message = m[1], logs.Level(m[1]), m[2]
	return e
}

// successful is the code of messages that are not about an error.
const successful = "00000"

// Pooler reads lines of PgBouncer, which begins further lines of a message with a tab, also where names of a client have line breaks.
func Pooler(line string, last *logs.Entry) *logs.Entry {
	if text, continues := strings.CutPrefix(line, "\t"); continues && last != nil && last.Source == sourceBouncer {
		last.Continue(text)
		return nil
	}
	m := bouncer.FindStringSubmatch(line)
	if m == nil {
		return logs.Raw(line)
	}
	e := &logs.Entry{Time: at(m[1]), Level: logs.Level(m[3]), Severity: m[3], Message: m[4], Source: sourceBouncer}
	e.PID, _ = strconv.Atoi(m[2])
	return e
}

// at is a time in UTC, as all of them write it.
func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05.000", text)
	if err != nil {
		return time.Now().UTC()
	}
	return t
}
