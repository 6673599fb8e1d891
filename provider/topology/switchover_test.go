// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

func TestDue(t *testing.T) {
	wish := &v1alpha1.TopologySwitchover{ID: "1", From: "orders-db-a", To: "orders-db-b"}
	wished := map[string]string{members.AnnotationLeader: "orders-db-a-0", members.AnnotationCandidate: "orders-db-b-0"}
	record := func(id, state string, age time.Duration) v1alpha1.SwitchoverOutcome {
		return v1alpha1.SwitchoverOutcome{ID: id, From: "orders-db-a", To: "orders-db-b", State: state, At: metav1.NewTime(now.Add(-age))}
	}
	cases := map[string]struct {
		reason   string
		known    []v1alpha1.SwitchoverOutcome
		wish     *v1alpha1.TopologySwitchover
		leader   string
		failover map[string]string
		want     duty
		state    string
	}{
		"NoWish":   {reason: "Nobody asks.", leader: "orders-db-a", want: nothing},
		"New":      {reason: "A new id is carried out.", wish: wish, leader: "orders-db-a", want: begin, state: v1alpha1.SwitchoverAsked},
		"Known":    {reason: "An id that was carried out is not again.", wish: wish, known: []v1alpha1.SwitchoverOutcome{record("1", v1alpha1.SwitchoverDone, time.Hour)}, leader: "orders-db-a", want: nothing},
		"Failed":   {reason: "Nor is one that failed.", wish: wish, known: []v1alpha1.SwitchoverOutcome{record("1", v1alpha1.SwitchoverFailed, time.Hour)}, leader: "orders-db-a", want: nothing},
		"NoLeader": {reason: "While nobody leads there is nobody to ask.", wish: wish, want: await, state: v1alpha1.SwitchoverAsked},
		"Leads":    {reason: "A member that leads already is where it should be, for good.", wish: wish, leader: "orders-db-b", want: end, state: v1alpha1.SwitchoverDone},
		"Other":    {reason: "A wish for another leader than there is was overtaken.", wish: wish, leader: "orders-db-c", want: end, state: v1alpha1.SwitchoverFailed},
		"UnderWay": {reason: "What was asked for takes its time.", wish: wish, known: []v1alpha1.SwitchoverOutcome{record("1", v1alpha1.SwitchoverAsked, 20*time.Second)}, leader: "orders-db-a", failover: wished, want: await, state: v1alpha1.SwitchoverAsked},
		"Between":  {reason: "Between two leaders it is under way.", wish: wish, known: []v1alpha1.SwitchoverOutcome{record("1", v1alpha1.SwitchoverAsked, 20*time.Second)}, want: await, state: v1alpha1.SwitchoverAsked},
		"Done":     {reason: "Another member leads.", wish: wish, known: []v1alpha1.SwitchoverOutcome{record("1", v1alpha1.SwitchoverAsked, time.Second)}, leader: "orders-db-b", want: end, state: v1alpha1.SwitchoverDone},
		"Refused":  {reason: "Patroni puts away what it does not do.", wish: wish, known: []v1alpha1.SwitchoverOutcome{record("1", v1alpha1.SwitchoverAsked, 20*time.Second)}, leader: "orders-db-a", want: end, state: v1alpha1.SwitchoverFailed},
		"Late":     {reason: "What nobody takes up in time has failed.", wish: wish, known: []v1alpha1.SwitchoverOutcome{record("1", v1alpha1.SwitchoverAsked, 3*time.Minute)}, leader: "orders-db-a", failover: wished, want: end, state: v1alpha1.SwitchoverFailed},
		"Next":     {reason: "Another wish waits for the one before.", wish: &v1alpha1.TopologySwitchover{ID: "2", From: "orders-db-a", To: "orders-db-c"}, known: []v1alpha1.SwitchoverOutcome{record("1", v1alpha1.SwitchoverAsked, time.Second)}, leader: "orders-db-a", failover: wished, want: await, state: v1alpha1.SwitchoverAsked},
		"TakenBack": {
			reason: "What was asked for ends, also when nobody wishes it any more.", known: []v1alpha1.SwitchoverOutcome{record("1", v1alpha1.SwitchoverAsked, time.Second)}, leader: "orders-db-b",
			want: end, state: v1alpha1.SwitchoverDone,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, o := due(tc.known, tc.wish, tc.leader, tc.failover, now)
			if diff := cmp.Diff([]any{tc.want, tc.state}, []any{got, o.State}); diff != "" {
				t.Errorf("\n%s\ndue(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOutcomes(t *testing.T) {
	var many []v1alpha1.SwitchoverOutcome
	for i := range 100 {
		many = append(many, v1alpha1.SwitchoverOutcome{ID: strconv.Itoa(i), State: v1alpha1.SwitchoverDone})
	}
	many = append(many, v1alpha1.SwitchoverOutcome{ID: "99"})
	raw, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	v := well(func(v *view) {
		v.records[members.SuffixConfig][annotationSwitchovers] = string(raw)
		v.parameters.Switchover = &v1alpha1.TopologySwitchover{ID: "40"}
	})
	var ids []string
	for _, o := range v.facts().Switchovers {
		ids = append(ids, o.ID)
	}
	if diff := cmp.Diff([]string{"40", "92", "93", "94", "95", "96", "97", "98", "99"}, ids); diff != "" {
		t.Errorf("the last ones are told, and the one that is asked for, each once: -want, +got:\n%s", diff)
	}
	for _, bad := range []string{"", "{", `{"id":1}`, `"x"`} {
		if got := outcomes(map[string]string{annotationSwitchovers: bad}); got != nil {
			t.Errorf("%q gives %v", bad, got)
		}
	}
}
