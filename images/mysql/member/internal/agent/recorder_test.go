// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/record"
)

// recordAt is a store whose ConfigMap has annotations. It fails the test's expectation by what it returns: what was written to it.
func recordAt(t *testing.T, annotations map[string]string) (store *record.Client, written func() string) {
	t.Helper()
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			raw, _ := io.ReadAll(r.Body)
			body = string(raw)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: "orders-1-leader", ResourceVersion: "7", Annotations: annotations},
		})
	}))
	t.Cleanup(server.Close)
	client, err := rest.RESTClientFor(&rest.Config{Host: server.URL, APIPath: "/api", ContentConfig: rest.ContentConfig{
		GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return record.New(kube.Client{REST: client, Stream: client}, "demo", "orders", "orders-1"), func() string { return body }
}

// TestRecorder: a leader writes over the record only what it sees after it has read it, and only over the record of its own group.
func TestRecorder(t *testing.T) {
	group := func(role, name string) decision.Look {
		return decision.Look{Server: "1", GroupName: name, ReadOnly: role != decision.Primary, Group: []decision.Peer{
			{Server: "1", Host: "orders-a-0.x", State: decision.Online, Role: role}, {Server: "2", Host: "orders-b-0.x", State: decision.Online, Role: decision.Secondary},
		}}
	}
	leader := Seen{Look: group(decision.Primary, "g"), Standing: decision.Standing{Role: members.RoleLeader}}
	next := map[string]string{
		members.AnnotationLeader: "orders-b-0", "capstan.dev/view": `[{"name":"orders-b","server":"2"},{"name":"orders-c","server":"3"}]`,
		"capstan.dev/begin": `{"epoch":3,"group":"g"}`,
	}
	cases := map[string]struct {
		reason string
		seen   Seen
		seat   *record.Seat
		look   decision.Look
		prove  error
		want   string
	}{
		"Leads": {"It leads, and the record does not say so yet.", leader, nil, group(decision.Primary, "g"), nil, `"leader":"orders-a-0"`},
		"LeadsView": {
			"The members of its group say who leads, for after an outage.", leader, nil, group(decision.Primary, "g"), nil,
			`[{\"name\":\"orders-a\",\"server\":\"1\",\"leader\":true},{\"name\":\"orders-b\",\"server\":\"2\"}]`,
		},
		"Thawed":  {"It was frozen after it saw that it leads, and has joined the group of the next leader since.", leader, nil, group(decision.Secondary, "g"), nil, ""},
		"Refused": {"It was frozen, and takes itself for the leader.", leader, nil, group(decision.Primary, "g"), errors.New("no majority"), ""},
		"Another": {"A person decided to begin another group, and this one was thought lost.", leader, nil, group(decision.Primary, "former"), nil, ""},
		"Follows": {"A member that follows has nothing to write.", Seen{Look: group(decision.Secondary, "g")}, nil, group(decision.Secondary, "g"), nil, ""},
		"Sits": {
			"One that joined while the API server was away is recorded beside the others.",
			Seen{Look: group(decision.Secondary, "g")},
			&record.Seat{Name: "orders-a", Server: "1"}, group(decision.Secondary, "g"), nil, `{\"name\":\"orders-c\",\"server\":\"3\"},{\"name\":\"orders-a\",\"server\":\"1\",`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store, written := recordAt(t, next)
			r := &Recorder{
				pod: "orders-a-0", store: store, seen: func() Seen { return tc.seen }, unrecorded: func() *record.Seat { return tc.seat },
				look:  func(context.Context) (decision.Look, error) { return tc.look, nil },
				prove: func(context.Context) error { return tc.prove }, status: loop.NewWakeup(), log: slog.New(slog.DiscardHandler),
			}
			r.once(t.Context())
			if got := written(); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s Want %q in what it writes, got %q", tc.reason, tc.want, got)
			}
			if tc.seat != nil && r.Sat() != tc.seat {
				t.Error("It does not say that the seat is recorded.")
			}
		})
	}
}
