// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/engine"
)

// roleOf a login is the one that it is a member of.
func roleOf(l engine.Login) string {
	if l.ReadOnly {
		return reader(l.Database)
	}
	return owner(l.Database)
}

// rolesFor what is wanted.
func rolesFor(w engine.Wanted) []string {
	all := w.Names()
	for _, d := range w.Databases {
		all = append(all, owner(d), reader(d))
	}
	return all
}

// Ours are the names of logins with our mark, sorted.
func (s *seen) Ours() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.roles)) {
		if s.roles[name].mark == markLogin {
			out = append(out, name)
		}
	}
	return out
}

// Role of a name.
func (s *seen) Role(name string) engine.Role {
	r, there := s.roles[name]
	out := engine.Role{There: there, Ours: there && r.mark == markLogin, Open: r.login}
	for _, n := range r.sessions {
		out.Sessions += n
	}
	return out
}

// Stands reports whether a login is as asked, except for its password.
func (s *seen) Stands(l engine.Login) bool {
	r, ok := s.roles[l.Name]
	return ok && r.mark == markLogin && r.login && r.memberOf[roleOf(l)].inherits
}

// Database as a status has it, if it is there.
func (s *seen) Database(name string, extensions []string) (v1alpha1.ObservedDatabase, bool) {
	d, ok := s.databases[name]
	have, not := missing(d.inside, extensions)
	return v1alpha1.ObservedDatabase{Name: name, Extensions: have, Missing: not}, ok
}

// Shut a login out, unless it was taken into use since. Objects that it created stay.
func (s *seen) Shut(p *engine.Plan, name, unused string) {
	r := s.roles[name]
	var do []string
	if r.login {
		do = append(do, "ALTER ROLE "+id(name)+" NOLOGIN")
	}
	do = append(do, leaveAll(s, name, "")...)
	do = append(do, beginNowhere(s, name, "")...)
	if len(do) > 0 {
		p.Add(engine.Step{Of: engine.Subject{Login: name}, What: fmt.Sprintf("shut out login %q", name), Statements: do, Unused: unused})
	}
	if len(do) > 0 || len(r.sessions) > 0 {
		p.Add(engine.Step{Of: engine.Subject{Login: name}, What: fmt.Sprintf("end the sessions of login %q", name), Evict: name, Unused: unused})
	}
}

