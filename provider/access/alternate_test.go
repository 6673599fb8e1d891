// SPDX-License-Identifier: Apache-2.0

package access

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
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
	staged := other{token: "2-3f2a9c1b", login: login{staged: true, password: "next"}}
	with := func(o other, edit ...func(*other)) other {
		for _, e := range edit {
			e(&o)
		}
		return o
	}
	overlaps := func(o *other) { o.overlaps = true }
	idle := func(o *other) { o.idle = true }
	whenIdle := func(o *other) { o.whenIdle = true }
	opens := func(o *other) { o.opens = true }
	cases := map[string]struct {
		reason string
		role   *role
		other  other
		steps  []string
		told   v1alpha1.AlternatingLogin
	}{
		"NeverRotated": {reason: "There is no other role before the first rotation.", other: other{}},
		"Staged":       {reason: "The other role is made before anybody hears of it.", other: staged, steps: []string{make_}},
		"StagedAgain":  {reason: "One that was shut out gets the new password.", role: &closed, other: staged, steps: []string{again}},
		"Accepted": {
			reason: "It works, which is told.", role: &open, other: with(staged, opens),
			told: v1alpha1.AlternatingLogin{Accepted: "2-3f2a9c1b"},
		},
		"Overlap": {
			reason: "After the flip clients still have it.", role: &busy, other: with(other{}, overlaps, whenIdle),
			told: v1alpha1.AlternatingLogin{Retiring: "api-b"},
		},
		"OverlapIdle": {
			reason: "Where sessions elsewhere do not show here it is kept to the end.", role: &open, other: with(other{}, overlaps, idle),
			told: v1alpha1.AlternatingLogin{Retiring: "api-b"},
		},
		"Idle":   {reason: "Nobody used it for a while.", role: &open, other: with(other{}, overlaps, idle, whenIdle), steps: []string{shut, end}},
		"Bound":  {reason: "The overlap is over, whoever uses it.", role: &busy, other: other{}, steps: []string{shut, end}},
		"Ending": {reason: "A session that did not end yet is ended again.", role: &ending, other: other{}, steps: []string{end}},
		"Ended":  {reason: "Nothing is left to be done.", role: &closed, other: other{}},
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
		"Unknown": {reason: "While the Secret does not say who is in use nobody is shut out.", role: &busy, other: other{unknown: true}, told: v1alpha1.AlternatingLogin{Retiring: "api-b"}},
		"Stranger": {
			reason: "A role of somebody else is left alone.", role: &role{login: true}, other: other{},
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
			o.name, o.of, o.database = "api-b", "api", "orders"
			w.others = []other{o}
			p := draw(s, w)
			if diff := cmp.Diff(tc.steps, written(p)); diff != "" {
				t.Errorf("\n%s\nsteps: -want, +got:\n%s", tc.reason, diff)
			}
			for _, st := range p.steps {
				if st.of.login == "api-b" && !st.password && st.unused != "api" {
					t.Errorf("\n%s\nA role that is shut out must be unused: %+v", tc.reason, st)
				}
			}
			want := tc.told
			want.Name, want.Active = "api", "api"
			if diff := cmp.Diff([]v1alpha1.AlternatingLogin{want}, observe(s, w, p).Alternating); diff != "" {
				t.Errorf("\n%s\ntold: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIdleness(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	i := newIdleness(func() time.Time { return now })
	look := func(after time.Duration, sessions int) bool {
		now = now.Add(after)
		return i.look("x", "api", sessions)
	}
	for n := range 20 {
		if look(30*time.Second, 0) {
			t.Fatalf("after %d looks: idle too soon", n)
		}
	}
	if !look(30*time.Second, 0) {
		t.Error("after ten minutes without a session it is idle")
	}
	if look(30*time.Second, 1) || look(30*time.Second, 0) {
		t.Error("after a session it begins again")
	}
	for range 18 {
		look(30*time.Second, 0)
	}
	if look(gap+time.Second, 0) {
		t.Error("of a time that nobody looked at nothing is known")
	}
	i.forget("x")
	if look(time.Second, 0) {
		t.Error("what is forgotten begins again")
	}
}

func TestOverlaps(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]bool{
		"": false, "soon": false, "2026-11-22T12:00:00Z": false, "2026-11-22T12:00:01Z": true, "2026-11-22T11:59:59Z": false,
	} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{credentialsv1alpha1.AnnotationOverlapUntil: text}}}
		if got := overlaps(s, now); got != want {
			t.Errorf("%q: want %t, got %t", text, want, got)
		}
	}
}
