// SPDX-License-Identifier: Apache-2.0

package mlflow

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// Explain what a registry answered. It returns nil when the error is not about an answer.
func Explain(err error) *outside.Failure {
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		return nil
	}
	f := e.byCode()
	if f == nil || e.Code == codeNotFound && !IsNotFound(e) {
		f = e.byStatus()
	}
	f.Cause = err
	return f
}

// byCode explains what the registry itself says.
func (e *Error) byCode() *outside.Failure {
	switch e.Code {
	case codeNotFound:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonNotFound,
			Message: "the registry does not have what " + e.Operation + " is about",
			Remedy:  "check the names of model and version",
		}
	case codeExists, codeExistsToo:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonConflict,
			Message: "another client made the same thing at the same time",
			Remedy:  "nothing to do: the provider looks whose it is",
		}
	case codeInvalid, codeBadRequest:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonRejected,
			Message: fmt.Sprintf("the registry refused %s with %s", e.Operation, e.Code),
			Remedy:  "check the spec; the registry's log says which value it does not take",
		}
	case codeDenied:
		return e.forbidden()
	case codeUnauthorized, codeUnauthentic:
		return e.unauthorized()
	case codeAborted, codeConflict:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonConflict,
			Message: "another client changed the same thing at the same time",
			Remedy:  "nothing to do: the provider looks again",
		}
	case codeLimit, codeExhausted:
		return e.throttled()
	case codeNoEndpoint, codeUnimplemented:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonNotImplemented,
			Message: "the registry does not offer " + e.Operation,
			Remedy:  "use a later MLflow, and a URL that leads to its tracking server",
		}
	default:
		return nil
	}
}

// byStatus explains what came without a code that we know: from a proxy, from what stands before the registry in its own server,
// or from a registry that failed.
func (e *Error) byStatus() *outside.Failure {
	switch {
	case e.unreadable:
		return e.unknown("the answer is not one of a model registry")
	case e.invalidHost:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonHostRefused,
			Message: "the registry does not want to be called by the host name of the URL in the config",
			Remedy:  "add the host, with its port, to --allowed-hosts of mlflow server",
		}
	case e.Status == http.StatusUnauthorized:
		return e.unauthorized()
	case e.Status == http.StatusForbidden:
		return e.forbidden()
	case e.Status == http.StatusTooManyRequests:
		return e.throttled()
	case e.Status == http.StatusRequestTimeout:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonTimedOut,
			Message: "the service did not answer in time",
			Remedy:  "check the service, and proxies between it and the provider",
		}
	case e.Status == http.StatusRequestEntityTooLarge:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonRejected,
			Message: "the request is too large for the registry or a proxy before it",
			Remedy:  "use fewer or shorter tags, or let the proxy take larger requests",
		}
	case e.Status >= 500:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonServerError,
			Message: fmt.Sprintf("the registry failed with status %d", e.Status),
			Remedy:  "check the registry and its log; the provider tries again and looks before it changes anything",
		}
	case e.Status >= 300 && e.Status < 400:
		return e.unknown("the service wants to be called at another URL, which the provider does not follow")
	default:
		return e.unknown(fmt.Sprintf("status %d, and not from a model registry", e.Status))
	}
}

func (e *Error) forbidden() *outside.Failure {
	return &outside.Failure{
		Reason:  v1alpha1.ReasonForbidden,
		Message: "the credentials of the config do not allow " + e.Operation,
		Remedy:  "grant their user the permission on the model, or check proxies before the registry",
	}
}

func (e *Error) unauthorized() *outside.Failure {
	return &outside.Failure{
		Reason:  v1alpha1.ReasonCredentialsRefused,
		Message: "the registry does not know the credentials of the config, or they have expired",
		Remedy:  "check the Secret that the config names",
	}
}

func (e *Error) throttled() *outside.Failure {
	return &outside.Failure{
		Reason:  v1alpha1.ReasonThrottled,
		Message: "the service asked for fewer requests",
		Remedy:  "nothing to do: the provider waits as long as the service asked for",
	}
}

func (e *Error) unknown(what string) *outside.Failure {
	return &outside.Failure{
		Reason:  v1alpha1.ReasonUnknownAnswer,
		Message: what,
		Remedy:  "check that the URL in the config, with its path, leads to the tracking server, and proxies before it",
	}
}
