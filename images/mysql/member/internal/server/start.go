// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
)

// again is the code with which a server ends that wants to be started again: after it copied the data of another one.
const again = 16

// Start the server with a configuration. Its log goes to a writer, and note gets each line.
func Start(settings string, log io.Writer, note func(line []byte)) (*process.Child, error) {
	if err := errors.Join(os.RemoveAll(layout.Temporary), durable.Folders(layout.Temporary), os.WriteFile(layout.Settings, []byte(settings), 0o600)); err != nil {
		return nil, fmt.Errorf("cannot prepare the start of the server: %w", err)
	}
	cmd := exec.Command(layout.Server, "--defaults-file="+layout.Settings)
	// With it the server asks to be started again. Without it a server that was copied ends, and stays so.
	cmd.Env = append(os.Environ(), "MYSQLD_PARENT_PID="+strconv.Itoa(os.Getpid()))
	lines := &lines{to: log, note: note}
	cmd.Stdout, cmd.Stderr = lines, lines
	return process.Begin(cmd)
}

// WantsAgain reports whether a server that ended wants to be started again.
func WantsAgain(ended error) bool {
	var exit *exec.ExitError
	return errors.As(ended, &exit) && exit.ExitCode() == again
}

// lines passes what a program writes on, and notes each line.
type lines struct {
	to   io.Writer
	note func([]byte)
	rest []byte
}

// longest line that is noted as a whole.
const longest = 16 << 10

func (l *lines) Write(b []byte) (int, error) {
	_, _ = l.to.Write(b) // a log that no program takes must not stop the server
	l.rest = append(l.rest, b...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			break
		}
		l.note(line)
		l.rest = rest
	}
	if len(l.rest) > longest {
		l.rest = nil
	}
	return len(b), nil
}

// OfGroup reports whether a line of the log is about the group.
func OfGroup(line []byte) bool { return bytes.Contains(line, []byte("group_replication")) }
