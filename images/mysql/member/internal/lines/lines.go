// SPDX-License-Identifier: Apache-2.0

// Package lines understands the log lines of MySQL.
package lines

import (
	"regexp"
	"strconv"
	"time"

	"github.com/capstan-dev/capstan/images/member/logs"
)

// server lines have the time, the thread, the severity, a code, the subsystem and the text.
var server = regexp.MustCompile(`^(\S+Z) (\d+) \[(\w+)\] \[(MY-\d+)\] \[(\w+)\] (.*)$`)

// Member reads lines of the server.
func Member(line string, _ *logs.Entry) *logs.Entry {
	m := server.FindStringSubmatch(line)
	if m == nil {
		return logs.Raw(line)
	}
	at, err := time.Parse(time.RFC3339Nano, m[1])
	if err != nil {
		return logs.Raw(line)
	}
	e := &logs.Entry{Time: at, Level: logs.Level(m[3]), Severity: m[3], Code: m[4], Message: m[6], Source: "mysql"}
	e.PID, _ = strconv.Atoi(m[2])
	e.Add("subsystem", m[5])
	return e
}
