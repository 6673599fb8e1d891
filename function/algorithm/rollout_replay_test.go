// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

var rerecord = flag.Bool("record", false, "record the rollouts in testdata, and read the change like code")

// A frame of a recording is one pass: what had changed since the one before, and what changes in the plan. What is null is gone.
type frame struct {
	Now       time.Time                     `json:"now"`
	Says      string                        `json:"says"`
	Composite composetest.Object            `json:"composite,omitempty"`
	Observed  map[string]composetest.Object `json:"observed,omitempty"`
	Plan      map[string]any                `json:"plan"`
	Objects   map[string]any                `json:"objects,omitempty"`
}

// A tape is a recording: its frames one after the other.
type tape struct {
	composite composetest.Object
	observed  map[string]composetest.Object
	objects   map[string]any
}

func newTape() *tape {
	return &tape{observed: map[string]composetest.Object{}, objects: map[string]any{}}
}

// changes from one set of named things to another.
func changes[T any](before, after map[string]T) map[string]T {
	out := map[string]T{}
	for name := range before {
		if _, stays := after[name]; !stays {
			var gone T
			out[name] = gone
		}
	}
	for name, v := range after {
		if old, was := before[name]; !was || !reflect.DeepEqual(old, v) {
			out[name] = v
		}
	}
	return out
}

// changed set of named things.
func changed[T any](before, change map[string]T) map[string]T {
	after := maps.Clone(before)
	for name, v := range change {
		if reflect.ValueOf(&v).Elem().IsNil() {
			delete(after, name)
		} else {
			after[name] = v
		}
	}
	return after
}

// rewind a recording onto the next frame, as a request.
func (tp *tape) rewind(f frame) {
	if f.Composite != nil {
		tp.composite = f.Composite
	}
	tp.observed, tp.objects = changed(tp.observed, f.Observed), changed(tp.objects, f.Objects)
}

// request of the frame that the tape stands at.
func (tp *tape) request(w *world, now time.Time) compose.Request {
	r := w.request
	r.Now, r.Composite, r.Observed = now, tp.composite, map[string]compose.Object{}
	for resource, o := range tp.observed {
		r.Observed[resource] = o
	}
	return r
}

// planned is a plan without its objects, and those, as decoded JSON.
func planned(tb testing.TB, p *compose.Plan) (rest, objects map[string]any) {
	tb.Helper()
	if err := json.Unmarshal([]byte(marshalled(tb, p)), &rest); err != nil {
		tb.Fatal(err)
	}
	objects = compose.Map(rest, "Objects")
	delete(rest, "Objects")
	return rest, objects
}

// films a rollout pass by pass.
type films struct {
	*world

	tape   *tape
	frames []frame
}

// pass is planned, recorded, composed and told.
func (fs *films) pass(says string) {
	fs.t.Helper()
	f := frame{Now: fs.request.Now, Says: says}
	observed := map[string]composetest.Object{}
	for resource, o := range fs.request.Observed {
		observed[resource] = bare(fs.t, o)
	}
	xr := bare(fs.t, fs.request.Composite)
	if !reflect.DeepEqual(xr, fs.tape.composite) {
		f.Composite = xr
	}
	f.Observed = changes(fs.tape.observed, observed)
	fs.tape.rewind(f)
	p, err := Plan(fs.tape.request(fs.world, f.Now))
	if err != nil {
		fs.t.Fatal(err)
	}
	rest, objects := planned(fs.t, p)
	f.Plan, f.Objects = rest, changes(fs.tape.objects, objects)
	fs.tape.objects = objects
	fs.frames = append(fs.frames, f)
	fs.compose(p)
	fs.told(p)
}

// bare object: without the account of who wrote what.
func bare(tb testing.TB, o compose.Object) composetest.Object {
	tb.Helper()
	out, err := composetest.Decode(o.Map())
	if err != nil {
		tb.Fatal(err)
	}
	delete(compose.Map(out, "metadata"), "managedFields")
	return out
}

// goes on until the rollout is in a phase, with what Kubernetes and the Gateway do.
func (fs *films) until(want, says string) {
	fs.t.Helper()
	for range 12 {
		fs.pass(says)
		for _, slot := range []string{names.SlotA, names.SlotB} {
			if fs.occupied(slot) {
				fs.runIn(slot, nil)
			}
		}
		if fs.request.Observed[names.Route] != nil {
			fs.accept()
		}
		fs.later(10 * time.Second)
		if standsAt(fs.t, fs.plan()) == want {
			fs.pass(says)
			return
		}
	}
	fs.t.Fatalf("it does not come to %s: %s", want, standsAt(fs.t, fs.plan()))
}

