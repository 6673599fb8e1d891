// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/provider/access/internal/engine"
)

// ready is a server with everything that is asked for by asks.
func ready(version int, change ...func(*seen)) *seen {
	in := membership{inherits: true, becomes: true}
	s := &seen{
		version: version, self: "capstan",
		roles: map[string]role{
			"capstan":       {memberOf: map[string]membership{"orders_owner": in}},
			"orders_owner":  {mark: markOwner + "orders"},
			"orders_reader": {mark: markReader + "orders"},
			"api": {
				mark: markLogin, login: true, inherit: true, memberOf: map[string]membership{"orders_owner": in},
				begins: map[string]string{"orders": "orders_owner"},
			},
		},
		databases: map[string]database{"orders": {
			owner: "orders_owner", read: true,
			inside: &inside{defaults: "Snr", extensions: map[string]extension{"citext": {installed: true, trusted: true}}},
		}},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func asks(change ...func(*engine.Wanted)) engine.Wanted {
	w := engine.Wanted{
		Databases: []string{"orders"}, Extensions: []string{"citext"},
		Logins: []engine.Login{{Name: "api", Of: "api", Database: "orders", Password: "secret", Opens: true}},
	}
	for _, c := range change {
		c(&w)
	}
	return w
}

func TestDraw(t *testing.T) {
	nobody := func(w *engine.Wanted) { w.Logins = nil }
	cases := map[string]struct {
		reason   string
		server   *seen
		wanted   engine.Wanted
		steps    []string
		problems []string
	}{
		"Nothing": {reason: "What is as asked stays.", server: ready(170000), wanted: asks()},
		"Fresh": {
			reason: "From nothing; what is inside comes in the next plan.",
			server: &seen{version: 170000, self: "capstan", roles: map[string]role{"capstan": {}}}, wanted: asks(),
			steps: []string{
				`CREATE ROLE "orders_owner" NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT NOREPLICATION NOBYPASSRLS; COMMENT ON ROLE "orders_owner" IS 'capstan.dev: owner of database orders'`,
				`CREATE ROLE "orders_reader" NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT NOREPLICATION NOBYPASSRLS; COMMENT ON ROLE "orders_reader" IS 'capstan.dev: reader of database orders'`,
				`GRANT "orders_owner" TO CURRENT_USER WITH INHERIT TRUE, SET TRUE`,
				`alone: CREATE DATABASE "orders" OWNER "orders_owner"`,
				`REVOKE CONNECT, TEMPORARY ON DATABASE "orders" FROM PUBLIC; GRANT CONNECT ON DATABASE "orders" TO "orders_reader"`,
				`CREATE ROLE "api" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT NOREPLICATION NOBYPASSRLS; COMMENT ON ROLE "api" IS 'capstan.dev: login'; ` +
					`GRANT "orders_owner" TO "api" WITH INHERIT TRUE, SET TRUE; ALTER ROLE "api" IN DATABASE "orders" SET role = "orders_owner"; password`,
			},
		},
		"Version15": {
			reason: "Before 16 a grant has no options.",
			server: ready(150000, func(s *seen) { s.roles["capstan"].memberOf["orders_owner"] = membership{} }), wanted: asks(),
			steps: []string{`GRANT "orders_owner" TO CURRENT_USER`},
		},
		"Password": {
			reason: "A password that does not open is set, and nothing else.",
			server: ready(170000), wanted: asks(func(w *engine.Wanted) { w.Logins[0].Opens = false }), steps: []string{"password"},
		},
		"NoPassword": {
			reason: "Without a password to be had a login stays as it is.",
			server: ready(170000), wanted: asks(func(w *engine.Wanted) { w.Logins[0].Password, w.Logins[0].Opens = "", false }),
		},
		"Unwanted": {
			reason: "Who is no longer wanted is shut out, and keeps what it has made.", server: ready(170000), wanted: asks(nobody),
			steps: []string{
				`ALTER ROLE "api" NOLOGIN; REVOKE "orders_owner" FROM "api"; ALTER ROLE "api" IN DATABASE "orders" RESET role`,
				`evict api`,
			},
		},
		"ShutOut": {
			reason: "Once is enough.", wanted: asks(nobody),
			server: ready(170000, func(s *seen) { s.roles["api"] = role{mark: markLogin} }),
		},
		"StillThere": {
			reason: "A session that began just before is ended.", wanted: asks(nobody), steps: []string{"evict api"},
			server: ready(170000, func(s *seen) { s.roles["api"] = role{mark: markLogin, sessions: map[string]int{"orders": 1}} }),
		},
		"BecomesReader": {
			reason: "Who may only read loses what it had, also in sessions.", server: ready(170000),
			wanted: asks(func(w *engine.Wanted) { w.Logins[0].ReadOnly = true }),
			steps: []string{
				`REVOKE "orders_owner" FROM "api"; GRANT "orders_reader" TO "api" WITH INHERIT TRUE, SET TRUE; ALTER ROLE "api" IN DATABASE "orders" RESET role`,
				`evict api`,
			},
		},
		"OtherRoles": {
			reason: "Memberships in roles that are not ours are nobody's business.", wanted: asks(),
			server: ready(170000, func(s *seen) {
				s.roles["dba"] = role{}
				s.roles["api"].memberOf["dba"] = membership{}
			}),
		},
		"Opened": {
			reason: "A database that somebody opened is closed again.", wanted: asks(),
			server: ready(170000, func(s *seen) {
				d := s.databases["orders"]
				d.public = true
				s.databases["orders"] = d
			}),
			steps: []string{`REVOKE CONNECT, TEMPORARY ON DATABASE "orders" FROM PUBLIC`},
		},
		"Inside": {
			reason: "What the reader does not see, and an extension that the provider may make.", wanted: asks(),
			server: ready(170000, func(s *seen) {
				s.databases["orders"] = database{owner: "orders_owner", read: true, inside: &inside{
					defaults: "nS", tables: []string{`"public"."a"`, `"public"."b"`}, extensions: map[string]extension{"citext": {trusted: true}},
				}}
			}),
			steps: []string{
				`orders: ALTER DEFAULT PRIVILEGES FOR ROLE "orders_owner" GRANT SELECT ON TABLES TO "orders_reader"; GRANT SELECT ON TABLE "public"."a", "public"."b" TO "orders_reader"`,
				`orders: SET LOCAL ROLE "orders_owner"; SET LOCAL search_path = public; CREATE EXTENSION IF NOT EXISTS "citext" CASCADE`,
			},
		},
		"Untrusted": {
			reason: "Extensions for superusers are left to the member that leads.", wanted: asks(),
			server: ready(170000, func(s *seen) { s.databases["orders"].inside.extensions["citext"] = extension{} }),
		},
		"NoExtension": {
			reason: "What the image does not have is a problem, and holds up nothing else.", wanted: asks(func(w *engine.Wanted) { w.Logins[0].Opens = false }),
			server: ready(170000, func(s *seen) { delete(s.databases["orders"].inside.extensions, "citext") }),
			steps:  []string{"password"}, problems: []string{`extension "citext" is not in the image of the server: take it out of extensions, or use an image that has it`},
		},
		"StrangeOwner": {
			reason: "A database of another owner is left alone, and so are its logins.", wanted: asks(func(w *engine.Wanted) { w.Logins[0].Opens = false }),
			server: ready(170000, func(s *seen) { s.databases["orders"] = database{owner: "dba"} }),
			problems: []string{
				`database "orders" exists and belongs to role "dba", nothing was changed: give it to role "orders_owner", or choose another name`,
			},
		},
		"StrangeLogin": {
			reason: "A role that we did not make is left alone.", wanted: asks(),
			server:   ready(170000, func(s *seen) { s.roles["api"] = role{login: true} }),
			problems: []string{`role "api" exists and Capstan did not make it, nothing was changed: rename or drop it, or choose another name for the login`},
		},
		"Self": {
			reason: "Nobody becomes the provider.", server: ready(170000), wanted: asks(func(w *engine.Wanted) {
				w.Logins = append(w.Logins, engine.Login{Name: "capstan", Database: "orders", Password: "x"})
			}),
			problems: []string{`login "capstan" has the name of a role that Capstan needs for itself: choose another name`},
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
		text := strings.Join(do, "; ")
		if s.Alone {
			text = "alone: " + text
		}
		if s.Database != "" {
			text = s.Database + ": " + text
		}
		steps = append(steps, text)
	}
	return steps
}

// FuzzQuoting shows that nothing leaves its quotes: a scanner that knows PostgreSQL's rules finds one identifier, or one
// constant, and its value.
func FuzzQuoting(f *testing.F) {
	for _, s := range []string{"orders", `a"b`, `"; DROP TABLE x; --`, `it's`, `\'; x`, `E'\\`, "tab\tnew\n", "ü", `\`, `'`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clean := strings.ReplaceAll(s, "\x00", "")
		got := id(s)
		if inner := strings.ReplaceAll(got[1:len(got)-1], `""`, ""); got[0] != '"' || got[len(got)-1] != '"' || strings.Contains(inner, `"`) {
			t.Errorf("id(%q) leaves its quotes: %s", s, got)
		}
		if v := strings.ReplaceAll(got[1:len(got)-1], `""`, `"`); v != clean {
			t.Errorf("id(%q) is %q", s, v)
		}
		got = strings.TrimPrefix(text(s), " ")
		escaped := strings.HasPrefix(got, "E")
		got = strings.TrimPrefix(got, "E")
		var v strings.Builder
		for i := 1; i < len(got)-1; i++ {
			switch c := got[i]; {
			case c == '\'' && got[i+1] == '\'' && i+1 < len(got)-1, c == '\\' && escaped && i+1 < len(got)-1:
				i++
				v.WriteByte(got[i])
			case c == '\'', c == '\\':
				t.Fatalf("text(%q) leaves its quotes: %s", s, got)
			default:
				v.WriteByte(c)
			}
		}
		if v.String() != clean {
			t.Errorf("text(%q) is %q", s, v.String())
		}
	})
}
