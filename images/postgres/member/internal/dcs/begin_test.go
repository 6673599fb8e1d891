// SPDX-License-Identifier: Apache-2.0

package dcs

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestBegin(t *testing.T) {
	type sent struct {
		Method string
		Meta   map[string]any
	}
	patched := &sent{http.MethodPatch, map[string]any{"resourceVersion": "7", "annotations": map[string]any{annotationBegins: "orders-a", annotationSystem: nil}}}
	for name, tc := range map[string]struct {
		reason      string
		annotations map[string]string // nil if there is no object
		gone        bool
		code        int
		want        string
		sent        *sent
		fails       bool
	}{
		"New": {
			"Patroni has to find what is made here.", nil, false, http.StatusCreated, "orders-a",
			&sent{http.MethodPost, map[string]any{
				"name": "orders-1-config", "labels": map[string]any{"capstan.dev/database": "orders", "cluster-name": "orders-1"},
				"annotations": map[string]any{annotationBegins: "orders-a"},
			}}, false,
		},
		"First":    {"The first that looks makes the data.", map[string]string{"config": "{}"}, false, http.StatusOK, "orders-a", patched, false},
		"Again":    {"What is recorded is not written again.", map[string]string{annotationBegins: "orders-a"}, false, http.StatusOK, "orders-a", nil, false},
		"Killed":   {"The claim is of this member's last Patroni.", map[string]string{annotationBegins: "orders-a", annotationSystem: ""}, false, http.StatusOK, "orders-a", patched, false},
		"Other":    {"The claim of a member that may run is never removed.", map[string]string{annotationBegins: "orders-b", annotationSystem: ""}, false, http.StatusOK, "orders-b", nil, false},
		"Gone":     {"A member that is gone makes nothing.", map[string]string{annotationBegins: "orders-b", annotationSystem: ""}, true, http.StatusOK, "orders-a", patched, false},
		"Begun":    {"There is data, which this member copies.", map[string]string{annotationBegins: "orders-b", annotationSystem: "7512"}, true, http.StatusOK, "", nil, true},
		"Conflict": {"Another member was quicker.", map[string]string{}, false, http.StatusConflict, "", patched, true},
	} {
		t.Run(name, func(t *testing.T) {
			var got *sent
			c := client(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					if tc.annotations == nil {
						answer(t, w, http.StatusNotFound, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
						return
					}
					answer(t, w, http.StatusOK, corev1.ConfigMap{
						TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
						ObjectMeta: metav1.ObjectMeta{Name: "orders-1-config", ResourceVersion: "7", Annotations: tc.annotations},
					})
					return
				}
				var body struct {
					Metadata map[string]any `json:"metadata"`
				}
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Error(err)
				}
				got = &sent{r.Method, body.Metadata}
				answer(t, w, tc.code, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}})
			})
			by, err := c.Begin(t.Context(), "orders", "orders-a", func(string) bool { return tc.gone })
			if by != tc.want || (err != nil) != tc.fails {
				t.Errorf("%s: got %q, %v", tc.reason, by, err)
			}
			if diff := cmp.Diff(tc.sent, got); diff != "" {
				t.Errorf("%s: sent (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