const filmed = "{image: %q, replicas: 4, route: {gateway: {name: shared, namespace: gateway}}, lifecycle: {steps: [10, 50], soak: 1m, bake: 5m}}"

// looked at Prometheus, after a time.
func (fs *films) looked(after time.Duration, verdicts, says string) {
	fs.later(after)
	fs.judge(verdicts)
	fs.pass(says)
}

// rollouts that are recorded.
var rollouts = map[string]func(fs *films){
	"rollout-promoted": func(fs *films) {
		fs.until("Stepping/Soaking", "the first share of callers")
		fs.looked(30*time.Second, "II", "too few requests yet")
		fs.looked(30*time.Second, "IIPPP", "enough of them, and all is well")
		fs.until("Stepping/Soaking", "the second share of callers")
		fs.looked(70*time.Second, "PPP", "all is well")
		fs.until("Baking", "all callers go over")
		fs.pass("the one before it stays")
		fs.looked(time.Minute, "PP", "all is well")
		for range 4 {
			fs.looked(time.Minute, "PPPPPP", "and remains so")
		}
		fs.until("Stable", "the one before it ends")
		fs.pass("all is calm")
	},
	"rollout-rolled-back": func(fs *films) {
		fs.until("Stepping/Soaking", "the first share of callers")
		fs.looked(30*time.Second, "IF", "it may be chance")
		fs.looked(30*time.Second, "IFF", "it is not")
		fs.until("RollingBack/MetricFailed", "requests are finished")
		fs.later(30 * time.Second)
		fs.until("RolledBack/RolledBack", "the candidate ends")
		fs.pass("all is calm")
	},
}

// TestRolloutReplay plans recorded rollouts again, byte for byte.
func TestRolloutReplay(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(rollouts)) {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".yaml")
			w := serving(t, "{image: x}")
			if *rerecord {
				writeFilm(t, file, rollouts[name])
			}
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tp, phases := newTape(), []v1alpha1.RolloutPhase{}
			for _, doc := range bytes.Split(raw, []byte("---\n"))[1:] {
				var f frame
				if err := yaml.UnmarshalStrict(doc, &f); err != nil {
					t.Fatal(err)
				}
				tp.rewind(f)
				p, err := Plan(tp.request(w, f.Now))
				if err != nil {
					t.Fatal(err)
				}
				rest, objects := planned(t, p)
				if diff := cmp.Diff(asBytes(t, f.Plan, tp.objects), asBytes(t, rest, objects)); diff != "" {
					t.Fatalf("%s, %s: -recorded, +now:\n%s\nread the change, then go test -run %s -record", f.Now, f.Says, diff, t.Name())
				}
				if l, ok := rollout.ParseLedger(ledgerText(object(t, p, names.Service))); ok && (len(phases) == 0 || phases[len(phases)-1] != l.Standing()) {
					phases = append(phases, l.Standing())
				}
			}
			want := []v1alpha1.RolloutPhase{"Stable", "Preparing", "Stepping", "Promoting", "Baking", "Draining", "Stable"}
			if name == "rollout-rolled-back" {
				want = []v1alpha1.RolloutPhase{"Stable", "Preparing", "Stepping", "RollingBack", "RolledBack"}
			}
			if diff := cmp.Diff(want, phases); diff != "" {
				t.Errorf("phases: -want, +got:\n%s", diff)
			}
		})
	}
}

// asBytes of a plan, in lines.
func asBytes(tb testing.TB, rest, objects map[string]any) string {
	tb.Helper()
	raw, err := json.MarshalIndent(map[string]any{"plan": rest, "objects": objects}, "", " ")
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}

func writeFilm(t *testing.T, file string, act func(fs *films)) {
	t.Helper()
	fs := &films{world: serving(t, "{image: x}"), tape: newTape()}
	fs.edit(fmt.Sprintf(filmed, "x"))
	fs.settle()
	fs.settle()
	fs.told(fs.plan())
	fs.told(fs.plan())
	fs.pass("at rest")
	fs.edit(fmt.Sprintf(filmed, "z"))
	act(fs)
	var out bytes.Buffer
	for _, f := range fs.frames {
		raw, err := yaml.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(raw)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
