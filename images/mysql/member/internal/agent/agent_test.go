// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/record"
)

func TestDiffering(t *testing.T) {
	started := map[string]string{"wait_timeout": "3600"}
	cases := map[string]struct {
		reason            string
		set, want, change map[string]string
		reset             []string
	}{
		"First":   {"A server that just started has what its file says.", nil, map[string]string{"a": "1"}, map[string]string{"a": "1"}, nil},
		"Same":    {"What is set is not set again.", map[string]string{"a": "1"}, map[string]string{"a": "1"}, map[string]string{}, nil},
		"Other":   {"What changes is.", map[string]string{"a": "1"}, map[string]string{"a": "2"}, map[string]string{"a": "2"}, nil},
		"Default": {"What is wanted no more has the server's default.", map[string]string{"a": "1"}, nil, map[string]string{}, []string{"a"}},
		"File":    {"Unless the file has another value.", map[string]string{"wait_timeout": "1"}, nil, map[string]string{"wait_timeout": "3600"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			change, reset := differing(tc.set, tc.want, started)
			if diff := cmp.Diff([]any{tc.change, tc.reset}, []any{change, reset}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWaiting(t *testing.T) {
	started := map[string]string{"a": "1", "b": "ON", "c": "1", "server_id": "16"}
	mounted := map[string]string{"a": "2", "b": "on", "c": "2"}
	want := map[string]any{"a": map[string]string{"old_value": "1", "new_value": "2"}}
	if diff := cmp.Diff(want, waiting(started, mounted, map[string]string{"c": "2"})); diff != "" {
		t.Errorf("one differs, one in its letters only, and one was set: -want +got:\n%s", diff)
	}
	if got := waiting(started, map[string]string{"a": "1"}, nil); got != nil {
		t.Errorf("%v waits for a restart, and nothing changed", got)
	}
}

// TestHangs: a server is killed when it has not answered for a minute, and never because the container was frozen.
func TestHangs(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	type look struct {
		at   int
		well bool
	}
	cases := map[string]struct {
		reason string
		looks  []look
		want   bool
	}{
		"Well":   {"It answers.", []look{{0, true}, {100, true}, {200, true}}, false},
		"Short":  {"It may recover.", []look{{0, false}, {8, false}, {16, false}, {24, false}, {32, false}, {40, false}, {48, false}}, false},
		"Long":   {"It does not.", []look{{0, false}, {8, false}, {16, false}, {24, false}, {32, false}, {40, false}, {48, false}, {56, false}, {64, false}}, true},
		"Again":  {"An answer in between counts.", []look{{0, false}, {8, false}, {16, false}, {24, false}, {50, true}, {58, false}, {66, false}}, false},
		"Frozen": {"The container was frozen, and the program with it.", []look{{0, false}, {3600, false}, {3608, false}, {3616, false}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var w Watchdog
			got := false
			for _, l := range tc.looks {
				got = w.hangs(at(l.at), l.well)
			}
			if got != tc.want {
				t.Errorf("%s Want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestAnswers: a server that hangs is full of sessions that wait, and must not pass for one that works because of that.
func TestAnswers(t *testing.T) {
	full := fmt.Errorf("cannot ask: %w", &driver.MySQLError{Number: mysql.TooManySessions})
	cases := map[string]struct {
		reason string
		missed int
		err    error
		want   bool
	}{
		"Answer":     {"It answers.", 0, nil, true},
		"Back":       {"It answers again.", 3, nil, true},
		"Silence":    {"It does not answer.", 0, mysql.ErrNoAnswer, false},
		"Refusal":    {"A server that refuses a statement works.", 3, &driver.MySQLError{Number: 3024}, true},
		"Full":       {"Clients have all sessions.", 0, full, true},
		"FullOfHung": {"It gave no answer before: sessions that wait fill it.", 1, full, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := Watchdog{missed: tc.missed}
			if got := w.answers(tc.err); got != tc.want {
				t.Errorf("%s Want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestSeats(t *testing.T) {
	now := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	l := decision.Look{Group: []decision.Peer{{Server: "2", Host: "orders-b-0.x"}, {Server: "1", Host: "orders-a-0.x"}}}
	before := []record.Seat{
		{Name: "orders-a", Server: "1", Joining: ago(time.Second)},
		{Name: "orders-c", Server: "3", Joining: ago(time.Minute)},
		{Name: "orders-d", Server: "4"},
		{Name: "orders-e", Server: "5", Joining: ago(time.Hour)},
	}
	want := []record.Seat{{Name: "orders-a", Server: "1"}, {Name: "orders-b", Server: "2"}, {Name: "orders-c", Server: "3", Joining: ago(time.Minute)}}
	if diff := cmp.Diff(want, seats(l, before, now)); diff != "" {
		t.Errorf("whoever is in the group or about to join it has a seat, and nobody else: -want +got:\n%s", diff)
	}
}

func TestStatusOf(t *testing.T) {
	group := func(state, role string) decision.Look {
		return decision.Look{Server: "1", Group: []decision.Peer{{Server: "1", State: state, Role: role}}}
	}
	cases := map[string]struct {
		reason, state string
		seen          Seen
		want          members.Status
	}{
		"Leader": {
			"Only the leader tells how often the leader changed.", members.StateRunning,
			Seen{Look: group(decision.Online, decision.Primary), Standing: decision.Standing{Role: members.RoleLeader}},
			members.Status{State: members.StateRunning, Role: members.StatusPrimary, Timeline: 7},
		},
		"Replica": {
			"A commit waits for a majority of them.", members.StateRunning,
			Seen{Look: group(decision.Online, decision.Secondary), Lag: members.LagBehind, Standing: decision.Standing{Role: members.RoleReplica}},
			members.Status{State: members.StateRunning, Role: members.StatusReplica, Replication: members.Streaming, Synchronous: true, Lag: members.LagBehind},
		},
		"Joining": {
			"One that receives what it lacks does not run yet.", members.StateRunning,
			Seen{Look: group(decision.Recovering, decision.Secondary)},
			members.Status{State: members.StateStarting, Role: members.StatusReplica},
		},
		"Outside": {"A server in no group serves nobody.", members.StateRunning, Seen{}, members.Status{State: members.StateStarting}},
		"Stopped": {"One that stopped has no role.", members.StateStopped, Seen{}, members.Status{State: members.StateStopped}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, statusOf(tc.state, tc.seen, 7)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSight: a person who requests that a member is copied again knows what was reported before, and nothing that came later.
func TestSight(t *testing.T) {
	set := func(numbers string) gtid.Set {
		s, err := gtid.Parse("3e11fa47-71ca-11e1-9e33-c80aa9429562:" + numbers)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	cases := map[string]struct {
		reason            string
		before            sight
		id                string
		answers, reported bool
		want              sight
	}{
		"First":    {"Nothing was reported.", sight{}, "1", true, false, sight{ID: "1", Answered: true}},
		"Reported": {"It was reported.", sight{}, "1", true, true, sight{ID: "1", Reported: set("1-9"), Answered: true}},
		"Later":    {"It was reported after the request.", sight{ID: "1", Answered: true}, "1", true, true, sight{ID: "1", Answered: true}},
		"Again":    {"Another request was made with that knowledge.", sight{ID: "1", Answered: true}, "2", true, true, sight{ID: "2", Reported: set("1-9"), Answered: true}},
		"Broken":   {"The server did not answer at the request, nor since.", sight{ID: "1", Answered: true}, "2", false, false, sight{ID: "2"}},
		"Back":     {"It did so since.", sight{ID: "2"}, "2", true, false, sight{ID: "2", Answered: true}},
		"Gone":     {"And does not any more.", sight{ID: "2", Answered: true}, "2", false, false, sight{ID: "2", Answered: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.before.next(tc.id, set("1-9"), tc.answers, tc.reported)
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b gtid.Set) bool { return a.String() == b.String() })); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
