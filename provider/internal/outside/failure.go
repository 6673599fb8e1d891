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
	"os"
	"strings"
	"syscall"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A Failure is an error that people can act on. Its message is the same however often the same thing goes wrong: no request IDs,
// no times, no addresses that change, and never anything of a Secret.
type Failure struct { //nolint:errname // It is called a failure everywhere: in conditions, docs and tests.
	// Reason of the condition Connected.
	Reason xpv2.ConditionReason

	// Message says what is wrong and names the field or the thing.
	Message string

	// Remedy says what to do.
	Remedy string

	// Cause is what the service or the network said. It is for errors.Is and errors.As and is never shown.
	Cause error
}

// Error is message and remedy.
func (f *Failure) Error() string {
	if f.Remedy == "" {
		return f.Message
	}
	return f.Message + ": " + f.Remedy
}

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// A ClusterError is one of the cluster itself: of the API server, the cache or the network between them. It says nothing about an
// outside service.
type ClusterError struct{ err error }

// Error of the cluster.
func (e *ClusterError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *ClusterError) Unwrap() error { return e.err }

// InCluster makes a ClusterError, in the way of fmt.Errorf.
func InCluster(format string, args ...any) error {
	return &ClusterError{err: fmt.Errorf(format, args...)}
}

// Explain what went wrong between us and a service, below its protocol: names, addresses, TLS, time and answers that are none. It
// returns nil when it does not know the error. A Failure within err is returned as it is.
func Explain(err error) *Failure {
	if f := (*Failure)(nil); errors.As(err, &f) {
		return f
	}
	for _, explain := range []func(error) *Failure{refusedHere, name, trust, silence, garbled} {
		if f := explain(err); f != nil {
			f.Cause = err
			return f
		}
	}
	return nil
}

// refusedHere explains requests that never left.
func refusedHere(err error) *Failure {
	if e := (*AddressError)(nil); errors.As(err, &e) {
		return &Failure{
			Reason:  v1alpha1.ReasonAddressRefused,
			Message: e.Error(),
			Remedy:  "use a public address of the service, or ask the platform team for a ClusterProviderConfig",
		}
	}
	if e := (*ClusterError)(nil); errors.As(err, &e) {
		return &Failure{
			Reason:  v1alpha1.ReasonAddressRefused,
			Message: "the provider cannot distinguish the API server's addresses from others, so it connects with nothing that a tenant names",
			Remedy:  "apply platform.yaml of the installed release (package/platform.yaml in the sources), which lets it read them",
		}
	}
	if errors.Is(err, errCooling) {
		return &Failure{
			Reason:  v1alpha1.ReasonThrottled,
			Message: "the service asked for fewer requests",
			Remedy:  "nothing to do: the provider waits as long as the service asked for",
		}
	}
	return nil
}

// name explains what cannot be looked up.
func name(err error) *Failure {
	e := (*net.DNSError)(nil)
	if !errors.As(err, &e) {
		return nil
	}
	if e.IsNotFound {
		return &Failure{
			Reason:  v1alpha1.ReasonHostUnknown,
			Message: fmt.Sprintf("host %q is unknown", e.Name),
			Remedy:  "check the URL in the config",
		}
	}
	return &Failure{
		Reason:  v1alpha1.ReasonHostUnknown,
		Message: fmt.Sprintf("host %q cannot be looked up", e.Name),
		Remedy:  "check the cluster's DNS",
	}
}

// trust explains what is wrong with certificates.
func trust(err error) *Failure {
	failed := func(what, remedy string) *Failure {
		return &Failure{Reason: v1alpha1.ReasonTLSFailed, Message: what, Remedy: remedy}
	}
	if e := (x509.UnknownAuthorityError{}); errors.As(err, &e) {
		return failed("the server's certificate is signed by an unknown authority", "put its authority into caBundle")
	}
	if e := (x509.HostnameError{}); errors.As(err, &e) {
		return failed("the server's certificate is for another host", "use a URL that the certificate names")
	}
	if e := (x509.CertificateInvalidError{}); errors.As(err, &e) {
		if e.Reason == x509.Expired {
			return failed("the server's certificate has expired or is not valid yet", "renew it, or check the clocks")
		}
		return failed("the server's certificate is not valid", "check the certificate and its authority")
	}
	if e := (*tls.CertificateVerificationError)(nil); errors.As(err, &e) {
		return failed("the server's certificate cannot be verified", "check the certificate and caBundle")
	}
	if e := (tls.RecordHeaderError{}); errors.As(err, &e) {
		return failed("the server does not speak TLS", "use http in the URL, or switch TLS on in the server")
	}
	if e := tls.AlertError(0); errors.As(err, &e) {
		return failed("the server refused the TLS connection", "check its TLS versions and whether it wants client certificates")
	}

	// net/http reports this one only in words.
	if err != nil && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return failed("the server does not speak TLS", "use http in the URL, or switch TLS on in the server")
	}
	return nil
}

// silence explains servers that do not answer.
func silence(err error) *Failure {
	if timedOut(err) {
		return &Failure{
			Reason:  v1alpha1.ReasonTimedOut,
			Message: "the service did not answer in time",
			Remedy:  "check the service, and network policies between it and the provider",
		}
	}
	for _, e := range []error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH} {
		if errors.Is(err, e) {
			return &Failure{
				Reason:  v1alpha1.ReasonUnreachable,
				Message: "nothing answers at the address of the service: " + e.Error(),
				Remedy:  "check that it runs, and its URL and port in the config",
			}
		}
	}
	return nil
}

// timedOut reports whether time was up, anywhere.
func timedOut(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	e := net.Error(nil)
	return errors.As(err, &e) && e.Timeout()
}

// garbled explains answers that are cut off or are none.
func garbled(err error) *Failure {
	if errors.Is(err, ErrTooLarge) {
		return &Failure{
			Reason:  v1alpha1.ReasonUnknownAnswer,
			Message: ErrTooLarge.Error(),
			Remedy:  "check that the URL leads to the service and not to something else",
		}
	}
	for _, e := range []error{io.ErrUnexpectedEOF, io.EOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, e) {
			return &Failure{
				Reason:  v1alpha1.ReasonUnknownAnswer,
				Message: "the connection broke in the middle of a request",
				Remedy:  "check the service, and proxies between it and the provider; the provider looks again before it changes anything",
			}
		}
	}
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return &Failure{
			Reason:  v1alpha1.ReasonUnreachable,
			Message: "the request could not be sent",
			Remedy:  "check the URL in the config, and the service",
		}
	}
	return nil
}
