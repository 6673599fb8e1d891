// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/x509"
	"errors"

	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/mysql"
	"github.com/capstan-dev/capstan/provider/access/internal/postgres"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// explain what went wrong between us and a server. Errors of the engines' protocols differ by their types; what is below them
// others explain.
func explain(err error) *outside.Failure {
	for _, engines := range []func(error) *outside.Failure{postgres.Explain, mysql.Explain} {
		if f := engines(err); f != nil {
			return f
		}
	}
	failed := func(what, remedy string) *outside.Failure {
		return &outside.Failure{Reason: apis.ReasonTLSFailed, Message: what, Remedy: remedy, Cause: err}
	}
	if e := (x509.UnknownAuthorityError{}); errors.As(err, &e) {
		return failed("the server's certificate is signed by an unknown authority",
			"put the certificate of its authority where server.caSecretRef points to")
	}
	if e := (x509.HostnameError{}); errors.As(err, &e) {
		return failed("the server's certificate is not for server.host", "have one made that names it")
	}
	return nil
}
