// SPDX-License-Identifier: Apache-2.0

package dcs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

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
	return New(k, "shop", "orders-1")
}

func answer(t *testing.T, w http.ResponseWriter, code int, body any) {
	t.Helper()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		t.Error(err)
	}
}

func TestLifetime(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		config string
		want   time.Duration
	}{
		"Fast":   {"What a leader may take to give up is what counts.", `{"ttl":20,"loop_wait":5,"retry_timeout":5}`, 15 * time.Second},
		"Paused": {"In a pause nobody is promoted.", `{"ttl":20,"loop_wait":5,"retry_timeout":5,"pause":true}`, 0},
		"None":   {"Without a configuration nothing is known.", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, func(w http.ResponseWriter, _ *http.Request) {
				answer(t, w, http.StatusOK, corev1.ConfigMap{
					TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"config": tc.config}},
				})
			})
			got, err := c.Lifetime(t.Context())
			if err != nil || got != tc.want {
				t.Errorf("\n%s\nLifetime(...): got %s, %v, want %s", tc.reason, got, err, tc.want)
			}
		})
	}
}

// TestRelease of a lock that was renewed must fail, so the version that was seen goes with it.
func TestRelease(t *testing.T) {
	var sent string
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		raw, _ := json.Marshal(body)
		sent = r.Method + " " + path.Base(r.URL.Path) + " " + string(raw)
		answer(t, w, http.StatusConflict, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonConflict, Code: http.StatusConflict,
		})
	})
	err := c.Release(t.Context(), Lock{Holder: "orders-b-0", Version: "42"})
	if !kerrors.IsConflict(err) {
		t.Errorf("Release(...): got %v, want a conflict", err)
	}
	want := `PATCH orders-1-leader {"metadata":{"annotations":{"leader":null},"resourceVersion":"42"}}`
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("Release(...): -want, +got:\n%s", diff)
	}
}