// leaveAll roles of ours but one.
func leaveAll(s *seen, name, but string) []string {
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
func beginNowhere(s *seen, name, but string) []string {
	var do []string
	for _, d := range slices.Sorted(maps.Keys(s.roles[name].begins)) {
		if d != but {
			do = append(do, beginAsItself(name, d))
		}
	}
	return do
}

// OpenUp a database: the database, its two roles and their rights.
func (s *seen) OpenUp(p *engine.Plan, name string, extensions []string) {
	of := engine.Subject{Database: name}
	for _, r := range rolesOf(name) {
		if is, ok := s.roles[r.name]; ok && is.mark != r.mark {
			p.Refusef(of, "database %q needs a role %q, and one that Capstan did not make has this name: "+
				"rename or drop that role, or choose another name for the database", name, r.name)
			return
		}
	}
	d, there := s.databases[name]
	if there && d.owner != owner(name) {
		p.Refusef(of, "database %q exists and belongs to role %q, nothing was changed: "+
			"give it to role %q, or choose another name", name, d.owner, owner(name))
		return
	}
	s.makeRoles(p, name)
	if !there {
		p.Add(engine.Step{
			Of: of, What: fmt.Sprintf("make database %q", name), Alone: true,
			Statements: []string{"CREATE DATABASE " + id(name) + " OWNER " + id(owner(name))},
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
		p.Add(engine.Step{Of: of, What: fmt.Sprintf("close database %q to others", name), Statements: do})
	}
	if d.inside != nil {
		furnish(p, name, d.inside, extensions)
	}
}

// A marked role has its mark as comment.
type marked struct{ name, mark string }

// rolesOf a database.
func rolesOf(name string) []marked {
	return []marked{{owner(name), markOwner + name}, {reader(name), markReader + name}}
}

// makeRoles of a database.
func (s *seen) makeRoles(p *engine.Plan, name string) {
	of := engine.Subject{Database: name}
	for _, r := range rolesOf(name) {
		if _, ok := s.roles[r.name]; !ok {
			p.Add(engine.Step{Of: of, What: fmt.Sprintf("make role %q", r.name), Statements: createRole(r.name, r.mark)})
		}
	}
	if m := s.roles[s.self].memberOf[owner(name)]; !m.inherits || !m.becomes {
		p.Add(engine.Step{
			Of: of, What: fmt.Sprintf("act as role %q", owner(name)),
			Statements: []string{enter(s.version, owner(name))},
		})
	}
}

// furnish a database: what its reader may see, and extensions.
func furnish(p *engine.Plan, name string, in *inside, extensions []string) {
	of, to := engine.Subject{Database: name}, " TO "+id(reader(name))
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
		p.Add(engine.Step{
			Of: of, What: fmt.Sprintf("let role %q read in database %q", reader(name), name),
			Database: name, Statements: do,
		})
	}
	for _, x := range extensions {
		is, ok := in.extensions[x]
		switch {
		case !ok:
			p.Problems = append(p.Problems, engine.Problem{Of: of, Extension: true, Text: fmt.Sprintf(
				"extension %q is not in the image of the server: take it out of extensions, or use an image that has it", x)})
		case is.installed, !is.trusted:
		default:
			p.Add(engine.Step{
				Of: of, What: fmt.Sprintf("make extension %q in database %q", x, name), Database: name, Extension: true,
				// As the owner, which can drop it then; in the schema that every session searches.
				Statements: []string{
					"SET LOCAL ROLE " + id(owner(name)),
					"SET LOCAL search_path = public",
					"CREATE EXTENSION IF NOT EXISTS " + id(x) + " CASCADE",
				},
			})
		}
	}
}

// LetIn a login.
func (s *seen) LetIn(p *engine.Plan, w engine.Wanted, l engine.Login) {
	of := engine.Subject{Login: l.Name}
	if l.Name == s.self || slices.ContainsFunc(w.Databases, func(d string) bool { return l.Name == owner(d) || l.Name == reader(d) }) {
		p.Refusef(of, "login %q has the name of a role that Capstan needs for itself: choose another name", l.Name)
		return
	}

	// Its database has a problem of its own then.
	if p.Blocks(engine.Subject{Database: l.Database}) {
		return
	}
	r, there := s.roles[l.Name]
	if there && r.mark != markLogin {
		p.Refusef(of, "role %q exists and Capstan did not make it, nothing was changed: "+
			"rename or drop it, or choose another name for the login", l.Name)
		return
	}
	if l.Password == "" {
		return
	}
	do, password := standing(s, l), !there || !l.Opens
	if len(do) > 0 || password {
		p.Add(engine.Step{Of: of, What: fmt.Sprintf("make login %q as asked", l.Name), Statements: do, Password: password})
	}

	// Its sessions keep the rights that they began with.
	if len(leaveAll(s, l.Name, roleOf(l))) > 0 {
		p.Add(engine.Step{Of: of, What: fmt.Sprintf("end the sessions of login %q", l.Name), Evict: l.Name})
	}
}

// standing is what makes a login what it should be, except its password.
func standing(s *seen, l engine.Login) []string {
	r, there := s.roles[l.Name]
	var do []string
	switch {
	case !there:
		do = append(do, "CREATE ROLE "+id(l.Name)+" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT NOREPLICATION NOBYPASSRLS",
			"COMMENT ON ROLE "+id(l.Name)+" IS "+text(markLogin))
	case !r.login || !r.inherit:
		do = append(do, "ALTER ROLE "+id(l.Name)+" LOGIN INHERIT")
	}
	do = append(do, leaveAll(s, l.Name, roleOf(l))...)
	if m := r.memberOf[roleOf(l)]; !m.inherits || !m.becomes {
		do = append(do, join(s.version, roleOf(l), l.Name))
	}
	if begin := r.begins[l.Database]; l.ReadOnly && begin != "" {
		do = append(do, beginAsItself(l.Name, l.Database))
	} else if !l.ReadOnly && begin != roleOf(l) {
		do = append(do, beginAs(l.Name, l.Database, roleOf(l)))
	}
	return append(do, beginNowhere(s, l.Name, l.Database)...)
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
