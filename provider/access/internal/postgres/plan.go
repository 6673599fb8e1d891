// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
)

// wanted is what the spec asks of a server.
type wanted struct {
	databases  []string
	logins     []login
	extensions []string

	// others are the roles that alternate with logins and are not in use.
	others []other
}

// A login that the spec asks for.
type login struct {
	name, database string
	readOnly       bool

	// of is its name in the spec, which is the name of one of two alternating roles.
	of string

	// staged means that the password is the next one, not yet in use.
	staged bool

	// password, or "" when it is unknown: then the login stays as it is.
	password string

	// opens means that the password opens the login.
	opens bool
}

// role that the login is a member of.
func (l login) role() string {
	if l.readOnly {
		return reader(l.database)
	}
	return owner(l.database)
}

// roles that matter for what is wanted.
func (w wanted) roles() []string {
	all := make([]string, 0, 2*len(w.databases)+len(w.logins))
	for _, d := range w.databases {
		all = append(all, owner(d), reader(d))
	}
	for _, l := range w.logins {
		all = append(all, l.name)
	}
	for _, o := range w.others {
		all = append(all, o.name)
	}
	return all
}

// A step towards what is wanted.
type step struct {
	// of is the database or login that it is for.
	of subject

	// what it does, for people.
	what string

	// database to do it in, "" being the one that is always there.
	database string

	// statements, all in one transaction, or one alone.
	statements []string
	alone      bool

	// evict ends the sessions of this login instead, if it is set.
	evict string

	// password of the login is set.
	password bool

	// unused is the login of the spec that must not have taken the role into use since; otherwise nothing is done.
	unused string

	// extension means that only an extension depends on the step.
	extension bool
}

// A subject is a database or a login.
type subject struct {
	database, login string
}

// A problem that SQL cannot solve.
type problem struct {
	of   subject
	text string

	// extension means that only an extension has the problem.
	extension bool
}

// A plan of steps, in order, and the problems that block others. What is inside a database that does not exist yet is left to the
// next plan.
type plan struct {
	steps    []step
	problems []problem
}

func (p *plan) add(s step) { p.steps = append(p.steps, s) }

func (p *plan) refusef(of subject, format string, args ...any) {
	p.problems = append(p.problems, problem{of: of, text: fmt.Sprintf(format, args...)})
}

// blocks reports whether a subject has a problem that is not an extension's.
func (p *plan) blocks(of subject) bool {
	return slices.ContainsFunc(p.problems, func(q problem) bool { return q.of == of && !q.extension })
}

// open reports whether anything but extensions is left to do for a subject.
func (p *plan) open(of subject) bool {
	return p.blocks(of) || slices.ContainsFunc(p.steps, func(s step) bool { return s.of == of && !s.extension })
}

// draw up what to do with a server.
func draw(s *server, w wanted) plan {
	p := plan{}

	// Logins that are no longer desired come first: they hold nothing that others need.
	for _, name := range slices.Sorted(maps.Keys(s.roles)) {
		if s.roles[name].mark == markLogin && !w.names(name) {
			p.shut(s, name, "")
		}
	}
	for _, d := range w.databases {
		p.openUp(s, d, w.extensions)
	}
	for _, l := range w.logins {
		p.letIn(s, w, l)
	}
	for _, o := range w.others {
		p.rest(s, w, o)
	}
	return p
}

// shut a login out, unless it was taken into use since. Objects that it created stay.
func (p *plan) shut(s *server, name, unused string) {
	r := s.roles[name]
	var do []string
	if r.login {
		do = append(do, "ALTER ROLE "+id(name)+" NOLOGIN")
	}
	do = append(do, leaveAll(s, name, "")...)
	do = append(do, beginNowhere(s, name, "")...)
	if len(do) > 0 {
		p.add(step{of: subject{login: name}, what: fmt.Sprintf("shut out login %q", name), statements: do, unused: unused})
	}
	if len(do) > 0 || len(r.sessions) > 0 {
		p.add(step{of: subject{login: name}, what: fmt.Sprintf("end the sessions of login %q", name), evict: name, unused: unused})
	}
}

