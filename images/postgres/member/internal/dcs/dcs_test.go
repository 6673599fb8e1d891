// SPDX-License-Identifier: Apache-2.0

package dcs

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/pods"
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
		"Fast":   {"Patroni's own time is what counts.", `{"ttl":20,"loop_wait":5,"retry_timeout":5}`, 20 * time.Second},
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

// TestHolds: only the holder holds it, and an API server that does not answer is no answer.
func TestHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		holder string
		code   int
		want   error
	}{
		"Own":    {"orders-a-0", http.StatusOK, nil},
		"Other":  {"orders-b-0", http.StatusOK, pods.ErrNotHolder},
		"Nobody": {"", http.StatusOK, pods.ErrNotHolder},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, func(w http.ResponseWriter, _ *http.Request) {
				answer(t, w, tc.code, corev1.ConfigMap{
					TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationHolder: tc.holder}},
				})
			})
			if err := c.Holds(t.Context(), "orders-a-0"); !errors.Is(err, tc.want) {
				t.Errorf("Holds(...): got %v, want %v", err, tc.want)
			}
		})
	}
	down := client(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	if err := down.Holds(t.Context(), "orders-a-0"); err == nil || errors.Is(err, pods.ErrNotHolder) {
		t.Errorf("Holds(...) of an API server that refuses: got %v", err)
	}
}
