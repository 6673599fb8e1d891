// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/engine"
)

// TestRest draws up what becomes of the role that is not in use.
func TestRest(t *testing.T) {
	const (
		make_ = `CREATE ROLE "api-b" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT NOREPLICATION NOBYPASSRLS; COMMENT ON ROLE "api-b" IS 'capstan.dev: login'; ` +
			`GRANT "orders_owner" TO "api-b" WITH INHERIT TRUE, SET TRUE; ALTER ROLE "api-b" IN DATABASE "orders" SET role = "orders_owner"; password`
		again = `ALTER ROLE "api-b" LOGIN INHERIT; GRANT "orders_owner" TO "api-b" WITH INHERIT TRUE, SET TRUE; ` +
			`ALTER ROLE "api-b" IN DATABASE "orders" SET role = "orders_owner"; password`
		shut = `ALTER ROLE "api-b" NOLOGIN; REVOKE "orders_owner" FROM "api-b"; ALTER ROLE "api-b" IN DATABASE "orders" RESET role`
		end  = "evict api-b"
	)
	in := membership{inherits: true, becomes: true}
	open := role{mark: markLogin, login: true, inherit: true, memberOf: map[string]membership{"orders_owner": in}, begins: map[string]string{"orders": "orders_owner"}}
	busy := open
	busy.sessions = map[string]int{"orders": 2}
	closed := role{mark: markLogin, inherit: true}
	ending := closed
	ending.sessions = map[string]int{"orders": 1}
	staged := engine.Other{Token: "2-3f2a9c1b", Login: engine.Login{Staged: true, Password: "next"}}
	with := func(o engine.Other, edit ...func(*engine.Other)) engine.Other {
		for _, e := range edit {
			e(&o)
		}
		return o
	}
	overlaps := func(o *engine.Other) { o.Overlaps = true }
	idle := func(o *engine.Other) { o.Idle = true }
	whenIdle := func(o *engine.Other) { o.WhenIdle = true }
	opens := func(o *engine.Other) { o.Opens = true }
	cases := map[string]struct {
		reason string
		role   *role
		other  engine.Other
		steps  []string
		told   v1alpha1.AlternatingLogin
	}{
		"NeverRotated": {reason: "There is no other role before the first rotation.", other: engine.Other{}},
		"Staged":       {reason: "The other role is made before anybody hears of it.", other: staged, steps: []string{make_}},
		"StagedAgain":  {reason: "One that was shut out gets the new password.", role: &closed, other: staged, steps: []string{again}},
		"Accepted": {
			reason: "It works, which is told.", role: &open, other: with(staged, opens),
			told: v1alpha1.AlternatingLogin{Accepted: "2-3f2a9c1b"},
		},
		"Overlap": {
			reason: "After the flip clients still have it.", role: &busy, other: with(engine.Other{}, overlaps, whenIdle),
			told: v1alpha1.AlternatingLogin{Retiring: "api-b"},
		},
		"OverlapIdle": {
			reason: "Where sessions elsewhere do not show here it is kept to the end.", role: &open, other: with(engine.Other{}, overlaps, idle),
			told: v1alpha1.AlternatingLogin{Retiring: "api-b"},
		},
		"Idle":   {reason: "Nobody used it for a while.", role: &open, other: with(engine.Other{}, overlaps, idle, whenIdle), steps: []string{shut, end}},
		"Bound":  {reason: "The overlap is over, whoever uses it.", role: &busy, other: engine.Other{}, steps: []string{shut, end}},
		"Ending": {reason: "A session that did not end yet is ended again.", role: &ending, other: engine.Other{}, steps: []string{end}},
		"Ended":  {reason: "Nothing is left to be done.", role: &closed, other: engine.Other{}},
		"StagedInOverlap": {
			reason: "Whoever still has it keeps it, and the next rotation waits.", role: &busy, other: with(staged, overlaps, whenIdle),
			told: v1alpha1.AlternatingLogin{Retiring: "api-b"},
		},
		"StagedBound": {
			reason: "Who had it before is shut out before it gets another password.", role: &busy, other: staged, steps: []string{shut, end},
		},
		"StagedEnding": {reason: "As long as a session is there it gets none.", role: &ending, other: staged, steps: []string{end}},
		"AcceptedInOverlap": {
			reason: "What was accepted stays so while the overlap before is still on record.", role: &open, other: with(staged, overlaps, opens),
			told: v1alpha1.AlternatingLogin{Accepted: "2-3f2a9c1b"},
		},
		"Unknown": {reason: "While the Secret does not say who is in use nobody is shut out.", role: &busy, other: engine.Other{Unknown: true}, told: v1alpha1.AlternatingLogin{Retiring: "api-b"}},
		"Stranger": {
			reason: "A role of somebody else is left alone.", role: &role{login: true}, other: engine.Other{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := ready(170000)
			if tc.role != nil {
				s.roles["api-b"] = *tc.role
			}
			w := asks()
			o := tc.other
			o.Name, o.Of, o.Database = "api-b", "api", "orders"
			w.Others = []engine.Other{o}
			p := engine.Draw(s, w)
			if diff := cmp.Diff(tc.steps, written(p)); diff != "" {
				t.Errorf("\n%s\nsteps: -want, +got:\n%s", tc.reason, diff)
			}
			for _, st := range p.Steps {
				if st.Of.Login == "api-b" && !st.Password && st.Unused != "api" {
					t.Errorf("\n%s\nA role that is shut out must be unused: %+v", tc.reason, st)
				}
			}
			want := tc.told
			want.Name, want.Active = "api", "api"
			if diff := cmp.Diff([]v1alpha1.AlternatingLogin{want}, engine.Observe(s, w, p).Alternating); diff != "" {
				t.Errorf("\n%s\ntold: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