// leaveAll roles of ours but one.
func leaveAll(s *server, name, but string) []string {
	var do []string
	for _, of := range slices.Sorted(maps.Keys(s.roles[name].memberOf)) {
		mark := s.roles[of].mark
		if of != but && (strings.HasPrefix(mark, markOwner) || strings.HasPrefix(mark, markReader)) {
			do = append(do, leave(of, name))
		}
	}
	return do
}

// beginNowhere as another role but in one database.
func beginNowhere(s *server, name, but string) []string {
	var do []string
	for _, d := range slices.Sorted(maps.Keys(s.roles[name].begins)) {
		if d != but {
			do = append(do, beginAsItself(name, d))
		}
	}
	return do
}

// openUp a database: the database, its two roles and their rights.
func (p *plan) openUp(s *server, name string, extensions []string) {
	of := subject{database: name}
	for _, r := range rolesOf(name) {
		if is, ok := s.roles[r.name]; ok && is.mark != r.mark {
			p.refusef(of, "database %q needs a role %q, and one that Capstan did not make has this name: "+
				"rename or drop that role, or choose another name for the database", name, r.name)
			return
		}
	}
	d, there := s.databases[name]
	if there && d.owner != owner(name) {
		p.refusef(of, "database %q exists and belongs to role %q, nothing was changed: "+
			"give it to role %q, or choose another name", name, d.owner, owner(name))
		return
	}
	p.roles(s, name)
	if !there {
		p.add(step{
			of: of, what: fmt.Sprintf("make database %q", name), alone: true,
			statements: []string{"CREATE DATABASE " + id(name) + " OWNER " + id(owner(name))},
		})
	}
	var do []string
	if !there || d.public {
		do = append(do, "REVOKE CONNECT, TEMPORARY ON DATABASE "+id(name)+" FROM PUBLIC")
	}
	if !there || !d.read {
		do = append(do, "GRANT CONNECT ON DATABASE "+id(name)+" TO "+id(reader(name)))
	}
	if len(do) > 0 {
		p.add(step{of: of, what: fmt.Sprintf("close database %q to others", name), statements: do})
	}
	if d.inside != nil {
		p.furnish(name, d.inside, extensions)
	}
}

// A marked role has its mark as comment.
type marked struct{ name, mark string }

// rolesOf a database.
func rolesOf(name string) []marked {
	return []marked{{owner(name), markOwner + name}, {reader(name), markReader + name}}
}

// roles of a database.
func (p *plan) roles(s *server, name string) {
	of := subject{database: name}
	for _, r := range rolesOf(name) {
		if _, ok := s.roles[r.name]; !ok {
			p.add(step{of: of, what: fmt.Sprintf("make role %q", r.name), statements: createRole(r.name, r.mark)})
		}
	}
	if m := s.roles[s.self].memberOf[owner(name)]; !m.inherits || !m.becomes {
		p.add(step{
			of: of, what: fmt.Sprintf("act as role %q", owner(name)),
			statements: []string{enter(s.version, owner(name))},
		})
	}
}

// furnish a database: what its reader may see, and extensions.
func (p *plan) furnish(name string, in *inside, extensions []string) {
	of, to := subject{database: name}, " TO "+id(reader(name))
	var do []string
	for _, k := range []struct{ sort, grant string }{
		{"r", "SELECT ON TABLES"}, {"S", "SELECT ON SEQUENCES"}, {"n", "USAGE ON SCHEMAS"},
	} {
		if !strings.Contains(in.defaults, k.sort) {
			do = append(do, "ALTER DEFAULT PRIVILEGES FOR ROLE "+id(owner(name))+" GRANT "+k.grant+to)
		}
	}
	for _, g := range []struct {
		grant string
		on    []string
	}{
		{"USAGE ON SCHEMA ", in.schemas}, {"SELECT ON TABLE ", in.tables}, {"SELECT ON SEQUENCE ", in.sequences},
	} {
		if len(g.on) > 0 {
			do = append(do, "GRANT "+g.grant+strings.Join(g.on, ", ")+to)
		}
	}
	if len(do) > 0 {
		p.add(step{
			of: of, what: fmt.Sprintf("let role %q read in database %q", reader(name), name),
			database: name, statements: do,
		})
	}
	for _, x := range extensions {
		is, ok := in.extensions[x]
		switch {
		case !ok:
			p.problems = append(p.problems, problem{of: of, extension: true, text: fmt.Sprintf(
				"extension %q is not in the image of the server: take it out of extensions, or use an image that has it", x)})
		case is.installed, !is.trusted:
		default:
			p.add(step{
				of: of, what: fmt.Sprintf("make extension %q in database %q", x, name), database: name, extension: true,
				// As the owner, which can drop it then; in the schema that every session searches.
				statements: []string{
					"SET LOCAL ROLE " + id(owner(name)),
					"SET LOCAL search_path = public",
					"CREATE EXTENSION IF NOT EXISTS " + id(x) + " CASCADE",
				},
			})
		}
	}
}

