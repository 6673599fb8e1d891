// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubetesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/function/planners"
	"github.com/capstan-dev/capstan/function/release"
	"github.com/capstan-dev/capstan/function/settings"
	"github.com/capstan-dev/capstan/internal/steady"
)

const planOrders = `{apiVersion: capstan.dev/v1alpha1, kind: Database, metadata: {name: orders, namespace: demo}, spec: {engine: postgres, version: "17", replicas: 2, storage: 10Gi}}`

// composedOrders are a Database that runs, and everything that is composed of it.
func composedOrders(t *testing.T) []runtime.Object {
	t.Helper()
	var xr map[string]any
	if err := yaml.Unmarshal([]byte(planOrders), &xr); err != nil {
		t.Fatal(err)
	}
	rel := release.Release{Version: version}
	s, err := settings.Of(rel, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := steady.Library{Planner: planners.Of(rel)[schema.GroupKind{Group: "capstan.dev", Kind: "Database"}], Settings: s}
	r, err := steady.Run(t.Context(), steady.New(xr, moment), nil, l.Pass)
	if err != nil || !r.Ready {
		t.Fatalf("the Database should run: %v, %v", r.Waits, err)
	}
	all := []runtime.Object{&unstructured.Unstructured{Object: whole(r.End.XR)}}
	for _, name := range slices.Sorted(maps.Keys(r.End.Objects)) {
		o := whole(r.End.Objects[name])
		u := &unstructured.Unstructured{Object: o}
		u.SetNamespace("demo")
		all = append(all, u)
	}
	return all
}

// whole numbers are integers, as a client has them.
func whole(v any) map[string]any {
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			out := map[string]any{}
			for k, below := range v {
				out[k] = walk(below)
			}
			return out
		case []any:
			out := make([]any, len(v))
			for i, below := range v {
				out[i] = walk(below)
			}
			return out
		case float64:
			return int64(v)
		default:
			return v
		}
	}
	m, _ := walk(v).(map[string]any)
	return m
}

func TestPlan(t *testing.T) {
	cases := map[string]struct {
		reason   string
		manifest string
		args     []string
		exists   bool
		want     []string
		not      []string
		fails    string
	}{
		"New": {
			reason: "A new Database has its members in the end, and says what that assumes.", manifest: planOrders, args: []string{"--offline"},
			want: []string{"Stage 3\n  comes    StatefulSet orders-a\n", "0 restart and 0 go.\nIt is ready.", "cert-manager issues it.", "No EnvironmentConfig capstan was found"},
		},
		"Settings": {
			reason: "An EnvironmentConfig of the file counts.", args: []string{"--offline"},
			manifest: planOrders + "\n---\n{apiVersion: apiextensions.crossplane.io/v1beta1, kind: EnvironmentConfig, metadata: {name: capstan}, data: {database: {issuerRef: {name: company}}}}",
			want:     []string{"comes    Certificate orders-server\n", "It is ready."}, not: []string{"No EnvironmentConfig"},
		},
		"Same": {
			reason: "What runs already changes nothing.", manifest: planOrders, exists: true, want: []string{"Nothing comes, changes or goes.", "It is ready."},
		},
		"Edit": {
			reason: "An edit that restarts says so, with the expected pause.", exists: true,
			manifest: strings.ReplaceAll(planOrders, "storage:", "plan: medium, storage:"),
			want:     []string{"restarts StatefulSet orders-a\n", "effect   spec.plan: Restart", "pause    ", "2 restart and 0 go.\nIt is ready.", "whether a field may change once it is set is not looked at."},
		},
		"Refused": {
			reason: "A spec that is not accepted becomes nothing, and the command fails.", args: []string{"--offline"},
			manifest: strings.ReplaceAll(planOrders, "storage:", "plan: huge, storage:"),
			want:     []string{"Nothing comes, changes or goes.", "It is not ready.", "spec.plan"}, fails: "1 of 1 specs are not accepted",
		},
		"Nameless": {
			reason: "An object has a name.", manifest: "{apiVersion: capstan.dev/v1alpha1, kind: Database, spec: {}}", fails: "it has no metadata.name",
		},
		"Nothing": {
			reason: "A file without a kind of Capstan's is a mistake.", manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", args: []string{"--offline"},
			fails: "there is no manifest of Capstan's",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "manifest.yaml")
			if err := os.WriteFile(file, []byte(tc.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			r := newRig()
			if tc.exists {
				r = newRig(composedOrders(t)...)
			}
			out, err := r.run(t.Context(), "", append([]string{"plan", "-f", file}, tc.args...)...)
			if tc.fails == "" && err != nil || tc.fails != "" && (err == nil || !strings.Contains(err.Error(), tc.fails)) {
				t.Errorf("%s The error is %v, want %q", tc.reason, err, tc.fails)
			}
			for _, w := range tc.want {
				if !strings.Contains(out, w) {
					t.Errorf("%s The output lacks %q:\n%s", tc.reason, w, out)
				}
			}
			for _, n := range tc.not {
				if strings.Contains(out, n) {
					t.Errorf("%s The output should not have %q:\n%s", tc.reason, n, out)
				}
			}
			if n := len(r.patches()); n > 0 {
				t.Errorf("a plan changes nothing, and it made %d patches", n)
			}
		})
	}
}

// TestPlanWithoutRights: what the user may not read is taken as not there, and the output says so.
func TestPlanWithoutRights(t *testing.T) {
	r := newRig()
	r.fake.PrependReactor("get", "environmentconfigs", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "environmentconfigs"}, "capstan", nil)
	})
	out, err := r.run(t.Context(), planOrders, "plan", "-f", "-")
	if err != nil || !strings.Contains(out, "You may not read EnvironmentConfig capstan: it is taken as not there.") {
		t.Errorf("the output should name what was not read, got %v:\n%s", err, out)
	}
}
