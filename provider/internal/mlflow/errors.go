// SPDX-License-Identifier: Apache-2.0

package mlflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Codes of errors that clients and Explain tell apart: enum ErrorCode of mlflow/protos/databricks.proto. The status alone says
// little: the registry answers 400 for what exists already, and proxies answer 404 for everything.
const (
	codeNotFound      = "RESOURCE_DOES_NOT_EXIST"
	codeExists        = "RESOURCE_ALREADY_EXISTS"
	codeExistsToo     = "ALREADY_EXISTS"
	codeInvalid       = "INVALID_PARAMETER_VALUE"
	codeBadRequest    = "BAD_REQUEST"
	codeDenied        = "PERMISSION_DENIED"
	codeUnauthorized  = "CUSTOMER_UNAUTHORIZED"
	codeUnauthentic   = "UNAUTHENTICATED"
	codeAborted       = "ABORTED"
	codeConflict      = "RESOURCE_CONFLICT"
	codeLimit         = "REQUEST_LIMIT_EXCEEDED"
	codeExhausted     = "RESOURCE_EXHAUSTED"
	codeNoEndpoint    = "ENDPOINT_NOT_FOUND"
	codeUnimplemented = "NOT_IMPLEMENTED"
)

// An Error is an answer that is not what was hoped for. Its text holds nothing that the answer said: that could be anything.
type Error struct {
	// Operation that was requested.
	Operation string

	// Status of the answer.
	Status int

	// Code is the registry's, or "" when another program answered.
	Code string

	// invalidHost means that the registry does not want to be called by this name. It says so in plain text.
	invalidHost bool

	// unreadable means that a good status came with what is no answer.
	unreadable bool
}

// Error has what was requested and the kind of answer.
func (e *Error) Error() string {
	switch {
	case e.unreadable:
		return fmt.Sprintf("cannot %s: the answer with status %d is not the registry's", e.Operation, e.Status)
	case e.Code == "":
		return fmt.Sprintf("cannot %s: status %d", e.Operation, e.Status)
	default:
		return fmt.Sprintf("cannot %s: status %d, %s", e.Operation, e.Status, e.Code)
	}
}

// newError of an answer.
func newError(operation string, status int, body []byte) *Error {
	e := &Error{Operation: operation, Status: status}
	var answer struct {
		Code string `json:"error_code"`
	}

	// Anything else is not from the registry: it says what went wrong in JSON, except for what its server refuses before it gets
	// there.
	if err := json.Unmarshal(body, &answer); err == nil {
		e.Code = answer.Code
	}
	e.invalidHost = status == http.StatusForbidden && bytes.HasPrefix(body, []byte("Invalid Host header"))
	return e
}

// IsNotFound reports whether the registry said that the requested entry does not exist. A bare 404 does not say that: it may come
// from a proxy or a wrong path.
func IsNotFound(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) && e.Code == codeNotFound && e.Status >= 400 && e.Status < 500
}
