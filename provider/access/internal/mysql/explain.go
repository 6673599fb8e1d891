// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// maxSaid bounds in bytes how much of a server's message is reported.
const maxSaid = 300

// Codes of MySQL that something depends on.
const (
	codeNone                   = 0
	codeTooManyConnections     = 1040
	codeAccessDenied           = 1045
	codeNoSuchSession          = 1094
	codeTooManyUserConnections = 1203
	codeUserLimitReached       = 1226
)

// code of what a server refused, or codeNone.
func code(err error) uint16 {
	if e := (*mysql.MySQLError)(nil); errors.As(err, &e) {
		return e.Number
	}
	return codeNone
}

// A refusal is what codes of MySQL mean for us.
type refusal struct {
	codes        []uint16
	reason       xpv2.ConditionReason
	what, remedy string

	// passing says nothing about the statement, so that all of it is tried again later.
	passing bool

	// names: what the server says names what it is about.
	names bool
}

const (
	again  = "nothing to do: the provider tries again"
	rights = "give the account the rights that the documentation of Access lists"
)

var refusals = []refusal{
	{
		codes: []uint16{codeAccessDenied}, reason: apis.ReasonCredentialsRefused,
		what: "the server does not take the password of the account", remedy: "see that server.passwordSecretRef holds the one that the server has",
	},
	{
		// A host that is not allowed or blocked, an account that is locked or whose password is too old.
		codes: []uint16{1129, 1130, 1820, 1862, 3118}, reason: apis.ReasonForbidden, names: true,
		what: "the server does not let the account in", remedy: "see that the account may log in from here, and is not locked",
	},
	{codes: []uint16{1049}, reason: apis.ReasonNotFound, what: "there is no such database", remedy: "nothing to do: it is made again", passing: true},
	{
		codes: []uint16{codeTooManyConnections, codeTooManyUserConnections, codeUserLimitReached}, reason: apis.ReasonThrottled, passing: true,
		what: "the server has no connection left", remedy: "raise max_connections, or have clients use fewer",
	},
	{
		// Read-only by an option or a mode; the group takes no writes, or does not agree in time.
		codes: []uint16{1290, 1836, 3100, 3101, 3796, 3797}, reason: apis.ReasonUnreachable, passing: true,
		what: "the server follows another one and takes no writes", remedy: again,
	},
	{codes: []uint16{3032}, reason: apis.ReasonUnreachable, what: "the server lets no clients in at the moment", remedy: again, passing: true},
	{codes: []uint16{1053, 1927, 3168, 4031}, reason: apis.ReasonUnreachable, what: "the server is stopping, or ended the connection", remedy: again, passing: true},
	{codes: []uint16{1317, 3024}, reason: apis.ReasonTimedOut, what: "the server took too long", remedy: "see what its sessions wait for", passing: true},
	{codes: []uint16{1205}, reason: apis.ReasonTimedOut, what: "another session holds a lock for too long", remedy: "see what its sessions wait for", passing: true},
	{
		// A deadlock, a commit that failed, a database that is there already, a login that is or is not.
		codes: []uint16{1007, 1180, 1213, 1396}, reason: apis.ReasonConflict, passing: true,
		what: "another session changes the same thing", remedy: again,
	},
	{codes: []uint16{1021, 1114}, reason: apis.ReasonServerError, what: "the server's disk is full", remedy: "make the volume larger, or delete data", passing: true},
	{codes: []uint16{1037, 1038, 1041}, reason: apis.ReasonServerError, what: "the server has not enough memory", remedy: "see its logs", passing: true},
	{
		// Rights in a database, on a table, a column, or on the server.
		codes: []uint16{1044, 1142, 1143, 1227, 1370, 1410}, reason: apis.ReasonForbidden, names: true,
		what: "the server does not let the account do this", remedy: rights,
	},
	{codes: []uint16{3159}, reason: apis.ReasonTLSFailed, what: "the server wants TLS and does not offer it", remedy: "see its certificate and logs"},
}

// meaning of what a server refused.
func meaning(e *mysql.MySQLError) (outside.Failure, bool) {
	said := words.Bounded(words.Steady(e.Message, ""), maxSaid)
	for _, r := range refusals {
		for _, c := range r.codes {
			if c != e.Number {
				continue
			}
			f := outside.Failure{Reason: r.reason, Message: r.what, Remedy: r.remedy}
			if r.names {
				f.Message += " (" + said + ")"
			}
			return f, r.passing
		}
	}
	return outside.Failure{
		Reason: apis.ReasonRejected, Message: fmt.Sprintf("the server refuses with code %d: %s", e.Number, said), Remedy: "see the server's logs",
	}, false
}

// Explain what a server of MySQL refused, or nil if err is nothing of that kind.
func Explain(err error) *outside.Failure {
	if e := (*mysql.MySQLError)(nil); errors.As(err, &e) {
		f, _ := meaning(e)
		f.Cause = err
		return &f
	}
	switch {
	case errors.Is(err, mysql.ErrNoTLS):
		return &outside.Failure{Reason: apis.ReasonTLSFailed, Message: "the server does not speak TLS", Remedy: "give it a certificate", Cause: err}
	case errors.Is(err, mysql.ErrNativePassword), errors.Is(err, mysql.ErrOldPassword), errors.Is(err, mysql.ErrCleartextPassword), errors.Is(err, mysql.ErrUnknownPlugin):
		return &outside.Failure{
			Reason: apis.ReasonForbidden, Message: "the account does not log in with caching_sha2_password", Remedy: "make it one that does", Cause: err,
		}
	case errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, driver.ErrBadConn):
		return &outside.Failure{Reason: apis.ReasonUnreachable, Message: "the server is stopping, or ended the connection", Remedy: again, Cause: err}
	}
	return nil
}

// Refused is what the server refuses of a step for good, or nil.
func (c *Server) Refused(err error) *outside.Failure {
	if e := (*mysql.MySQLError)(nil); errors.As(err, &e) {
		if f, passing := meaning(e); !passing {
			return &f
		}
	}
	return nil
}
