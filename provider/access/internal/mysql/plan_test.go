// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/engine"
)

// well is a login that is as asked by asks, and everything is what it may.
func well(change ...func(*login)) login {
	l := login{ours: true, encrypted: true, rights: map[string][]string{"orders_eu": readWrite}}
	for _, c := range change {
		c(&l)
	}
	return l
}

const everything = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, " +
	"CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER"

// ready is a server with everything that is asked for by asks.
func ready(change ...func(*seen)) *seen {
	s := &seen{self: "capstan", logins: map[string]login{"api": well()}, databases: map[string]bool{"orders_eu": true}}
	for _, c := range change {
		c(s)
	}
	return s
}

// with a login as it is.
func with(name string, l login) func(*seen) { return func(s *seen) { s.logins[name] = l } }

func asks(change ...func(*engine.Wanted)) engine.Wanted {
	w := engine.Wanted{
		Databases: []string{"orders_eu"},
		Logins:    []engine.Login{{Name: "api", Of: "api", Database: "orders_eu", Password: "secret", Opens: true}},
	}
	for _, c := range change {
		c(&w)
	}
	return w
}

const (
	madeAPI = "CREATE USER 'api'@'%' IDENTIFIED WITH caching_sha2_password AS " +
		"0x2441243030352454484953495341434f4d42494e4154494f4e4f46494e56414c494453414c54414e4450415353574f5244544841544d5553544e455645524252424555534544 " +
		`REQUIRE SSL ACCOUNT LOCK ATTRIBUTE '{"capstan.dev": "login"}'`
	grantedAPI = "GRANT " + everything + " ON `orders_eu`.* TO 'api'@'%'"
)

