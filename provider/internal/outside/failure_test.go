// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

func TestExplain(t *testing.T) {
	wrapped := func(err error) error {
		return fmt.Errorf("operation error S3: HeadBucket: %w", &url.Error{Op: "Head", URL: "https://s3.example.org/x", Err: err})
	}
	cases := map[string]struct {
		reason string
		err    error
		want   xpv2.ConditionReason
	}{
		"Unknown":       {reason: "What it does not know it does not explain.", err: errors.New("boom")},
		"Failure":       {reason: "What is explained already stays.", err: fmt.Errorf("so: %w", &Failure{Reason: v1alpha1.ReasonNameTaken}), want: v1alpha1.ReasonNameTaken},
		"Address":       {reason: "A refused address is told as such.", err: wrapped(&net.OpError{Op: "dial", Err: &AddressError{Kind: "x"}}), want: v1alpha1.ReasonAddressRefused},
		"Cooling":       {reason: "A pause is no fault of anybody.", err: wrapped(errCooling), want: v1alpha1.ReasonThrottled},
		"NoSuchHost":    {reason: "A name that is not there.", err: wrapped(&net.DNSError{Name: "s3.exmaple.org", IsNotFound: true}), want: v1alpha1.ReasonHostUnknown},
		"NoDNS":         {reason: "A resolver that does not answer is about names, although it is a timeout.", err: wrapped(&net.DNSError{Name: "s3.example.org", IsTimeout: true}), want: v1alpha1.ReasonHostUnknown},
		"Authority":     {reason: "An unknown authority.", err: wrapped(x509.UnknownAuthorityError{}), want: v1alpha1.ReasonTLSFailed},
		"OtherHost":     {reason: "A certificate of somebody else.", err: wrapped(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}), want: v1alpha1.ReasonTLSFailed},
		"Expired":       {reason: "An old certificate.", err: wrapped(x509.CertificateInvalidError{Reason: x509.Expired}), want: v1alpha1.ReasonTLSFailed},
		"NoTLS":         {reason: "Plain text where TLS should be.", err: wrapped(tls.RecordHeaderError{}), want: v1alpha1.ReasonTLSFailed},
		"Alert":         {reason: "A server that wants something else.", err: wrapped(tls.AlertError(40)), want: v1alpha1.ReasonTLSFailed},
		"Deadline":      {reason: "Time was up.", err: wrapped(context.DeadlineExceeded), want: v1alpha1.ReasonTimedOut},
		"Refused":       {reason: "Nobody listens.", err: wrapped(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), want: v1alpha1.ReasonUnreachable},
		"NoRoute":       {reason: "Nobody is there.", err: wrapped(&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}), want: v1alpha1.ReasonUnreachable},
		"Reset":         {reason: "The connection broke.", err: wrapped(syscall.ECONNRESET), want: v1alpha1.ReasonUnknownAnswer},
		"CutOff":        {reason: "An answer without its end is none.", err: wrapped(io.ErrUnexpectedEOF), want: v1alpha1.ReasonUnknownAnswer},
		"NoAnswer":      {reason: "A connection that was closed without an answer.", err: wrapped(io.EOF), want: v1alpha1.ReasonUnknownAnswer},
		"TooLarge":      {reason: "An answer that does not end.", err: wrapped(ErrTooLarge), want: v1alpha1.ReasonUnknownAnswer},
		"SomethingElse": {reason: "A request that could not be sent.", err: wrapped(errors.New("boom")), want: v1alpha1.ReasonUnreachable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := Explain(tc.err)
			if f == nil {
				if tc.want != "" {
					t.Errorf("\n%s\nExplain(%v): want %q, got nothing", tc.reason, tc.err, tc.want)
				}
				return
			}
			if f.Reason != tc.want {
				t.Errorf("\n%s\nExplain(%v): want %q, got %q", tc.reason, tc.err, tc.want, f.Reason)
			}
			if name != "Failure" && (f.Message == "" || f.Remedy == "" || !errors.Is(f, tc.err)) {
				t.Errorf("\n%s\nA Failure should have message, remedy and cause, got %+v", tc.reason, f)
			}
		})
	}
}

func TestConclude(t *testing.T) {
	nothing := func(error) *Failure { return nil }
	if c, err := conclude(nothing, nil); err != nil || c.Reason != v1alpha1.ReasonAnswered {
		t.Errorf("No error is an answer, got %v, %v", c, err)
	}
	conflict := fmt.Errorf("cannot: %w", kerrors.NewConflict(schema.GroupResource{}, "x", nil))
	if c, err := conclude(nothing, conflict); !errors.Is(err, conflict) || c.Type != "" {
		t.Errorf("The API server's errors are the runtime's, got %v, %v", c, err)
	}

	// The connection with the API server may break in the same ways as others.
	lost := InCluster("cannot get Secret: %w", &url.Error{Op: "Get", URL: "https://10.96.0.1/api", Err: syscall.ECONNREFUSED})
	if c, err := conclude(nothing, lost); !errors.Is(err, lost) || c.Type != "" {
		t.Errorf("What is wrong with the cluster is not the service's fault, got %v, %v", c, err)
	}

	// What the guard could not find out is about the service that was to be dialled.
	unknown := &url.Error{Op: "Get", URL: "https://s3.example.org", Err: InCluster("cannot tell addresses: %w", kerrors.NewInternalError(errors.New("boom")))}
	if c, err := conclude(nothing, unknown); err == nil || c.Reason != v1alpha1.ReasonAddressRefused {
		t.Errorf("Without knowing the API server's addresses nobody connects, got %v, %v", c, err)
	}

	// A library may put anything into its errors.
	c, err := conclude(nothing, errors.New("dial https://user:hunter2@s3.example.org"))
	if c.Reason != v1alpha1.ReasonUnknownAnswer || err == nil {
		t.Errorf("What nobody understands is told as such, got %v, %v", c, err)
	}
	for _, told := range []string{c.Message, err.Error()} {
		if told == "" || containsSecret(told) {
			t.Errorf("Nothing of an unknown error may be shown, got %q", told)
		}
	}
}

func containsSecret(s string) bool { return strings.Contains(s, "hunter2") }
