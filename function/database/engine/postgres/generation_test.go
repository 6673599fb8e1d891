// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
)

func TestFenceAndFollower(t *testing.T) {
	cases := map[string]struct {
		reason string
		server Server
		want   map[string]any
	}{
		"Alone": {
			reason: "A generation that nobody follows or succeeds has neither a slot nor a pause.",
			want:   map[string]any{},
		},
		"Followed": {
			reason: "What the copy needs is kept for it, on whichever member leads.",
			server: Server{Server: engine.Server{Followed: true}},
			want:   map[string]any{"slots": map[string]any{"capstan_upgrade": map[string]any{"type": "physical"}}},
		},
		"Fenced": {
			reason: "A fence comes with a pause, or another member would be promoted when the leader stops; the slot stays for the rest.",
			server: Server{Server: engine.Server{Followed: true, Fence: engine.Fence{ID: "u1"}}},
			want: map[string]any{
				"slots": map[string]any{"capstan_upgrade": map[string]any{"type": "physical"}},
				"pause": true, "capstan_fence": "u1",
			},
		},
		"Decided": {
			reason: "Members that decide are told for whom, and how long they wait.",
			server: Server{Server: engine.Server{Fence: engine.Fence{ID: "u1", To: "orders.g2", Seconds: 200}}},
			want: map[string]any{
				"pause": true, "capstan_fence": "u1", "capstan_fence_to": "orders.g2", "capstan_fence_seconds": 200.0,
			},
		},
		"GivenUp": {
			reason: "The pause stays until the members have ended the fence.",
			server: Server{Server: engine.Server{Fence: engine.Fence{ID: "u1", To: "orders.g2", Seconds: 200, Withdraw: true}}},
			want: map[string]any{
				"pause": true, "capstan_fence": "u1", "capstan_fence_to": "orders.g2", "capstan_fence_seconds": 200.0, "capstan_fence_withdraw": true,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.server.Database, tc.server.Scope, tc.server.Major, tc.server.Pace = "orders", "orders-1", 17, paces[v1alpha1.FailoverBalanced]
			tc.server.Members, tc.server.Memory, tc.server.Storage, tc.server.MaxConnections = 3, 256*bytesMB, 1024*bytesMB, 50
			text, err := tc.server.Dynamic()
			if err != nil {
				t.Fatal(err)
			}
			var all map[string]any
			if err := json.Unmarshal([]byte(text), &all); err != nil {
				t.Fatal(err)
			}
			got := map[string]any{}
			for _, key := range []string{"slots", "pause", "capstan_fence", "capstan_fence_to", "capstan_fence_seconds", "capstan_fence_withdraw"} {
				if v, ok := all[key]; ok {
					got[key] = v
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nDynamic(): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.server.Fence, postgreSQL{}.Coordinated(text).Fence); diff != "" {
				t.Errorf("\n%s\nCoordinated(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
