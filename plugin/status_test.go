// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/plugin/internal/screen"
)

// deployments of a live slot a and of slot b beside it.
const both = `[
	{"metadata": {"name": "reco-a", "annotations": {"capstan.dev/revision": "51aa51aa51"}}, "spec": {"replicas": 2}, "status": {"availableReplicas": 2}},
	{"metadata": {"name": "reco-b", "annotations": {"capstan.dev/revision": "7c9f7c9f7c"}}, "spec": {"replicas": 1}, "status": {"availableReplicas": 1}}
]`

const seen = `{"metadata": {"name": "reco", "namespace": "demo", "generation": 4}, "status": {
	"phase": "Progressing", "revision": {"live": "51aa51aa51", "slot": "a"},
	"conditions": [{"type": "Synced", "status": "True", "observedGeneration": 4}, {"type": "Updated", "status": "True", "reason": "Live"}],
	"rollout": %s
}}`

func rolling(t *testing.T, rollout, deployments string) screen.Algorithm {
	t.Helper()
	var v screen.Algorithm
	if err := errors.Join(json.Unmarshal(fmt.Appendf(nil, seen, rollout), &v.Object), json.Unmarshal([]byte(deployments), &v.Deployments)); err != nil {
		t.Fatal(err)
	}

	return v
}

// TestFollow has a rollout go through phases, and looks how it ends and what is written.
func TestFollow(t *testing.T) {
	stale := rolling(t, `{"phase": "Stable", "reason": "Drained"}`, `[]`)
	stale.Object.Generation++
	early := rolling(t, `{"phase": "Stable", "reason": "Drained"}`, `[]`)
	early.Object.Status.Conditions[1] = xpv2.Condition{Type: "Updated", Status: "False", Reason: "RollingOut"}
	tried := rolling(t, `{"phase": "Stepping", "reason": "Soaking", "weight": 20, "candidate": "7c9f7c9f7c", "evidence": [{"name": "success", "verdicts": "P", "samples": 60}], "message": "20 % of callers"}`, both)
	done := rolling(t, `{"phase": "Stable", "reason": "Drained", "message": "clients reach revision 7c9f7c9f7c"}`, `[]`)
	const (
		first  = "   0.0 s  Stable          0 %  Drained  \n"
		second = "   2.0 s  Stepping       20 %  Soaking  slot a: 51aa51aa51 2/2  slot b: 7c9f7c9f7c 1/1  success: P of 60  20 % of callers\n"
		third  = "   4.0 s  cannot read\n   5.0 s  Stable          0 %  Drained  clients reach revision 7c9f7c9f7c\n"
	)
	cases := map[string]struct {
		reason string
		c      watching
		looks  []screen.View
		want   string
		err    string
	}{
		"After": {
			reason: "A pass that knew of the edit before it acted on it does not count either.",
			c:      watching{until: []string{"Stable"}, after: "Stable", limit: time.Minute},
			looks:  []screen.View{done, tried, done},
			want: "   0.0 s  Stable          0 %  Drained  clients reach revision 7c9f7c9f7c\n" +
				"   1.0 s  Stepping       20 %  Soaking  slot a: 51aa51aa51 2/2  slot b: 7c9f7c9f7c 1/1  success: P of 60  20 % of callers\n" +
				"   2.0 s  Stable          0 %  Drained  clients reach revision 7c9f7c9f7c\n",
		},
		"Until": {
			reason: "A phase from before the edit does not count, and what does not change is written once.",
			c:      watching{until: []string{"RolledBack", "Stable"}, limit: time.Minute},
			want:   first + second + third,
		},
		"TooLate": {
			reason: "Who waits for a phase learns that it did not come.",
			c:      watching{until: []string{"RolledBack", "Stable"}, limit: 3500 * time.Millisecond},
			want:   first + second,
			err:    "not RolledBack or Stable after 3.5s: it is Stepping",
		},
		"For": {
			reason: "Who only watches has seen enough after a time.",
			c:      watching{limit: 3500 * time.Millisecond},
			want:   first + second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				looks := tc.looks
				if looks == nil {
					looks = []screen.View{stale, early, tried, tried, nil, done}
				}
				err := tc.c.follow(t.Context(), &out, 0, func(context.Context) (screen.View, error) {
					v := looks[0]
					looks = looks[1:]
					if v == nil {
						return v, errors.New("cannot read")
					}

					return v, nil
				})
				if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
					t.Errorf("%s\nfollow: want error %q, got %v", tc.reason, tc.err, err)
				}
				if diff := cmp.Diff(tc.want, out.String()); diff != "" {
					t.Errorf("%s\nfollow: -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}
