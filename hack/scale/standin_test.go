// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// setOf a member of the example of a Database, as Crossplane composes it.
func setOf(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "examples", "database", "basic", "want.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for all := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		u := &unstructured.Unstructured{}
		if err := all.Decode(&u.Object); err != nil {
			t.Fatalf("no StatefulSet %q: %v", name, err)
		}
		if u.GetKind() == "StatefulSet" && u.GetName() == name {
			return u
		}
	}
}

// TestMember has the pods of a real example be what the provider looks for: labels, reports, and containers that run.
func TestMember(t *testing.T) {
	for set, want := range map[string]map[string]string{
		"orders-db-a": {"role": "leader", "status": leads, "node": "node-a"},
		"orders-db-c": {"role": "replica", "status": follows, "node": "node-c"},
	} {
		m, err := newMember(setOf(t, set))
		if err != nil {
			t.Fatal(err)
		}
		p := m.pod()
		node, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName")
		got := map[string]string{"role": p.GetLabels()[labelRole], "status": p.GetAnnotations()["status"], "node": node}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the first member leads, and each has a node of its own; -want, +got:\n%s", set, diff)
		}
		if p.GetName() != set+"-0" || p.GetLabels()[labelMember] != set || p.GetLabels()["controller-revision-hash"] != m.revision || m.scope() != "orders-db-3f2a9c1b" {
			t.Errorf("%s: want the pod of the member, got %s with %v", set, p.GetName(), p.GetLabels())
		}
		containers, _, _ := unstructured.NestedSlice(p.Object, "spec", "containers")
		told, _ := m.running()["containerStatuses"].([]any)
		if len(containers) == 0 || len(told) != len(containers) {
			t.Errorf("%s: want a status for each of %d containers, got %d", set, len(containers), len(told))
		}
		mounted := false
		volumes, _, _ := unstructured.NestedSlice(p.Object, "spec", "volumes")
		for _, v := range volumes {
			claim, _, _ := unstructured.NestedString(v.(map[string]any), "persistentVolumeClaim", "claimName")
			mounted = mounted || claim == "data-"+set+"-0"
		}
		if !mounted || len(m.claims) != 1 {
			t.Errorf("%s: want the volume that its template claims, got %v", set, volumes)
		}
	}
}

func TestIsReady(t *testing.T) {
	for name, tc := range map[string]struct {
		status     string
		generation int64
		want       bool
	}{
		"Newest":  {status: "True", generation: 2, want: true},
		"Older":   {status: "True", generation: 1},
		"Untrue":  {status: "False", generation: 2},
		"Unknown": {},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": tc.status, "observedGeneration": tc.generation},
		}}}}
		u.SetGeneration(2)
		if got := isReady(u); got != tc.want {
			t.Errorf("%s: a condition is true of the newest spec only: want %t, got %t", name, tc.want, got)
		}
	}
}

// TestOutside has the certificates of the authority arrive whole, and the S3 server be there only for Buckets.
func TestOutside(t *testing.T) {
	const authority = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
	for _, s3 := range []bool{false, true} {
		p := plane{s3: s3}
		bundles := map[string]string{}
		for all := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(p.outside([]byte(authority))), 4096); ; {
			u := &unstructured.Unstructured{}
			if err := all.Decode(&u.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if u.GetKind() == "ClusterProviderConfig" {
				bundles[u.GetName()], _, _ = unstructured.NestedString(u.Object, "spec", "s3", "caBundle")
			}
		}
		want := map[string]string{"prometheus": ""}
		if s3 {
			want["s3"] = authority
		}
		if diff := cmp.Diff(want, bundles); diff != "" {
			t.Errorf("with an S3 server %t: -want, +got:\n%s", s3, diff)
		}
		if got := slices.Contains(p.tools(), "versitygw"); got != s3 {
			t.Errorf("with an S3 server %t: got its program %t", s3, got)
		}
	}
}

// TestObject has each kind of a fleet carry what tenants write, and a host only where there is a route.
func TestObject(t *testing.T) {
	for _, k := range []kind{kindAlgorithm(), kindDatabase(), kindBucket(), kindCredential()} {
		o, err := fleet{kind: k}.object(name{"tenant-001", k.prefix + "-07"})
		if err != nil {
			t.Fatal(err)
		}
		host, routed, _ := unstructured.NestedString(o.Object, "spec", "route", "host")
		if o.GetName() != k.prefix+"-07" || o.GetNamespace() != "tenant-001" || routed != (k.title == "Algorithms") {
			t.Errorf("%s: got %s/%s with host %q", k.title, o.GetNamespace(), o.GetName(), host)
		}
	}
}
