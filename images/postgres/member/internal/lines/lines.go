// SPDX-License-Identifier: Apache-2.0

// Package lines understands the log lines of PostgreSQL, Patroni and PgBouncer.
package lines

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/logs"
)

var (
	// server begins with the time and the process, as log_line_prefix says.
	server = regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) UTC \[(\d+)\] (.*)$`)
	// code of a message, then said: what it is, and its text.
	code = regexp.MustCompile(`^([0-9A-Z]{5}) (.*)$`)
	said = regexp.MustCompile(`^(DEBUG[1-5]?|LOG|INFO|NOTICE|WARNING|ERROR|FATAL|PANIC|DETAIL|HINT|CONTEXT|STATEMENT|QUERY|LOCATION|BACKTRACE):  (.*)$`)
	// patroni writes the time with a comma.
	patroni = regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) (DEBUG|INFO|WARNING|ERROR|CRITICAL): (.*)$`)
	bouncer = regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) [A-Z]+ \[(\d+)\] (NOISE|DEBUG|LOG|WARNING|ERROR|FATAL) (.*)$`)
)

// parts of a message, which follow it.
var parts = map[string]bool{"DETAIL": true, "HINT": true, "CONTEXT": true, "STATEMENT": true, "QUERY": true, "LOCATION": true, "BACKTRACE": true}

// Member reads lines of PostgreSQL and Patroni, and what Patroni starts.
func Member(line string, last *logs.Entry) *logs.Entry {
	if m := server.FindStringSubmatch(line); m != nil {
		return ofServer(m[1], m[2], m[3], last)
	}
	if m := patroni.FindStringSubmatch(line); m != nil {
		return &logs.Entry{Time: at(m[1] + "." + m[2]), Level: logs.Level(m[3]), Message: m[4], Source: "patroni"}
	}
	// PostgreSQL begins further lines of a message with a tab, so that no text of a client looks like a line of its own. Patroni does not.
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

const sourceServer = "postgres"

// ofServer is a line of PostgreSQL after its time and process. What a session is named by ends with a mark that no client can write.
func ofServer(when, pid, text string, last *logs.Entry) *logs.Entry {
	e := &logs.Entry{Time: at(when), Source: sourceServer}
	e.PID, _ = strconv.Atoi(pid)
	if m := code.FindStringSubmatch(text); m != nil {
		e.Code, text = m[1], m[2]
	}
	m := said.FindStringSubmatch(text)
	if m == nil {
		session, message, marked := strings.Cut(text, " "+pgmember.LogMark+" ")
		if m = said.FindStringSubmatch(message); !marked || m == nil {
			e.Level, e.Message = "INFO", text
			return e
		}
		var host string
		e.User, session, _ = strings.Cut(session, "@")
		e.Database, session, _ = strings.Cut(session, " ")
		host, e.Application, _ = strings.Cut(session, " ")
		if host != "[local]" {
			e.Host = host
		}
	}
	if parts[m[1]] && last != nil && last.Source == sourceServer && last.PID == e.PID {
		last.Add(strings.ToLower(m[1]), m[2])
		return nil
	}
	e.Severity, e.Level, e.Message = m[1], logs.Level(m[1]), m[2]
	if e.Code == "00000" {
		e.Code = "" // It says that all is well.
	}
	return e
}

// Pooler reads lines of PgBouncer.
func Pooler(line string, _ *logs.Entry) *logs.Entry {
	m := bouncer.FindStringSubmatch(line)
	if m == nil {
		return logs.Raw(line)
	}
	e := &logs.Entry{Time: at(m[1]), Level: logs.Level(m[3]), Severity: m[3], Message: m[4], Source: "pgbouncer"}
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
