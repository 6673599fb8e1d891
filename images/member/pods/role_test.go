// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/kube"
)

// client of an API server that answers as a function says.
func client(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	k, err := kube.New(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return New(k, "shop", "orders-a-0", "orders")
}

func answer(t *testing.T, w http.ResponseWriter, code int, body any) {
	t.Helper()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		t.Error(err)
	}
}

// pod with a label and what Patroni says of it.
func pod(name, role, status string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"status": status}}}
	if role != "" {
		p.Labels = map[string]string{members.LabelRole: role}
	}
	return p
}

func TestLead(t *testing.T) {
	const (
		leads   = `{"state":"running","role":"primary"}`
		stopped = `{"state":"stopped","role":"demoted"}`
	)
	cases := map[string]struct {
		reason  string
		leaders []corev1.Pod
		want    []string
		wrote   bool
	}{
		"First":      {"Nobody had it.", nil, []string{"orders-a-0=leader"}, true},
		"Has":        {"Nothing is written when nothing changes.", []corev1.Pod{pod("orders-a-0", "leader", leads)}, nil, false},
		"Lost":       {"One that may still take writes loses it first.", []corev1.Pod{pod("orders-b-0", "leader", leads)}, []string{"orders-b-0=", "orders-a-0=leader"}, true},
		"HandedOver": {"One that is stopped keeps it until another has it.", []corev1.Pod{pod("orders-b-0", "leader", stopped)}, []string{"orders-a-0=leader", "orders-b-0="}, true},
		"Follows": {
			"One that handed over and starts to follow could be taken for the leader.",
			[]corev1.Pod{pod("orders-b-0", "leader", `{"state":"starting","role":"replica"}`)},
			[]string{"orders-b-0=", "orders-a-0=leader"},
			true,
		},
		"Both": {
			"Of two each is treated for itself.",
			[]corev1.Pod{pod("orders-b-0", "leader", stopped), pod("orders-c-0", "leader", leads)},
			[]string{"orders-c-0=", "orders-a-0=leader", "orders-b-0="},
			true,
		},
		"Late":    {"What another kept is taken when the own is there already.", []corev1.Pod{pod("orders-a-0", "leader", leads), pod("orders-b-0", "leader", stopped)}, []string{"orders-b-0="}, true},
		"Unclear": {"What cannot be understood proves nothing.", []corev1.Pod{pod("orders-b-0", "leader", "?")}, []string{"orders-b-0=", "orders-a-0=leader"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			c := client(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					answer(t, w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: tc.leaders})
					return
				}
				var p corev1.Pod
				if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
					t.Error(err)
				}
				got = append(got, path.Base(r.URL.Path)+"="+p.Labels[members.LabelRole])
				answer(t, w, http.StatusOK, corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}})
			})
			wrote, err := c.SetRole(t.Context(), members.RoleLeader, func(context.Context) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || wrote != tc.wrote {
				t.Errorf("\n%s\nSetRole(...): wrote %t, -want, +got:\n%s", tc.reason, wrote, diff)
			}
		})
	}
}

// TestLeadHoldsLock: the label follows the lock. Patroni alone takes a leader that was frozen for the leader.
func TestLeadHoldsLock(t *testing.T) {
	leader := pod("orders-b-0", "leader", `{"state":"running","role":"primary"}`)
	leader.ResourceVersion = "42"
	for name, tc := range map[string]struct {
		reason    string
		holds     []error
		conflicts int
		want      []string
		fails     bool
	}{
		"Holder":   {"The holder takes the label from a pod as it was read.", []error{nil, nil}, 0, []string{"orders-b-0=@42", "orders-a-0=leader@"}, false},
		"Another":  {"The lock is another's: nothing is touched.", []error{ErrNotHolder}, 0, nil, true},
		"Lost":     {"The lock is lost at the same moment: the label is taken back.", []error{nil, ErrNotHolder}, 0, []string{"orders-b-0=@42", "orders-a-0=leader@", "orders-a-0=@"}, true},
		"Changed":  {"The pod changed after it was read: all is read again.", []error{nil, nil, nil}, 1, []string{"orders-b-0=@42", "orders-b-0=@42", "orders-a-0=leader@"}, false},
		"Overtake": {"It changed because another took the lock.", []error{nil, ErrNotHolder}, 1, []string{"orders-b-0=@42"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			conflicts := tc.conflicts
			c := client(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					answer(t, w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{leader}})
					return
				}
				var p corev1.Pod
				if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
					t.Error(err)
				}
				got = append(got, path.Base(r.URL.Path)+"="+p.Labels[members.LabelRole]+"@"+p.ResourceVersion)
				if conflicts > 0 {
					conflicts--
					answer(t, w, http.StatusConflict, metav1.Status{
						TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonConflict, Code: http.StatusConflict,
					})
					return
				}
				answer(t, w, http.StatusOK, corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}})
			})
			asked := 0
			_, err := c.SetRole(t.Context(), members.RoleLeader, func(context.Context) error { asked++; return tc.holds[asked-1] })
			if (err != nil) != tc.fails {
				t.Errorf("%s: SetRole(...): got the error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: SetRole(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
