// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	kubetesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/plugin/internal/cluster"
)

// moment of all tests.
var moment = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// reco is in a step.
const reco = `
apiVersion: capstan.dev/v1alpha1
kind: Algorithm
metadata: {name: reco, namespace: demo, resourceVersion: "77"}
spec:
  image: registry.example.org/algo/reco:2.1.4
  replicas: 2
  lifecycle: {steps: [20, 50], approval: EveryStep}
  rollout: {approve: ["51aa51aa51"]}
status:
  phase: Progressing
  replicas: 3
  readyReplicas: 3
  rollout: {phase: Stepping, epoch: 3, weight: 20, stable: 51aa51aa51, candidate: 7c9f7c9f7c}
  revision: {live: 51aa51aa51, slot: a}
`

// orders runs.
const orders = `
apiVersion: capstan.dev/v1alpha1
kind: Database
metadata: {name: orders, namespace: demo}
spec:
  engine: postgres
  version: "17"
  replicas: 2
  storage: 10Gi
  backup: {retention: 7d}
  consumers: [{name: api}]
  maintenance: {approval: Manual}
  restore: {id: earlier, at: "2026-11-25T08:00:00Z", keepOldFor: 48h}
status:
  phase: Running
  replicas: 2
  readyReplicas: 2
  leader: orders-g2-a
  members: [{name: orders-g2-a, role: Leader, state: Running, updated: true}, {name: orders-g2-b, role: SyncStandby, state: Streaming, updated: true}]
  connectionSecrets: [{consumer: api, secret: orders-api, ready: true}]
  backup: {last: {id: F1, at: "2026-11-26T02:00:00Z"}, earliestRestorable: "2026-11-25T02:00:00Z"}
  restore: {id: earlier, phase: Done, from: 1, to: 2}
  generation: {active: 2, kept: [{generation: 1, restore: earlier, until: "2026-11-27T00:00:00Z"}]}
`

// every act, what it is given, and the paths that it may change.
var everyAct = map[string]struct {
	object string
	edit   func(spec, status map[string]any)
	args   []string
	paths  []string
}{
	"pause":        {object: reco, paths: []string{"spec.rollout.pause"}},
	"resume":       {object: reco, edit: func(spec, _ map[string]any) { spec["rollout"] = map[string]any{"pause": true} }, paths: []string{"spec.rollout.pause"}},
	"approve":      {object: reco, paths: []string{"spec.rollout.approve"}},
	"promote":      {object: reco, paths: []string{"spec.rollout.promote"}},
	"abort":        {object: reco, paths: []string{"spec.rollout.abort"}},
	"retry":        {object: reco, edit: fails, paths: []string{"spec.rollout.retry"}},
	"switchover":   {object: orders, args: []string{"--to=orders-g2-b"}, paths: []string{"spec.switchover.id", "spec.switchover.to"}},
	"backup":       {object: orders, paths: []string{"spec.backup.now"}},
	"restore":      {object: orders, args: []string{"--at=2026-11-26T08:59:00Z"}, paths: []string{"spec.restore.at", "spec.restore.id", "spec.restore.keepOldFor"}},
	"undo":         {object: orders, paths: []string{"spec.restore.at", "spec.restore.id", "spec.restore.keepOldFor", "spec.restore.undo"}},
	"hibernate":    {object: orders, paths: []string{"spec.hibernated"}},
	"wake":         {object: orders, edit: func(spec, _ map[string]any) { spec["hibernated"] = true }, paths: []string{"spec.hibernated"}},
	"rotate":       {object: orders, paths: []string{"spec.credentials.id"}},
	"reinitialize": {object: orders, args: []string{"--member=orders-g2-b"}, paths: []string{"spec.reinitialize.id", "spec.reinitialize.member"}},
	"fence":        {object: orders, args: []string{"--member=orders-g2-b"}, paths: []string{"spec.fence.id", "spec.fence.member"}},
	"unfence":      {object: orders, edit: func(spec, _ map[string]any) { spec["fence"] = map[string]any{"id": "1", "member": "orders-g2-b"} }, paths: []string{"spec.fence.id", "spec.fence.member"}},
}

// fails puts the rollout where its revision was rolled back.
func fails(_, status map[string]any) {
	status["rollout"] = map[string]any{
		"phase": "RolledBack", "epoch": int64(4), "weight": int64(0), "candidate": "7c9f7c9f7c",
		"failed": []any{map[string]any{"revision": "7c9f7c9f7c", "reason": "MetricFailed", "at": "2026-11-26T11:00:00Z", "attempts": int64(1), "retryAfter": "2026-11-26T11:10:00Z"}},
	}
}

