// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"fmt"
	"maps"
	"slices"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/provider/access/internal/engine"
)

var (
	// serversOwn databases are never touched.
	serversOwn = []string{"information_schema", "mysql", "performance_schema", "sys"}

	// platformsOwn logins are never a consumer's.
	platformsOwn = append(mysqlmember.Accounts(), "root")
)

// rightsOf a login in its database.
func rightsOf(l engine.Login) []string {
	if l.ReadOnly {
		return readOnly
	}
	return readWrite
}

// Ours are the names of logins with our mark, sorted.
func (s *seen) Ours() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.logins)) {
		if s.logins[name].ours {
			out = append(out, name)
		}
	}
	return out
}

// Role of a name.
func (s *seen) Role(name string) engine.Role {
	l, there := s.logins[name]
	return engine.Role{There: there, Ours: l.ours, Open: l.ours && !l.locked, Sessions: l.sessions}
}

// Stands reports whether a login is as asked, except for its password.
func (s *seen) Stands(l engine.Login) bool {
	is := s.logins[l.Name]
	return is.ours && !is.locked && len(is.strange) == 0 && len(without(rightsOf(l), is.rights[l.Database])) == 0
}

// Database as a status has it, if it is there.
func (s *seen) Database(name string, _ []string) (v1alpha1.ObservedDatabase, bool) {
	return v1alpha1.ObservedDatabase{Name: name}, s.databases[name]
}

// OpenUp a database. One that exists is used as it is.
func (s *seen) OpenUp(p *engine.Plan, name string, _ []string) {
	of := engine.Subject{Database: name}
	if slices.Contains(serversOwn, name) {
		p.Refusef(of, "database %q is the server's own: choose another name", name)
		return
	}
	if !s.databases[name] {
		p.Add(engine.Step{
			Of: of, What: fmt.Sprintf("make database %q", name),
			Statements: []string{"CREATE DATABASE " + id(name) + " CHARACTER SET utf8mb4"},
		})
	}
}

// Shut a login out, unless it was taken into use since. It keeps its rights: what it made runs with them.
func (s *seen) Shut(p *engine.Plan, name, unused string) {
	l := s.logins[name]
	if !l.locked {
		p.Add(engine.Step{
			Of: engine.Subject{Login: name}, What: fmt.Sprintf("shut out login %q", name),
			Statements: []string{"ALTER USER " + account(name) + " ACCOUNT LOCK"}, Unused: unused,
		})
	}
	if !l.locked || l.sessions > 0 {
		p.Add(engine.Step{Of: engine.Subject{Login: name}, What: fmt.Sprintf("end the sessions of login %q", name), Evict: name, Unused: unused})
	}
}

// LetIn a login.
func (s *seen) LetIn(p *engine.Plan, _ engine.Wanted, l engine.Login) {
	of := engine.Subject{Login: l.Name}
	if l.Name == s.self || slices.Contains(platformsOwn, l.Name) {
		p.Refusef(of, "login %q has the name of an account that Capstan needs for itself: choose another name", l.Name)
		return
	}

	// Its database has a problem of its own then.
	if p.Blocks(engine.Subject{Database: l.Database}) {
		return
	}
	is := s.logins[l.Name]
	if len(is.strange) > 0 {
		p.Refusef(of, "account %s exists and Capstan did not make it, nothing was changed: "+
			"rename or drop it, or choose another name for the login", text(l.Name)+"@"+text(is.strange[0]))
		return
	}
	if l.Password == "" {
		return
	}
	do, fewer := s.standing(l)
	password := !is.ours || is.locked || !l.Opens
	if len(do) > 0 || password {
		p.Add(engine.Step{Of: of, What: fmt.Sprintf("make login %q as asked", l.Name), Statements: do, Password: password})
	}

	// Its sessions keep the rights that they began with.
	if fewer {
		p.Add(engine.Step{Of: of, What: fmt.Sprintf("end the sessions of login %q", l.Name), Evict: l.Name})
	}
}

// standing is what makes a login what it should be, except its password, and whether it has fewer rights then.
func (s *seen) standing(l engine.Login) (do []string, fewer bool) {
	is := s.logins[l.Name]
	switch {
	case !is.ours:
		do = append(do, create(l.Name))
	case !is.encrypted:
		do = append(do, "ALTER USER "+account(l.Name)+" REQUIRE SSL")
	}
	for _, database := range slices.Sorted(maps.Keys(is.rights)) {
		has := is.rights[database]
		if database == l.Database {
			has = without(has, rightsOf(l))
		}
		if len(has) > 0 {
			do, fewer = append(do, revoke(has, database, l.Name)), true
		}
	}
	if lacks := without(rightsOf(l), is.rights[l.Database]); len(lacks) > 0 {
		do = append(do, grant(lacks, l.Database, l.Name))
	}
	return do, fewer
}
