// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// server answers as an API server behind a path does, with the kind Database and without Algorithm.
func server(t *testing.T) *Cluster {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/k8s/one/apis/capstan.dev/v1alpha1/namespaces/demo/databases/orders":
			_, _ = fmt.Fprint(w, `{"apiVersion": "capstan.dev/v1alpha1", "kind": "Database", "metadata": {"name": "orders"}, "spec": {"engine": "postgres", "storage": "10Gi"}, "status": {"leader": "orders-a"}}`)
		case "/k8s/one/apis/capstan.dev/v1alpha1/namespaces/demo/databases/none":
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "databases.capstan.dev \"none\" not found", "details": {"name": "none", "group": "capstan.dev", "kind": "databases"}}`)
		case "/k8s/one/api/v1/namespaces/demo/pods/orders-a-0/log":
			_, _ = fmt.Fprintf(w, "%s %s %s", r.FormValue("container"), r.FormValue("timestamps"), r.FormValue("tailLines"))
		case "/k8s/one/api/v1/namespaces/demo/pods/secret/log":
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `pods "secret" is forbidden`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	c, err := New(&rest.Config{Host: srv.URL + "/k8s/one"}, "demo")
	if err != nil {
		t.Fatal(err)
	}

	return c
}

func TestGet(t *testing.T) {
	c := server(t)
	d, err := c.Database(t.Context(), "orders")
	if err != nil || d.Status.Leader != "orders-a" || d.Spec.Storage.String() != "10Gi" {
		t.Errorf("want the Database, got %+v, %v", d, err)
	}
	if _, err := c.Database(t.Context(), "none"); err == nil || !strings.Contains(err.Error(), "there is no Database none in namespace demo: `kubectl capstan status` lists") {
		t.Errorf("an object that is not there: got %v", err)
	}
	if _, err := c.Algorithm(t.Context(), "reco"); err == nil || !strings.Contains(err.Error(), "this cluster has no kind Algorithm: Capstan is not installed; `kubectl capstan doctor`") {
		t.Errorf("a kind that is not there: got %v", err)
	}
	if a, err := c.Analysis(t.Context(), "reco"); a != nil || err != nil {
		t.Errorf("without an Analysis there are no numbers, and that is no failure: got %v, %v", a, err)
	}
}

func TestLogs(t *testing.T) {
	c := server(t)
	r, err := c.Logs(t.Context(), "orders-a-0", "postgres", url.Values{"tailLines": {"7"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if got, err := io.ReadAll(r); string(got) != "postgres true 7" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := c.Logs(t.Context(), "secret", "postgres", nil); err == nil || !strings.Contains(err.Error(), `403 Forbidden: pods "secret" is forbidden`) {
		t.Errorf("the message of the API server is lost: %v", err)
	}
}