func object(t *testing.T, text string, edit func(spec, status map[string]any)) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(u.Object["spec"].(map[string]any), u.Object["status"].(map[string]any))
	}

	return u
}

// A rig is a plugin that talks to objects in memory.
type rig struct {
	*plugin

	fake *fake.FakeDynamicClient
}

func newRig(objects ...runtime.Object) rig {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		cluster.Algorithms: "AlgorithmList", cluster.Databases: "DatabaseList", cluster.Pods: "PodList", cluster.Deployments: "DeploymentList",
		cluster.Events: "EventList", cluster.Analyses: "AnalysisList", cluster.Previews: "PreviewList",
	}, objects...)
	c := &cluster.Cluster{Dynamic: client, Namespace: "demo"}

	return rig{fake: client, plugin: &plugin{connect: func() (*cluster.Cluster, error) { return c, nil }, now: func() time.Time { return moment }}}
}

// run a command line, and return what it writes.
func (r rig) run(ctx context.Context, in string, args ...string) (string, error) {
	var out bytes.Buffer
	root := r.root()
	root.PersistentFlags().String("context", "", "one of the flags that the program itself adds")
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetIn(strings.NewReader(in))
	err := root.ExecuteContext(ctx)

	return out.String(), err
}

func (r rig) patches() []kubetesting.PatchActionImpl {
	var all []kubetesting.PatchActionImpl
	for _, a := range r.fake.Actions() {
		if p, ok := a.(kubetesting.PatchActionImpl); ok {
			all = append(all, p)
		}
	}

	return all
}

// TestEveryAct runs each act, and expects that it changes its own fields only, under the plugin's name.
func TestEveryAct(t *testing.T) {
	for name, tc := range everyAct {
		t.Run(name, func(t *testing.T) {
			before := object(t, tc.object, tc.edit)
			r := newRig(before.DeepCopy())
			out, err := r.run(t.Context(), "", append([]string{name, before.GetName(), "--yes"}, tc.args...)...)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			patches := r.patches()
			if len(patches) != 1 || patches[0].PatchOptions.FieldManager != cluster.FieldManager {
				t.Fatalf("want one patch by %s, got %+v", cluster.FieldManager, patches)
			}
			after, err := r.fake.Resource(patches[0].Resource).Namespace("demo").Get(t.Context(), before.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.paths, changed(before.Object, after.Object)); diff != "" {
				t.Errorf("changed fields: -want, +got:\n%s\npatch: %s", diff, patches[0].Patch)
			}
		})
	}
	var acts []string
	for _, c := range newRig().root().Commands() {
		if c.Flags().Lookup("print") != nil && c.GroupID != groupPreview {
			acts = append(acts, c.Name())
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(everyAct)), slices.Sorted(slices.Values(acts))); diff != "" {
		t.Errorf("acts without a case: -tested, +commands:\n%s", diff)
	}
}

// changed paths between two objects, sorted. Lists are compared as a whole.
func changed(before, after map[string]any) []string {
	var paths []string
	var walk func(path string, a, b any)
	walk = func(path string, a, b any) {
		x, isMap := a.(map[string]any)
		y, isMapToo := b.(map[string]any)
		if !isMap && a != nil || !isMapToo && b != nil || a == nil && b == nil {
			if !cmp.Equal(a, b) {
				paths = append(paths, strings.TrimPrefix(path, "."))
			}

			return
		}
		names := map[string]bool{}
		for n := range x {
			names[n] = true
		}
		for n := range y {
			names[n] = true
		}
		for _, n := range slices.Sorted(maps.Keys(names)) {
			walk(path+"."+n, x[n], y[n])
		}
	}
	walk("", before, after)

	return paths
}

