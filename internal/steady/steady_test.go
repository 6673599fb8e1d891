// SPDX-License-Identifier: Apache-2.0

package steady

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/planners"
	"github.com/capstan-dev/capstan/function/release"
	"github.com/capstan-dev/capstan/function/settings"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// library with the settings of a platform that sets nothing.
func library(tb testing.TB, kind string) Library {
	tb.Helper()
	rel := release.Release{Version: "v1"}
	st, err := settings.Of(rel, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return Library{Planner: planners.Of(rel)[schema.GroupKind{Group: "capstan.dev", Kind: kind}], Settings: st}
}

// manifest of a kind with a spec.
func manifest(tb testing.TB, kind, spec string) map[string]any {
	tb.Helper()
	var o map[string]any
	text := `{apiVersion: capstan.dev/v1alpha1, kind: ` + kind + `, metadata: {name: x, namespace: demo}, spec: ` + spec + `}`
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		tb.Fatal(err)
	}
	return o
}

// created with a spec, to its end.
func created(tb testing.TB, kind, spec string) Result {
	tb.Helper()
	r, err := Run(tb.Context(), New(manifest(tb, kind, spec), now), nil, library(tb, kind).Pass)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// edited from one spec, which runs, to another.
func edited(tb testing.TB, kind, from, to string) Result {
	tb.Helper()
	first := created(tb, kind, from)
	if !first.Ready {
		tb.Fatalf("what is edited should be ready: %v", first.Waits)
	}
	l := library(tb, kind)
	was, will := Edit(first.End.XR, manifest(tb, kind, to), first.End.Objects, first.End.Now)
	before, err := l.Pass(tb.Context(), was)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := Run(tb.Context(), will, before.Objects, l.Pass)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

const (
	database  = `{engine: postgres, version: "17", replicas: 3, storage: 50Gi}`
	algorithm = `{image: "registry.example.org/reco:1", replicas: 2}`
)

// TestStages: members of a Database come after what they need, and the end is ready.
func TestStages(t *testing.T) {
	r := created(t, "Database", database)
	stage := func(o string) int {
		return slices.IndexFunc(r.Stages, func(s Stage) bool { return slices.Contains(s.Created, o) })
	}
	if a, b, c := stage("Credential x-access"), stage("ConfigMap x-members"), stage("StatefulSet x-a"); a != 0 || b <= a || c <= b {
		t.Errorf("the Credential, the ConfigMap and the StatefulSet come in stages %d, %d and %d", a, b, c)
	}
	if !r.Ready || len(r.Waits) > 0 || len(r.Assumptions) == 0 {
		t.Errorf("it should be ready under assumptions, got %+v", r)
	}
	var out strings.Builder
	if err := r.Write(&out); err != nil || !strings.Contains(out.String(), "In the end 23 objects come, 0 change, 0 restart and 0 go.\nIt is ready.") {
		t.Errorf("the report is %s, %v", out.String(), err)
	}
}

func TestEdit(t *testing.T) {
	cases := map[string]struct {
		reason         string
		kind, from, to string
		created        []string
		changed        []string
		restarted      []string
		removed        []string
		pause          bool
	}{
		"Nothing": {
			reason: "The same spec changes nothing.", kind: "Database", from: database, to: database,
		},
		"Consumer": {
			reason: "A consumer has a Credential, and its login is made. No member restarts.", kind: "Database", from: database,
			to:      `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, consumers: [{name: app}, {name: audit, access: ReadOnly}]}`,
			created: []string{"Credential x-audit"}, changed: []string{"Access x"},
		},
		"Memory": {
			reason: "Memory restarts every member, one after the other, and writes pause.", kind: "Database", from: database,
			to:        `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, plan: medium}`,
			restarted: []string{"StatefulSet x-a", "StatefulSet x-b", "StatefulSet x-c"}, pause: true,
		},
		"Image": {
			reason: "Another image runs beside the old one, which goes later.", kind: "Algorithm", from: algorithm,
			to: `{image: "registry.example.org/reco:2", replicas: 2}`, created: []string{"Deployment x-b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := edited(t, tc.kind, tc.from, tc.to)
			sum := r.Sum()
			missing := func(want, got []string) []string {
				return slices.DeleteFunc(slices.Clone(want), func(o string) bool { return slices.Contains(got, o) })
			}
			for what, lack := range map[string][]string{
				"comes": missing(tc.created, sum.Created), "changes": missing(tc.changed, sum.Changed), "restarts": missing(tc.restarted, sum.Restarted),
				"goes": missing(tc.removed, sum.Removed),
			} {
				if len(lack) > 0 {
					t.Errorf("%s %v should be in what %s: %+v", tc.reason, lack, what, sum)
				}
			}
			if tc.restarted == nil && len(sum.Restarted) > 0 {
				t.Errorf("%s Nothing should restart, got %v", tc.reason, sum.Restarted)
			}
			if (r.Pause != "") != tc.pause || (len(r.Effects) > 0) != tc.pause {
				t.Errorf("%s The pause is %q, effects %v", tc.reason, r.Pause, r.Effects)
			}
			if tc.from == tc.to && len(r.Stages) > 0 {
				t.Errorf("%s There are stages %+v", tc.reason, r.Stages)
			}
			if !r.Ready {
				t.Errorf("%s It is not ready: %v", tc.reason, r.Waits)
			}
		})
	}
}

// TestRefused: what is not accepted becomes nothing, and the end says why.
func TestRefused(t *testing.T) {
	r := created(t, "Database", `{engine: postgres, version: "17", replicas: 3, storage: 50Gi, plan: huge}`)
	if len(r.Stages) > 0 || r.Ready || !slices.ContainsFunc(r.Waits, func(w string) bool { return strings.Contains(w, "spec.plan") }) {
		t.Errorf("nothing should come, and the end should name spec.plan: %+v", r)
	}
}

// existing are the kinds that are ready by existing. Of every other kind that is composed the table says what ready means.
var existing = []string{
	"ConfigMap", "ControllerRevision", "CronJob", "HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget", "PodMonitor", "PrometheusRule", "ResourceClaimTemplate",
	"Role", "RoleBinding", "Secret", "Service", "ServiceAccount", "ServiceMonitor", "Ingress", "Run", "FlinkJob", "JobHistory",
}

// TestExamples: every example comes to an end, the same each time, and the table knows each kind that is composed.
func TestExamples(t *testing.T) {
	for _, kind := range []string{"Algorithm", "Database", "Training", "Pipeline"} {
		examples, err := composetest.Examples(filepath.Join("../../examples", strings.ToLower(kind)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(examples)) {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				var ends [2]string
				for i := range ends {
					r, err := Run(t.Context(), New(examples[name].XR, now), nil, library(t, kind).Pass)
					if err != nil {
						t.Fatal(err)
					}
					ends[i] = fmt.Sprintf("%+v", r) // maps in the order of their keys
					for _, o := range r.End.Objects {
						k := fmt.Sprint(o["kind"])
						if _, known := table[k]; !known && !slices.Contains(existing, k) {
							t.Errorf("neither the table nor the list of kinds that are ready by existing has %s", k)
						}
					}
				}
				if diff := cmp.Diff(ends[0], ends[1]); diff != "" {
					t.Errorf("-once, +again:\n%s", diff)
				}
			})
		}
	}
}
