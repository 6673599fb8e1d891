// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// maxSaid bounds in bytes how much of a server's message is reported.
const maxSaid = 300

// Explain what a server of PostgreSQL refused, or nil if err is nothing of that kind.
func Explain(err error) *outside.Failure {
	if p := (*pgconn.PgError)(nil); errors.As(err, &p) {
		f := refusal(p)
		f.Cause = err
		return f
	}
	if err != nil && strings.Contains(err.Error(), "server refused TLS connection") {
		return &outside.Failure{Reason: apis.ReasonTLSFailed, Message: "the server does not speak TLS", Remedy: "switch it on: ssl = on", Cause: err}
	}
	return nil
}

// Refused is what the server refuses of a step for good, or nil.
func (c *Server) Refused(err error) *outside.Failure {
	if p := (*pgconn.PgError)(nil); errors.As(err, &p) && !passing(p) {
		return refusal(p)
	}
	return nil
}

// Codes and classes of codes of PostgreSQL, and what they mean for us.
var refusals = []struct {
	code         string
	reason       xpv2.ConditionReason
	what, remedy string
}{
	{"28P01", apis.ReasonCredentialsRefused, "the server does not take the password of the role", "see that server.passwordSecretRef holds the one that the server has"},
	{"28", apis.ReasonForbidden, "the server does not let the role in", "see its pg_hba.conf, and that the role may log in"},
	{"3D000", apis.ReasonNotFound, "there is no such database", "nothing to do: it is made again"},
	{"53300", apis.ReasonThrottled, "the server has no connection left", "raise max_connections, or have clients use fewer"},
	{"53100", apis.ReasonServerError, "the server's disk is full", "make the volume larger, or delete data"},
	{"53", apis.ReasonServerError, "the server has not enough of something", "see its logs"},
	{"57P03", apis.ReasonUnreachable, "the server is starting, or recovers", "nothing to do: the provider tries again"},
	{"57P0", apis.ReasonUnreachable, "the server is stopping, or ended the connection", "nothing to do: the provider tries again"},
	{"57014", apis.ReasonTimedOut, "the server took too long", "see what its sessions wait for"},
	{"55P03", apis.ReasonTimedOut, "another session holds a lock for too long", "see what its sessions wait for"},
	{"55006", apis.ReasonConflict, "something is in use", "nothing to do: the provider tries again"},
	{"40", apis.ReasonConflict, "another session changes the same thing", "nothing to do: the provider tries again"},
	{"XX000", apis.ReasonConflict, "the server failed, perhaps because another session changes the same thing", "the provider tries again; see the server's logs"},
	{"25006", apis.ReasonUnreachable, "the server follows another one and takes no writes", "nothing to do: the provider tries again"},
	{"42501", apis.ReasonForbidden, "the server does not let the role do this", "see that the role has CREATEROLE and CREATEDB, and administers what it has made"},
	{"58P01", apis.ReasonNotFound, "a file is missing in the image of the server", "use an image that has it"},
	{"3F000", apis.ReasonRejected, "there is no schema public to make it in", "make the schema public in the database"},
}

// refusal of a server.
func refusal(p *pgconn.PgError) *outside.Failure {
	for _, r := range refusals {
		if !strings.HasPrefix(p.Code, r.code) {
			continue
		}
		f := &outside.Failure{Reason: r.reason, Message: r.what, Remedy: r.remedy}

		// What it says names what it is about.
		if said := words.Steady(p.Message, ""); p.Code[:2] == "42" || p.Code[:2] == "58" {
			f.Message += " (" + words.Bounded(said, maxSaid) + ")"
		}
		return f
	}
	return &outside.Failure{
		Reason:  apis.ReasonRejected,
		Message: fmt.Sprintf("the server refuses with code %s: %s", words.OneLine(p.Code), words.Bounded(words.Steady(p.Message, ""), maxSaid)),
		Remedy:  "see the server's logs",
	}
}

// passing reports whether a refusal says nothing about the statement, so that all of it is tried again later.
func passing(p *pgconn.PgError) bool {
	switch {
	case strings.HasPrefix(p.Code, "57P"), strings.HasPrefix(p.Code, "53"), strings.HasPrefix(p.Code, "40"),
		strings.HasPrefix(p.Code, "08"), p.Code == "25006", p.Code == "XX000", p.Code == "55P03", p.Code == "57014":
		return true
	default:
		return false
	}
}