// letIn a login.
func (p *plan) letIn(s *server, w wanted, l login) {
	of := subject{login: l.name}
	if l.name == s.self || slices.ContainsFunc(w.databases, func(d string) bool { return l.name == owner(d) || l.name == reader(d) }) {
		p.refusef(of, "login %q has the name of a role that Capstan needs for itself: choose another name", l.name)
		return
	}

	// Its database has a problem of its own then.
	if p.blocks(subject{database: l.database}) {
		return
	}
	r, there := s.roles[l.name]
	if there && r.mark != markLogin {
		p.refusef(of, "role %q exists and Capstan did not make it, nothing was changed: "+
			"rename or drop it, or choose another name for the login", l.name)
		return
	}
	if l.password == "" {
		return
	}
	do, password := standing(s, l), !there || !l.opens
	if len(do) > 0 || password {
		p.add(step{of: of, what: fmt.Sprintf("make login %q as asked", l.name), statements: do, password: password})
	}

	// Its sessions keep the rights that they began with.
	if len(leaveAll(s, l.name, l.role())) > 0 {
		p.add(step{of: of, what: fmt.Sprintf("end the sessions of login %q", l.name), evict: l.name})
	}
}

// standing is what makes a login what it should be, except its password.
func standing(s *server, l login) []string {
	r, there := s.roles[l.name]
	var do []string
	switch {
	case !there:
		do = append(do, "CREATE ROLE "+id(l.name)+" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT NOREPLICATION NOBYPASSRLS",
			"COMMENT ON ROLE "+id(l.name)+" IS "+text(markLogin))
	case !r.login || !r.inherit:
		do = append(do, "ALTER ROLE "+id(l.name)+" LOGIN INHERIT")
	}
	do = append(do, leaveAll(s, l.name, l.role())...)
	if m := r.memberOf[l.role()]; !m.inherits || !m.becomes {
		do = append(do, join(s.version, l.role(), l.name))
	}
	if begin := r.begins[l.database]; l.readOnly && begin != "" {
		do = append(do, beginAsItself(l.name, l.database))
	} else if !l.readOnly && begin != l.role() {
		do = append(do, beginAs(l.name, l.database, l.role()))
	}
	return append(do, beginNowhere(s, l.name, l.database)...)
}

// missing extensions of a database: those that only a superuser may create, and those that are not in the image.
func missing(in *inside, extensions []string) (have, not []string) {
	for _, x := range slices.Sorted(slices.Values(extensions)) {
		if in != nil && in.extensions[x].installed {
			have = append(have, x)
		} else {
			not = append(not, x)
		}
	}
	return have, not
}

// observe returns what is as the spec says.
func observe(s *server, w wanted, p plan) v1alpha1.AccessObservation {
	out := v1alpha1.AccessObservation{}
	for _, name := range slices.Sorted(slices.Values(w.databases)) {
		if d, ok := s.databases[name]; ok && !p.open(subject{database: name}) {
			have, not := missing(d.inside, w.extensions)
			out.Databases = append(out.Databases, v1alpha1.ObservedDatabase{Name: name, Extensions: have, Missing: not})
		}
	}
	for _, l := range w.logins {
		if r, ok := s.roles[l.name]; ok && r.login && l.opens && !p.open(subject{login: l.name}) {
			out.Logins = append(out.Logins, l.of)
		}
	}
	slices.Sort(out.Logins)
	out.Alternating = alternating(s, w, p)
	return out
}
