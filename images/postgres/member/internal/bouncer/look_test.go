// SPDX-License-Identifier: Apache-2.0

package bouncer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   Outlook
	}{
		"Refused":     {"Nothing listens.", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, Gone},
		"Reset":       {"What listened is gone.", syscall.ECONNRESET, Gone},
		"Ended":       {"It hung up in the middle.", io.ErrUnexpectedEOF, Gone},
		"Stops":       {"It says that it stops.", &pgconn.PgError{Code: "57P01"}, Gone},
		"Starts":      {"It says that it starts.", &pgconn.PgError{Code: "57P03"}, Gone},
		"Full":        {"One with too many clients is there, and others do well.", &pgconn.PgError{Code: "53300"}, Answers},
		"NoRole":      {"One that does not know the role yet is there.", &pgconn.PgError{Code: "28000"}, Answers},
		"NoName":      {"The name server's trouble is not the server's.", &net.DNSError{Err: "no such host", IsNotFound: true}, Unclear},
		"Slow name":   {"Nor is it when it is slow.", &net.DNSError{Err: "timeout", IsTimeout: true}, Unclear},
		"Certificate": {"One that is not trusted is there.", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, Unclear},
		"Late":        {"No answer in time.", context.DeadlineExceeded, Silent},
		"LateRead":    {"The same, from the network.", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, Silent},
		"Other":       {"What is not understood is not acted upon.", errors.New("?"), Unclear},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(fmt.Errorf("cannot look: %w", tc.err)); got != tc.want {
				t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// TestLook at what is not there, and at what says nothing.
func TestLook(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal("no address")
	}
	o := &Lookout{Host: "127.0.0.1", Port: uint16(addr.Port), Config: func() (*tls.Config, error) { return &tls.Config{MinVersion: tls.VersionTLS12}, nil }, User: "pooler", Database: "postgres"}
	if got := o.Look(t.Context()); got.Outlook != Silent {
		t.Errorf("what says nothing: %v (%v), want silence", got, o.Err())
	}
	_ = l.Close()
	if got := o.Look(t.Context()); got.Outlook != Gone {
		t.Errorf("what is not there: %v (%v), want gone", got, o.Err())
	}
	begun := time.Now()
	broke := o.Wait(t.Context(), 50*time.Millisecond)
	if took := time.Since(begun); broke || took < 50*time.Millisecond || took > 5*time.Second {
		t.Errorf("waited for %s, want 50ms", took)
	}
}
