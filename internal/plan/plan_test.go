// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/internal/steady"
)

var moment = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const orders = `{apiVersion: capstan.dev/v1alpha1, kind: Database, metadata: {name: orders, namespace: demo}, spec: {engine: postgres, version: "17", replicas: 2, storage: 10Gi}}`

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// A cluster of objects by their kinds and names, where a user may not read some kinds.
type cluster struct {
	objects map[string]map[string]any
	hidden  []string
}

func (c cluster) get(_ context.Context, of compose.Requirement) (map[string]any, error) {
	if slices.Contains(c.hidden, of.Kind.Kind) {
		return nil, apierrors.NewForbidden(schema.GroupResource{Group: of.Kind.Group, Resource: of.Kind.Kind}, of.Name, errors.New("no right"))
	}
	return c.objects[of.Kind.Kind+" "+of.Name], nil
}

// running Database, with everything that is composed of it.
func running(t *testing.T) map[string]map[string]any {
	t.Helper()
	p, err := Surroundings{Version: "v1", Now: moment}.Of(t.Context(), decoded(t, orders))
	if err != nil || !p.Ready {
		t.Fatalf("the Database should run: %v, %v", p.Waits, err)
	}
	all := map[string]map[string]any{"Database orders": p.End.XR}
	for _, o := range p.End.Objects {
		all[compose.Text(o, "kind")+" "+compose.Text(o, "metadata", "name")] = o
	}
	return all
}

// TestOf: what a user may not read changes nothing of the plan of an edit when it can be found out, and the plan says so.
func TestOf(t *testing.T) {
	objects := running(t)
	kinds := map[string]bool{}
	for _, o := range objects {
		if k := compose.Text(o, "kind"); k != "Database" {
			kinds[k] = true
		}
	}
	larger := strings.ReplaceAll(orders, "storage:", "plan: medium, storage:")
	restarts := steady.Stage{Changed: []string{"ConfigMap orders-00000000-config", "ConfigMap orders-members"}, Restarted: []string{"StatefulSet orders-a", "StatefulSet orders-b"}}
	cases := map[string]struct {
		reason  string
		text    string
		hidden  []string
		standIn bool
		most    int
		want    steady.Stage
		says    string
		fails   string
	}{
		"Same":      {reason: "What runs already changes nothing.", text: orders},
		"Edit":      {reason: "Another size restarts the members.", text: larger, want: restarts},
		"Forbidden": {reason: "Without a stand-in, a right that is missing ends the plan.", text: larger, hidden: []string{"RoleBinding"}, fails: "no right"},
		"StandIn": {
			reason: "What members need before they come stands in.", text: larger, hidden: []string{"RoleBinding", "Certificate", "Secret"}, standIn: true, want: restarts,
			says: "RoleBinding orders-members: each is taken to be as the planner makes it.",
		},
		"StandInSame": {reason: "A stand-in is no change.", text: orders, hidden: []string{"RoleBinding", "Certificate", "Credential", "Topology"}, standIn: true, says: "Topology orders"},
		"StandInAll": {
			reason: "What stands in for others follows from them.", text: larger, hidden: slices.Sorted(maps.Keys(kinds)), standIn: true, want: restarts,
			says: "VolumeClaim orders: each is taken",
		},
		"Settings": {reason: "Settings that cannot be read are the built-in ones.", text: larger, hidden: []string{"EnvironmentConfig"}, want: restarts, says: "You may not read EnvironmentConfig capstan: it is taken as not there."},
		"XR":       {reason: "The object itself has to be read.", text: orders, hidden: []string{"Database"}, standIn: true, fails: "no right"},
		"Most":     {reason: "The number of objects that are read has a bound.", text: orders, most: 3, fails: "at most 3 are read for a plan"},
		"Other":    {reason: "A kind of another API is refused.", text: "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", fails: "ConfigMap is no kind of Capstan's"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := Surroundings{Version: "v1", Now: moment, Get: cluster{objects, tc.hidden}.get, StandIn: tc.standIn, Most: tc.most}
			p, err := s.Of(t.Context(), decoded(t, tc.text))
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%s The error is %v, want %q", tc.reason, err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, p.Sum()); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if !p.Edit || !p.Ready || !p.Accepted() {
				t.Errorf("%s It is an edit %t, ready %t, accepted %t: %v", tc.reason, p.Edit, p.Ready, p.Accepted(), p.Waits)
			}
			if all := strings.Join(p.Assumptions, "\n"); !strings.Contains(all, tc.says) {
				t.Errorf("%s The assumptions lack %q:\n%s", tc.reason, tc.says, all)
			}
		})
	}
}

// TestRefused: what is not accepted has a plan that says why, and what takes too long has none.
func TestRefused(t *testing.T) {
	s := Surroundings{Version: "v1", Now: moment, Get: cluster{}.get}
	p, err := s.Of(t.Context(), decoded(t, strings.ReplaceAll(orders, "storage:", "plan: huge, storage:")))
	if err != nil || p.Accepted() || p.Edit || len(p.Stages) > 0 || !strings.Contains(strings.Join(p.Waits, "\n"), "spec.plan") {
		t.Errorf("the spec should not be accepted: %+v, %v", p.Result, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Of(ctx, decoded(t, orders)); !errors.Is(err, context.Canceled) {
		t.Errorf("a plan ends with its context: %v", err)
	}
}

// TestKinds that can be planned.
func TestKinds(t *testing.T) {
	if diff := cmp.Diff([]string{"Algorithm", "Database", "Experiment", "Pipeline", "Preview", "Training"}, Kinds("v1")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
