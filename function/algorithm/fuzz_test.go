// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	xpapis "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// FuzzPlan plans an edit from one spec to another, with some of the observed objects gone from sight and a condition Synced of
// any words, and holds every plan to what must be true of all of them.
func FuzzPlan(f *testing.F) {
	for _, s := range []string{
		`{"image":"x"}`, fullJSON(f), `{"replicas":-1}`, `[]`, `{"image":"x","config":{"a":"b"}}`,
		`{"image":"x","model":{"from":"s3","s3":{"uri":"s3://models/a"},"cache":{"size":"1Gi"}},"probes":{"warmUp":{"path":"/","body":"x"}}}`,
		`{"image":"x","model":{"from":"registry","registry":{"name":"a","alias":"b"}},"route":{"gateway":{"name":"g"}},"metrics":{}}`,
	} {
		f.Add("reco", []byte(s), []byte(fullJSON(f)), uint16(0), "")
		f.Add(strings.Repeat("a", 63), []byte(`{"image":"x"}`), []byte(s), uint16(0x5), `cannot apply composed resource "pdb-a": no`)
	}
	server := composetest.NewServer()
	f.Fuzz(func(t *testing.T, name string, before, after []byte, hidden uint16, synced string) {
		w := newWorld(t, "{}").named(name)
		w.server = server
		for i, raw := range [][]byte{before, after} {
			var spec map[string]any
			if err := json.Unmarshal(raw, &spec); err != nil {
				return
			}
			xr := composetest.Object(maps.Clone(w.request.Composite.Map()))
			xr["spec"] = spec
			w.request.Composite = xr
			p, err := Plan(w.request)
			if name == "" {
				if err == nil {
					t.Error("a composite resource without a name is planned")
				}
				return
			}
			if err != nil {
				t.Fatalf("what a user wrote is an error: %v", err)
			}
			hold(t, w, p)
			if i == 0 {
				w.compose(p)
				w.compose(w.plan()) // the first pods wait for their ServiceAccount
				rest(t, w)
				hide(w, hidden)
				w.synced(synced, nil)
			}
		}
	})
}

// hold a plan to what must be true of all of them.
func hold(t *testing.T, w *world, p *compose.Plan) {
	t.Helper()
	if diff := cmp.Diff(marshalled(t, p), marshalled(t, w.plan())); diff != "" {
		t.Errorf("the same request has two plans:\n%s", diff)
	}
	if p.TTL < time.Second || p.TTL > 30*time.Minute {
		t.Errorf("TTL: got %s", p.TTL)
	}
	if len(p.Conditions) < 4 {
		t.Errorf("got %d conditions, want at least those that are always told", len(p.Conditions))
	}
	for _, c := range p.Conditions {
		if xpapis.IsSystemConditionType(c.Type) {
			t.Errorf("Crossplane keeps condition %s for itself and drops it", c.Type)
		}
		if c.Reason == "" || c.Message == "" || len(c.Message) > 32768 {
			t.Errorf("condition %s has reason %q and a message of %d bytes", c.Type, c.Reason, len(c.Message))
		}
	}

	// What the same spec would have when nothing is known is what it wants.
	wanted := *w
	wanted.request.Observed = nil
	wanted.synced("", nil)
	want := wanted.plan()
	bad := condition(p, v1alpha1.TypeAccepted).Status == "False"
	for resource := range w.request.Observed {
		// Which slot is which depends on what is known.
		if strings.HasSuffix(resource, "-a") || strings.HasSuffix(resource, "-b") {
			continue
		}
		_, wants := want.Objects[resource]
		if _, kept := p.Objects[resource]; (wants || bad) && !kept {
			t.Errorf("%s exists, is wanted and would be deleted", resource)
		}
	}
	if bad && len(p.Objects) != len(w.request.Observed) {
		t.Errorf("a bad spec has %d objects where %d exist", len(p.Objects), len(w.request.Observed))
	}
	for resource := range p.Objects {
		o := object(t, p, resource)
		if o == nil {
			continue // an idle Deployment
		}
		if errs := validation.IsDNS1035Label(compose.Text(o, "metadata", "name")); len(errs) > 0 {
			t.Errorf("%s has a bad name: %v", resource, errs)
		}
		if ns := compose.Text(o, "metadata", "namespace"); ns != "" && ns != "shop" {
			t.Errorf("%s is in namespace %q", resource, ns)
		}
	}
}

// rest composes until plans no longer change, which takes one pass after the pods serve.
func rest(t *testing.T, w *world) {
	t.Helper()
	if !w.occupied(names.SlotA) {
		return
	}
	w.update()
	w.later(time.Hour)
	w.update()
	p := w.plan()
	before := w.request.Observed
	w.compose(p)
	if diff := cmp.Diff(before, w.request.Observed); diff != "" {
		t.Errorf("an applied plan changes objects: -before, +after:\n%s", diff)
	}
	if diff := cmp.Diff(marshalled(t, p), marshalled(t, w.plan())); diff != "" {
		t.Errorf("an applied plan changes: -before, +after:\n%s", diff)
	}
	if !p.Ready {
		t.Errorf("everything is there and serves, and it is not ready: %v", p.Conditions)
	}
}

// hide observed objects by the bits of a mask.
func hide(w *world, mask uint16) {
	for i, resource := range slices.Sorted(maps.Keys(w.request.Observed)) {
		if mask&(1<<i) != 0 {
			delete(w.request.Observed, resource)
		}
	}
}

func marshalled(tb testing.TB, p *compose.Plan) string {
	tb.Helper()
	raw, err := json.Marshal(any(p))
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}

func fullJSON(tb testing.TB) string {
	tb.Helper()
	raw, err := json.Marshal(parse(tb, full))
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}

func BenchmarkPlan(b *testing.B) {
	for name, spec := range map[string]string{"basic": "{image: x, replicas: 3}", "full": full} {
		w := serving(b, spec)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Plan(w.request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
