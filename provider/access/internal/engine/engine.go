// SPDX-License-Identifier: Apache-2.0

// Package engine is what the servers of all engines have in common for an Access: what is wanted of one, what was seen of it,
// and the plan that turns one into the other. When a step is due is decided here; what it does, the package of an engine decides.
package engine

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// A Server of some engine, for one reconcile. It has one connection at a time.
type Server interface {
	// Look at the server, and into the databases that exist.
	Look(ctx context.Context, w Wanted) (Seen, error)

	// LogIn tries a login with its password.
	LogIn(ctx context.Context, l Login) (Answer, error)

	// Run a step. The password is the one of its login, if the step sets one.
	Run(ctx context.Context, s Step, password string) error

	// Refused is what the server refuses of a step for good, or nil: then the error is one of the connection, or passes.
	Refused(err error) *outside.Failure

	// Disconnect from the server, if there is a connection.
	Disconnect(ctx context.Context)
}

// An Answer to a log-in.
type Answer int

// Answers to a log-in. Of every other one there is an error only.
const (
	// Unanswered: there is an error.
	Unanswered Answer = iota
	// Opened: the password is the right one.
	Opened
	// WrongPassword: it is another one.
	WrongPassword
	// Full: the server has no connection left, so that the password may be the right one. There is an error as well.
	Full
)

// A Target is where a server is, and how to log in.
type Target struct {
	Host               string
	Port               uint16
	Username, Password string
	TLS                *tls.Config

	// Lookup gives the addresses of the host, and Dial connects with one of them if that is allowed.
	Lookup func(ctx context.Context, host string) ([]string, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// Seen is a server as it was seen.
type Seen interface {
	Facts
	Planner
}

// Facts are what was seen of a server.
type Facts interface {
	// Ours are the names of the logins that Capstan made, sorted.
	Ours() []string

	// Role that is, or could be, a login.
	Role(name string) Role

	// Stands reports whether a login is as asked, except for its password: a log-in shows whether that fits.
	Stands(l Login) bool

	// Database as a status has it, if it is there.
	Database(name string, extensions []string) (v1alpha1.ObservedDatabase, bool)
}

// A Planner says what a step does to what was seen of a server.
type Planner interface {
	// OpenUp plans a database, LetIn a login, and Shut that no client can log in as one any longer, unless it was taken into use
	// since.
	OpenUp(p *Plan, database string, extensions []string)
	LetIn(p *Plan, w Wanted, l Login)
	Shut(p *Plan, name, unused string)
}

// A Role of a server, as far as it matters when something is due.
type Role struct {
	// There is one of this name, and Ours if Capstan made it.
	There, Ours bool

	// Open means that it can log in.
	Open bool

	// Sessions that it has now.
	Sessions int
}
