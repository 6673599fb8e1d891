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
