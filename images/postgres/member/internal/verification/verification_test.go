// SPDX-License-Identifier: Apache-2.0

package verification

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/capstan-dev/capstan/apis/members"
	frame "github.com/capstan-dev/capstan/images/member/verification"
)

func TestCause(t *testing.T) {
	for name, tc := range map[string]struct{ reason, said, want string }{
		"Fatal":   {"The last that ended it is the cause.", "LOG:  starting\nFATAL:  one\nLOG:  more\nFATAL:  could not\tread\nLOG:  ended\n", "FATAL: could not read"},
		"Panic":   {"A panic is one, too.", "PANIC:  could not locate a valid checkpoint record at 0/2000028\n", "PANIC: could not locate a valid checkpoint record at 0/2000028"},
		"Nothing": {"Without any there is the log.", "LOG:  starting\n", "see the log of the pod"},
	} {
		t.Run(name, func(t *testing.T) {
			said := &tail{}
			for range 3 {
				_, _ = said.Write([]byte(strings.Repeat("x", maxTail) + "\n"))
			}
			_, _ = said.Write([]byte(tc.said))
			if got := said.cause(); got != tc.want || len(said.text) > maxTail {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestDamaged(t *testing.T) {
	var failure *frame.Failure
	err := damaged("checksums of pages are wrong", "pg_checksums: error:\n  checksum verification failed "+strings.Repeat("x", 2*maxSaid), &exec.ExitError{})
	if !errors.As(err, &failure) || failure.Kind != members.VerifyData || !strings.Contains(failure.Message, "error: checksum verification failed") ||
		len(failure.Message) > maxSaid+200 {
		t.Errorf("damage is told as %v", err)
	}
	if err := damaged("x", "", exec.ErrNotFound); errors.As(err, &failure) && failure.Kind == members.VerifyData && strings.HasPrefix(err.Error(), "x") {
		t.Errorf("a program that is missing is told as damage: %v", err)
	}
}

func TestPlain(t *testing.T) {
	if got := plain(&pgconn.PgError{Message: "division by zero", Code: "22012"}).Error(); got != `the server says "division by zero" (22012)` {
		t.Errorf("got %s", got)
	}
}
