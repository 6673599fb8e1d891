// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
)

// A Step towards what is wanted.
type Step struct {
	// Of is the database or login that it is for.
	Of Subject

	// What it does, for people.
	What string

	// Database to do it in, "" being the one that is always there.
	Database string

	// Statements, all in one transaction where the engine can, or one Alone.
	Statements []string
	Alone      bool

	// Evict ends the sessions of this login instead, if it is set.
	Evict string

	// Password of the login is set, after the statements.
	Password bool

	// Unused is the login of the spec that must not have taken the role into use since; otherwise nothing is done.
	Unused string

	// Extension means that only an extension depends on the step.
	Extension bool
}

// A Subject is a database or a login.
type Subject struct {
	Database, Login string
}

// A Problem that SQL cannot solve.
type Problem struct {
	Of   Subject
	Text string

	// Extension means that only an extension has the problem.
	Extension bool
}

// A Plan of steps, in order, and the problems that block others. What is inside a database that does not exist yet is left to the
// next plan.
type Plan struct {
	Steps    []Step
	Problems []Problem
}

// Add a step.
func (p *Plan) Add(s Step) { p.Steps = append(p.Steps, s) }

// Refusef adds a problem of a subject.
func (p *Plan) Refusef(of Subject, format string, args ...any) {
	p.Problems = append(p.Problems, Problem{Of: of, Text: fmt.Sprintf(format, args...)})
}

// Blocks reports whether a subject has a problem that is not an extension's.
func (p *Plan) Blocks(of Subject) bool {
	return slices.ContainsFunc(p.Problems, func(q Problem) bool { return q.Of == of && !q.Extension })
}

// open reports whether anything but extensions is left to do for a subject.
func (p *Plan) open(of Subject) bool {
	return p.Blocks(of) || slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Of == of && !s.Extension })
}

// Draw up what to do with a server.
func Draw(s Seen, w Wanted) Plan {
	p := Plan{}

	// Logins that are no longer desired come first: they hold nothing that others need.
	wanted := w.Names()
	for _, name := range s.Ours() {
		if !slices.Contains(wanted, name) {
			s.Shut(&p, name, "")
		}
	}
	for _, d := range w.Databases {
		s.OpenUp(&p, d, w.Extensions)
	}
	for _, l := range w.Logins {
		s.LetIn(&p, w, l)
	}
	for _, o := range w.Others {
		p.rest(s, w, o)
	}
	return p
}

// rest plans what to do with a role that is not in use. As long as clients may have it, that is nothing. It is shut out before it
// gets the next password, so that no earlier holder of it keeps its sessions.
func (p *Plan) rest(s Seen, w Wanted, o Other) {
	r := s.Role(o.Name)
	switch {
	case o.Opens:
		s.LetIn(p, w, o.Login)
	case o.Kept():
	case o.Token == "" && !r.Ours:
	case o.Token == "", r.Ours && (r.Open || r.Sessions > 0):
		s.Shut(p, o.Name, o.Of)
	default:
		s.LetIn(p, w, o.Login)
	}
}
