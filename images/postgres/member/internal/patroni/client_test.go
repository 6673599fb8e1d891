// SPDX-License-Identifier: Apache-2.0

package patroni

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
)

func TestSilent(t *testing.T) {
	asked := func(err error) error {
		return fmt.Errorf("cannot ask Patroni: %w", &url.Error{Op: "Get", URL: "https://localhost/liveness", Err: fmt.Errorf("cannot reach Patroni: %w", err)})
	}
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Answers":   {"No error is an answer.", nil, false},
		"Refused":   {"Nobody listens.", asked(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), true},
		"Late":      {"The context's time ran out.", asked(context.DeadlineExceeded), true},
		"Frozen":    {"So many wait at one that is frozen that no connection is made any more.", asked(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}), true},
		"Lost":      {"The network knows no way to its node.", asked(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}), true},
		"Untrusted": {"Who has another certificate is there.", asked(x509.UnknownAuthorityError{}), false},
		"Other":     {"What was said makes no sense.", errors.New("unexpected end of JSON input"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Silent(tc.err); got != tc.want {
				t.Errorf("\n%s\nSilent(%v): want %t, got %t", tc.reason, tc.err, tc.want, got)
			}
		})
	}
}
