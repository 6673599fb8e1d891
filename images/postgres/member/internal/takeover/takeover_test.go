// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
)

// TestMayTake: a leader that has no part in the decision has clients of its own only when no other generation decides.
func TestMayTake(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, config, record, role string
		want                         bool
	}{
		"Offers":     {"It asks first from then on.", `{}`, ``, members.RoleLeader, false},
		"Leaderless": {"Capstan alone switches clients.", `{}`, ``, members.RoleReplica, true},
		"Outlived":   {"Clients may reach the later generation by the same Service.", `{}`, `{"id":"r3","to":"orders.g3","state":"Offered"}`, members.RoleLeader, false},
		"OutlivedLeaderless": {
			"The leader has stopped for the later generation.", `{"pause":true,"capstan_fence":"r3","capstan_fence_to":"orders.g3","capstan_fence_seconds":180}`,
			`{"id":"r3","to":"orders.g3","state":"Held","until":"2126-11-26T12:00:00Z"}`, members.RoleReplica, false,
		},
		"Before": {
			"The fence of a generation before is about to end.", `{"pause":true,"capstan_fence":"r0","capstan_fence_to":"orders.g1","capstan_fence_seconds":180}`,
			`{"id":"r0","to":"orders.g1","state":"Held","until":"2126-11-26T12:00:00Z"}`, members.RoleLeader, false,
		},
		"Lost": {
			"Nobody else is there to end the fence.", `{"pause":true,"capstan_fence":"r2","capstan_fence_to":"orders.g2","capstan_fence_seconds":180}`,
			`{"id":"r2","to":"orders.g2","state":"Held","until":"2026-11-26T12:00:00Z"}`, members.RoleReplica, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cm := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "orders-1-config", ResourceVersion: "1", Annotations: map[string]string{
				"config": tc.config, members.AnnotationFence: tc.record,
			}}}
			former := corev1.PodList{Items: []corev1.Pod{{
				ObjectMeta: metav1.ObjectMeta{
					Name: "a-0", Labels: map[string]string{members.LabelMember: "a", members.LabelRole: tc.role}, Annotations: map[string]string{members.AnnotationYields: "true"},
				},
				Status: corev1.PodStatus{Phase: corev1.PodRunning},
			}}}
			wrote := ""
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body any = cm
				switch selector := r.URL.Query().Get("labelSelector"); {
				case r.Method == http.MethodPatch:
					var change corev1.ConfigMap
					if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
						t.Error(err)
					}
					wrote = change.Annotations[members.AnnotationFence]
				case strings.HasSuffix(selector, "orders"):
					body = former
				case selector != "":
					body = corev1.PodList{}
				}
				w.Header().Set("Content-Type", "application/json")
				if err := json.NewEncoder(w).Encode(body); err != nil {
					t.Error(err)
				}
			}))
			t.Cleanup(s.Close)
			api, err := kube.New(&rest.Config{Host: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			k := &Keeper{
				Names: layout.Names{Namespace: "shop", Pod: "g2-a-0", Database: "orders.g2"}, Kube: api,
				Pods: pods.New(api, "shop", "g2-a-0", "orders.g2"), Log: slog.New(slog.DiscardHandler),
			}
			got, err := k.mayTake(t.Context(), pgmember.TakeOver{ID: "r2", Database: "orders", Scope: "orders-1"})
			if err != nil || got != tc.want {
				t.Errorf("%s\ngot %t, %v; it wrote %s", tc.reason, got, err, wrote)
			}
			if ended := strings.Contains(wrote, members.FenceWithdrawn); ended != (name == "Lost") {
				t.Errorf("%s\nit wrote %s", tc.reason, wrote)
			}
		})
	}
}

func TestUnready(t *testing.T) {
	leader, standby := pods.Pod{Name: "a-0", Started: true, Yields: true, Role: members.RoleLeader}, pods.Pod{Name: "b-0", Started: true, Yields: true, Role: members.RoleReplica}
	with := func(p pods.Pod, change func(*pods.Pod)) pods.Pod {
		change(&p)
		return p
	}
	for name, tc := range map[string]struct {
		reason string
		list   []pods.Pod
		want   string
	}{
		"Well":       {"The leader stops when it is asked to.", []pods.Pod{leader, standby}, ""},
		"Earlier":    {"It would be promoted.", []pods.Pod{leader, with(standby, func(p *pods.Pod) { p.Yields = false })}, "b-0 runs an earlier image"},
		"Leaves":     {"One that stops decides nothing any more.", []pods.Pod{leader, with(standby, func(p *pods.Pod) { p.Yields, p.Stopping = false, true })}, ""},
		"NotStarted": {"Nobody would stop, and say so.", []pods.Pod{{Name: "a-0"}, {Name: "b-0"}}, "the generation before has no leader"},
		"Leaderless": {"Its data may be damaged.", []pods.Pod{standby}, "the generation before has no leader"},
		"Lost":       {"A label that was left behind leads nothing.", []pods.Pod{with(leader, func(p *pods.Pod) { p.Started = false }), standby}, "the generation before has no leader"},
		"None":       {"There is nobody.", nil, "the generation before has no leader"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unready(tc.list); got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