func TestPrint(t *testing.T) {
	r := newRig(object(t, orders, nil))
	out, err := r.run(t.Context(), "", "undo", "database/orders", "--print")
	if err != nil {
		t.Fatal(err)
	}
	want := `# Generation 1 becomes live again, with every commit that it had before restore earlier.
# Commits since the restore are then only in generation 2, which is kept. Writes pause for some seconds, and open connections end.
# Merge this into the manifest of Database orders of namespace demo:
# Remove spec.restore.at.
# Remove spec.restore.id.
# Remove spec.restore.keepOldFor.
spec:
  restore:
    undo: earlier
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if p := r.patches(); len(p) > 0 {
		t.Errorf("--print changed something: %+v", p)
	}
}

func TestAgree(t *testing.T) {
	pipe, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	cases := map[string]struct {
		reason  string
		args    []string
		in      string
		noInput bool
		patched bool
		err     string
	}{
		"Yes":      {reason: "Who answers yes goes on.", args: []string{"switchover", "orders"}, in: "yes\n", patched: true},
		"No":       {reason: "Everything else is no.", args: []string{"switchover", "orders"}, in: "\n", err: "nothing was changed"},
		"Nobody":   {reason: "A script has to say it.", args: []string{"switchover", "orders"}, noInput: true, err: "there is no terminal: add --yes"},
		"Flag":     {reason: "It says it.", args: []string{"switchover", "orders", "--yes"}, noInput: true, patched: true},
		"Harmless": {reason: "A backup interrupts nobody.", args: []string{"backup", "orders"}, noInput: true, patched: true},
		"Refused":  {reason: "What cannot be is not asked.", args: []string{"switchover", "orders", "--to=orders-g2-a"}, in: "yes\n", err: "cannot switchover database orders: member orders-g2-a is the leader already"},
		"WrongWay": {reason: "A kind has its own acts.", args: []string{"switchover", "algorithm/reco"}, err: "it is for a database"},
		"Unknown":  {reason: "It helps to find the right one.", args: []string{"backup", "nobody"}, err: "there is no Database nobody in namespace demo"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(object(t, orders, nil), object(t, reco, nil))
			root := r.root()
			var out bytes.Buffer
			root.SetArgs(tc.args)
			root.SetOut(&out)
			root.SetIn(strings.NewReader(tc.in))
			if tc.noInput {
				root.SetIn(pipe)
			}
			err := root.ExecuteContext(t.Context())
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nwant error %q, got %v", tc.reason, tc.err, err)
			}
			if got := len(r.patches()) == 1; got != tc.patched {
				t.Errorf("%s\nwant a patch %t, got %t\n%s", tc.reason, tc.patched, got, out.String())
			}
		})
	}
}

// TestGit: who edits what Git manages is told.
func TestGit(t *testing.T) {
	u := object(t, orders, nil)
	u.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": "x"})
	out, err := newRig(u).run(t.Context(), "", "backup", "orders")
	if err != nil || !strings.Contains(out, "Argo CD manages this object and may revert the edit") {
		t.Errorf("got %q, %v", out, err)
	}
}

// TestConflict: an approval is decided a second time when others edited the object meanwhile.
func TestConflict(t *testing.T) {
	r := newRig(object(t, reco, nil))
	tried := 0
	r.fake.PrependReactor("patch", "algorithms", func(kubetesting.Action) (bool, runtime.Object, error) {
		tried++
		if tried > 1 {
			return false, nil, nil
		}

		return true, nil, apierrors.NewConflict(cluster.Algorithms.GroupResource(), "reco", errors.New("edited"))
	})
	if out, err := r.run(t.Context(), "", "approve", "reco"); err != nil || tried != 2 {
		t.Errorf("want two attempts, got %d, %v\n%s", tried, err, out)
	}
}

// TestWait: progress is printed as it changes, and the end has an exit code.
func TestWait(t *testing.T) {
	cases := map[string]struct {
		reason   string
		outcomes []string
		want     string
		code     int
	}{
		"Done":   {reason: "It is over.", outcomes: []string{"", "Asked", "Asked", "Done"}, want: "   0.0 s  the request has not been read yet\n   1.0 s  Asked: member Unknown to Unknown\n   3.0 s  Done: member Unknown to Unknown\n"},
		"Failed": {reason: "It is over, and in vain.", outcomes: []string{"Failed"}, want: "   0.0 s  Failed: member Unknown to Unknown\n", code: 1},
		"Late":   {reason: "Nobody waits for ever.", outcomes: []string{"Waiting"}, want: "   0.0 s  Waiting: member Unknown to Unknown\n", code: late},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(object(t, orders, nil))
				reads := 0
				r.fake.PrependReactor("get", "databases", func(kubetesting.Action) (bool, runtime.Object, error) {
					reads++
					u := object(t, orders, func(_, status map[string]any) {
						if reads < 2 {
							return
						}
						if o := tc.outcomes[min(reads-2, len(tc.outcomes)-1)]; o != "" {
							status["switchover"] = map[string]any{"id": "now", "outcome": o}
						}
					})

					return true, u, nil
				})
				out, err := r.run(t.Context(), "", "switchover", "orders", "--yes", "--id=now", "--wait", "--timeout=10s")
				_, progress, _ := strings.Cut(out, "is edited.\n")
				if diff := cmp.Diff(tc.want, progress); diff != "" {
					t.Errorf("%s\nprogress: -want, +got:\n%s", tc.reason, diff)
				}
				code := 0
				if e := (exit{}); errors.As(err, &e) {
					code = e.code
				} else if err != nil {
					code = 1
				}
				if code != tc.code {
					t.Errorf("%s\nwant exit code %d, got %v", tc.reason, tc.code, err)
				}
			})
		})
	}
}
