// SPDX-License-Identifier: Apache-2.0

package verification

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/capstan-dev/capstan/apis/members"
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

func TestBecause(t *testing.T) {
	slow := &Failure{members.VerifySlow, "too slow"}
	other := errors.New("killed")
	ended, cancel := context.WithTimeoutCause(context.Background(), time.Nanosecond, slow)
	defer cancel()
	<-ended.Done()
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for name, tc := range map[string]struct {
		reason string
		ctx    context.Context //nolint:containedctx // It is what is tested.
		want   error
	}{
		"Limit":   {"What was ended for its time says so, and not what it came to.", ended, slow},
		"Stopped": {"What was told to stop is nobody's fault.", stopped, context.Canceled},
		"Other":   {"All else is what it is.", context.Background(), other},
	} {
		t.Run(name, func(t *testing.T) {
			if got := because(tc.ctx, other); !errors.Is(got, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestDamaged(t *testing.T) {
	var failure *Failure
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
