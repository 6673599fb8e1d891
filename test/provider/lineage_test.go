// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestLineage: after an outage of the server, each event arrives once.
func TestLineage(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	b.start("--poll-interval=1s")

	var (
		mu     sync.Mutex
		down   = true
		events []string
	)

	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()

		if down {
			w.WriteHeader(http.StatusServiceUnavailable)

			return
		}

		var e struct {
			Type string `json:"eventType"`
			Job  struct {
				Namespace string `json:"namespace"`
			} `json:"job"`
		}
		if r.Method == http.MethodPost && json.NewDecoder(r.Body).Decode(&e) == nil {
			events = append(events, e.Job.Namespace+" "+e.Type)
		}
	}))
	defer srv.Close()

	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultOpenLineageConfig}}
	pc.Spec.OpenLineage = &v1alpha1.OpenLineageConfig{URL: srv.URL, JobNamespace: "test/{namespace}"}
	b.apply(pc)

	l := lineage("shop", "daily")
	l.Spec.ForProvider.Runs[0].State = observev1alpha1.LineageSucceeded
	l.Spec.ForProvider.Runs[0].EndedAt = &metav1.Time{Time: time.Unix(60, 0)}
	b.apply(l)
	b.connected(time.Minute, l, v1alpha1.ReasonServerError)

	mu.Lock()
	down = false
	mu.Unlock()

	b.eventually(time.Minute, "the last event being sent", func() string {
		b.get(l)

		if sent := l.Status.AtProvider.Sent; len(sent) != 1 || sent[0].Event != "COMPLETE" {
			return "it is not"
		}

		return ""
	})
	b.connected(time.Minute, l, v1alpha1.ReasonAnswered)

	mu.Lock()
	defer mu.Unlock()

	if diff := cmp.Diff([]string{"test/shop START", "test/shop COMPLETE"}, events); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