func TestDraw(t *testing.T) {
	nobody := func(w *engine.Wanted) { w.Logins = nil }
	reads := func(w *engine.Wanted) { w.Logins[0].ReadOnly = true }
	called := func(name string) func(*engine.Wanted) {
		return func(w *engine.Wanted) {
			w.Logins = append(w.Logins, engine.Login{Name: name, Of: name, Database: "orders_eu", Password: "x"})
		}
	}
	cases := map[string]struct {
		reason   string
		server   *seen
		wanted   engine.Wanted
		steps    []string
		problems []string
	}{
		"Nothing": {reason: "What is as asked stays.", server: ready(), wanted: asks()},
		"Fresh": {
			reason: "From nothing: nobody can log in before the password is set, and then with all rights.",
			server: &seen{self: "capstan"}, wanted: asks(),
			steps: []string{
				"CREATE DATABASE `orders_eu` CHARACTER SET utf8mb4",
				madeAPI + "; " + grantedAPI + "; password",
			},
		},
		"CutOff": {
			reason: "What was cut off goes on from where it is.",
			server: ready(with("api", well(func(l *login) { l.locked, l.rights = true, nil }))), wanted: asks(),
			steps: []string{grantedAPI + "; password"},
		},
		"Password": {
			reason: "A password that does not open is set, and nothing else.",
			server: ready(), wanted: asks(func(w *engine.Wanted) { w.Logins[0].Opens = false }), steps: []string{"password"},
		},
		"NoPassword": {
			reason: "Without a password to be had a login stays as it is.",
			server: ready(), wanted: asks(func(w *engine.Wanted) { w.Logins[0].Password, w.Logins[0].Opens = "", false }),
		},
		"Locked": {
			reason: "One that is locked gets its password again, and with it the way in.",
			server: ready(with("api", well(func(l *login) { l.locked = true }))), wanted: asks(), steps: []string{"password"},
		},
		"Plain": {
			reason: "Nobody logs in without TLS.",
			server: ready(with("api", well(func(l *login) { l.encrypted = false }))), wanted: asks(),
			steps: []string{"ALTER USER 'api'@'%' REQUIRE SSL"},
		},
		"Unwanted": {
			reason: "Who is no longer wanted is shut out, and keeps what its views and triggers need.", server: ready(), wanted: asks(nobody),
			steps: []string{"ALTER USER 'api'@'%' ACCOUNT LOCK", "evict api"},
		},
		"ShutOut": {
			reason: "Once is enough.", wanted: asks(nobody), server: ready(with("api", well(func(l *login) { l.locked = true }))),
		},
		"StillThere": {
			reason: "A session that began just before is ended.", wanted: asks(nobody), steps: []string{"evict api"},
			server: ready(with("api", well(func(l *login) { l.locked, l.sessions = true, 1 }))),
		},
		"BecomesReader": {
			reason: "Who may only read loses what it had, also in sessions.", server: ready(), wanted: asks(reads),
			steps: []string{
				"REVOKE INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, CREATE VIEW, " +
					"CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER ON `orders_eu`.* FROM 'api'@'%'",
				"evict api",
			},
		},
		"Reader": {
			reason: "Who reads is given no more.", wanted: asks(reads), server: ready(with("api", well(func(l *login) { l.rights = nil }))),
			steps: []string{"GRANT SELECT, SHOW VIEW ON `orders_eu`.* TO 'api'@'%'"},
		},
		"Moves": {
			reason: "Rights in another database go, and its sessions with them.", wanted: asks(),
			server: ready(with("api", well(func(l *login) { l.rights = map[string][]string{"billing": readOnly} }))),
			steps:  []string{"REVOKE SELECT, SHOW VIEW ON `billing`.* FROM 'api'@'%'; " + grantedAPI, "evict api"},
		},
		"GivesOn": {
			reason: "Nobody gives rights to others.", wanted: asks(),
			server: ready(with("api", well(func(l *login) {
				l.rights = map[string][]string{"orders_eu": append([]string{grantOption}, readWrite...)}
			}))),
			steps: []string{"REVOKE GRANT OPTION ON `orders_eu`.* FROM 'api'@'%'", "evict api"},
		},
		"ServersOwn": {
			reason: "Nothing of the server's own databases is touched, and nobody gets rights in them.", server: ready(),
			wanted: asks(func(w *engine.Wanted) {
				w.Databases = append(w.Databases, "mysql")
				w.Logins = append(w.Logins, engine.Login{Name: "dba", Of: "dba", Database: "mysql", Password: "x"})
			}),
			problems: []string{`database "mysql" is the server's own: choose another name`},
		},
		"StrangeLogin": {
			reason: "A login that we did not make is left alone.", wanted: asks(), server: ready(with("api", login{strange: []string{"%"}})),
			problems: []string{`account 'api'@'%' exists and Capstan did not make it, nothing was changed: rename or drop it, or choose another name for the login`},
		},
		"StrangeHost": {
			reason: "Clients from its host would meet another account.", wanted: asks(),
			server:   ready(with("api", well(func(l *login) { l.strange = []string{"10.0.0.0/255.0.0.0"} }))),
			problems: []string{`account 'api'@'10.0.0.0/255.0.0.0' exists and Capstan did not make it, nothing was changed: rename or drop it, or choose another name for the login`},
		},
		"Self": {
			reason: "Nobody becomes the provider.", server: ready(), wanted: asks(called("capstan")),
			problems: []string{`login "capstan" has the name of an account that Capstan needs for itself: choose another name`},
		},
		"Platform": {
			reason: "Nobody takes the name of an account of the platform, whether it is there or not.", server: ready(), wanted: asks(called("capstan_replication")),
			problems: []string{`login "capstan_replication" has the name of an account that Capstan needs for itself: choose another name`},
		},
		"Backup": {
			reason: "The account that copies data for backups is one, too.", server: ready(), wanted: asks(called("capstan_backup")),
			problems: []string{`login "capstan_backup" has the name of an account that Capstan needs for itself: choose another name`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := engine.Draw(tc.server, tc.wanted)
			var problems []string
			for _, q := range p.Problems {
				problems = append(problems, q.Text)
			}
			if diff := cmp.Diff(tc.steps, written(p)); diff != "" {
				t.Errorf("\n%s\nsteps: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.problems, problems); diff != "" {
				t.Errorf("\n%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// written steps of a plan, each as a line.
func written(p engine.Plan) []string {
	var steps []string
	for _, s := range p.Steps {
		do := s.Statements
		if s.Password {
			do = append(do, "password")
		}
		if s.Evict != "" {
			do = append(do, "evict "+s.Evict)
		}
		steps = append(steps, strings.Join(do, "; "))
	}
	return steps
}

// TestRest draws up what becomes of the login that is not in use. The cases of when are those of PostgreSQL; here is what.
func TestRest(t *testing.T) {
	shut, end := "ALTER USER 'api-b'@'%' ACCOUNT LOCK", "evict api-b"
	staged := engine.Other{Token: "2-3f2a9c1b", Login: engine.Login{Staged: true, Password: "next"}}
	accepted := staged
	accepted.Opens = true
	closed := well(func(l *login) { l.locked = true })
	cases := map[string]struct {
		reason string
		login  *login
		other  engine.Other
		steps  []string
		told   v1alpha1.AlternatingLogin
	}{
		"NeverRotated": {reason: "There is no other login before the first rotation."},
		"Staged": {
			reason: "The other login is made before anybody hears of it.", other: staged,
			steps: []string{strings.ReplaceAll(madeAPI+"; "+grantedAPI+"; password", "'api'", "'api-b'")},
		},
		"StagedAgain": {reason: "One that was shut out has its rights, and gets the new password.", login: &closed, other: staged, steps: []string{"password"}},
		"Accepted":    {reason: "It works, which is told.", login: new(well()), other: accepted, told: v1alpha1.AlternatingLogin{Accepted: "2-3f2a9c1b"}},
		"Overlap": {
			reason: "After the flip clients still have it.", login: new(well(func(l *login) { l.sessions = 2 })),
			other: engine.Other{Overlaps: true}, told: v1alpha1.AlternatingLogin{Retiring: "api-b"},
		},
		"Bound":       {reason: "The overlap is over, whoever uses it.", login: new(well(func(l *login) { l.sessions = 2 })), steps: []string{shut, end}},
		"StagedBound": {reason: "Who had it before is shut out before it gets another password.", login: new(well()), other: staged, steps: []string{shut, end}},
		"Ended":       {reason: "Nothing is left to be done, and what it made runs on.", login: &closed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := ready()
			if tc.login != nil {
				s.logins["api-b"] = *tc.login
			}
			w := asks()
			o := tc.other
			o.Name, o.Of, o.Database = "api-b", "api", "orders_eu"
			w.Others = []engine.Other{o}
			p := engine.Draw(s, w)
			if diff := cmp.Diff(tc.steps, written(p)); diff != "" {
				t.Errorf("\n%s\nsteps: -want, +got:\n%s", tc.reason, diff)
			}
			want := tc.told
			want.Name, want.Active = "api", "api"
			if diff := cmp.Diff([]v1alpha1.AlternatingLogin{want}, engine.Observe(s, w, p).Alternating); diff != "" {
				t.Errorf("\n%s\ntold: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStands(t *testing.T) {
	cases := map[string]struct {
		reason string
		login  login
		want   bool
	}{
		"Well":     {reason: "Its password can be tried.", login: well(), want: true},
		"Absent":   {reason: "There is nothing to try."},
		"Locked":   {reason: "The server would refuse every password.", login: well(func(l *login) { l.locked = true })},
		"Stranger": {reason: "Another account would answer.", login: well(func(l *login) { l.strange = []string{"localhost"} })},
		"NoRights": {reason: "It is not as asked yet.", login: well(func(l *login) { l.rights = nil })},
		"More":     {reason: "Rights that are too many are taken away, whether it opens or not.", login: well(func(l *login) { l.rights["billing"] = readOnly }), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ready(with("api", tc.login)).Stands(asks().Logins[0]); got != tc.want {
				t.Errorf("\n%s\nStands(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// FuzzQuoting shows that nothing leaves its quotes: a scanner that knows MySQL's rules finds one identifier, or one constant, and
// its value.
func FuzzQuoting(f *testing.F) {
	for _, s := range []string{"orders", "a`b", "`; DROP TABLE x; -- ", `it's`, `\'; x`, `\\`, "tab\tnew\n", "ü", `\`, `'`, `"`, ``, "a\x00b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clean := strings.ReplaceAll(s, "\x00", "")
		for _, tc := range []struct {
			quoted  string
			quote   byte
			escapes bool
		}{{id(s), '`', false}, {text(s), '\'', true}} {
			q := tc.quoted
			if len(q) < 2 || q[0] != tc.quote || q[len(q)-1] != tc.quote {
				t.Fatalf("%q is not quoted: %s", s, q)
			}
			var v strings.Builder
			for i := 1; i < len(q)-1; i++ {
				switch c := q[i]; {
				case i+1 < len(q)-1 && (c == tc.quote && q[i+1] == tc.quote || c == '\\' && q[i+1] == '\\' && tc.escapes):
					i++
					v.WriteByte(q[i])
				case c == tc.quote, c == '\\' && tc.escapes:
					t.Fatalf("%q leaves its quotes: %s", s, q)
				default:
					v.WriteByte(c)
				}
			}
			if v.String() != clean {
				t.Errorf("%q is %q", s, v.String())
			}
		}
	})
}
