// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/plugin/internal/cluster"
)

// objects of a Database, with a canary wherever a credential may be.
const objects = `
apiVersion: capstan.dev/v1alpha1
kind: Database
metadata:
  name: orders
  namespace: demo
  annotations: {example.org/admin-password: c4n4ry, kubectl.kubernetes.io/last-applied-configuration: c4n4ry}
spec:
  crossplane:
    resourceRefs:
      - {apiVersion: v1, kind: Secret, name: orders-access}
      - {apiVersion: v1, kind: ConfigMap, name: orders-config}
      - {apiVersion: observe.capstan.dev/v1alpha1, kind: Topology, name: orders}
      - {apiVersion: example.org/v1, kind: Gone, name: orders}
status: {conditions: [{type: Synced, status: "False", message: "cannot reach https://u:c4n4ry@s3.example.org"}]}
---
apiVersion: v1
kind: Secret
metadata: {name: orders-access, namespace: demo}
data: {password: c4n4ry}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: orders-config, namespace: demo}
data: {app.ini: "password = c4n4ry"}
binaryData: {key: YzRuNHJ5}
---
apiVersion: observe.capstan.dev/v1alpha1
kind: Topology
metadata: {name: orders, namespace: demo}
---
apiVersion: v1
kind: Pod
metadata: {name: orders-a-0, namespace: demo}
spec: {containers: [{name: postgres, env: [{name: ANY, value: c4n4ry}]}]}
---
apiVersion: v1
kind: Event
metadata: {name: one, namespace: demo}
involvedObject: {kind: Pod, name: orders-a-0}
type: Warning
reason: Failed
message: "pull from https://robot:c4n4ry@registry.example.org failed"
lastTimestamp: "2026-11-26T11:00:00Z"
---
apiVersion: v1
kind: Event
metadata: {name: two, namespace: demo}
involvedObject: {kind: Pod, name: another-0}
message: of another
lastTimestamp: "2026-11-26T11:00:00Z"
`

// TestCollect: what helps is in the bundle, no Secret is read, and no canary is anywhere in it.
func TestCollect(t *testing.T) {
	var all []runtime.Object
	for doc := range strings.SplitSeq(objects, "\n---\n") {
		u := &unstructured.Unstructured{}
		data, err := yaml.YAMLToJSON([]byte(doc))
		if err := errors.Join(err, u.UnmarshalJSON(data)); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{cluster.Events: "EventList"}, all...)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1":
			_, _ = fmt.Fprint(w, `{"resources": [{"name": "pods/log", "kind": "Pod"}, {"name": "configmaps", "kind": "ConfigMap"}, {"name": "secrets", "kind": "Secret"}]}`)
		case "/apis/observe.capstan.dev/v1alpha1":
			_, _ = fmt.Fprint(w, `{"resources": [{"name": "topologies", "kind": "Topology"}]}`)
		case "/api/v1/namespaces/demo/pods/orders-a-0/log":
			_, _ = fmt.Fprintf(w, "2026-11-26T11:00:00Z container %s previous %q\n2026-11-26T11:00:01Z ALTER ROLE x PASSWORD 'c4n4ry'\n", r.FormValue("container"), r.FormValue("previous"))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer srv.Close()
	base, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster.Cluster{Dynamic: client, Namespace: "demo", HTTP: srv.Client(), Base: base}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orders-a-0"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "postgres", RestartCount: 1}}}}

	b, err := Collect(t.Context(), c, cluster.Databases, "orders", []corev1.Pod{pod})
	if err != nil {
		t.Fatal(err)
	}
	b.Add("status.txt", "the login is token=c4n4ry\n")
	var archive bytes.Buffer
	if err := b.Write(&archive, "database-orders", time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	files := unpack(t, &archive)

	want := []string{
		"database-orders/composed/configmap-orders-config.yaml", "database-orders/composed/topology-orders.yaml", "database-orders/events.txt",
		"database-orders/left-out.txt", "database-orders/pods/orders-a-0.yaml", "database-orders/pods/orders-a-0/postgres.log",
		"database-orders/pods/orders-a-0/postgres.previous.log", "database-orders/status.txt", "database-orders/xr.yaml",
	}
	var got []string
	for name, content := range files {
		got = append(got, name)
		if strings.Contains(content, canary) || strings.Contains(content, "YzRuNHJ5") {
			t.Errorf("a credential is in %s:\n%s", name, content)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files: -want, +got:\n%s", diff)
	}
	for _, a := range client.Actions() {
		if a.GetResource().Resource == "secrets" {
			t.Errorf("a Secret is read: %v", a)
		}
	}
	for name, want := range map[string]string{
		"left-out.txt": "Secret orders-access is left out", "events.txt": "Pod/orders-a-0  Failed", "xr.yaml": "example.org/admin-password: REDACTED",
		"pods/orders-a-0.yaml": "name: ANY", "pods/orders-a-0/postgres.previous.log": `previous "true"`,
	} {
		if !strings.Contains(files["database-orders/"+name], want) {
			t.Errorf("%s lacks %q:\n%s", name, want, files["database-orders/"+name])
		}
	}
	if strings.Contains(files["database-orders/events.txt"], "of another") {
		t.Errorf("events of others are in the bundle: %s", files["database-orders/events.txt"])
	}
}

func unpack(t *testing.T, in io.Reader) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(content)
	}
}
