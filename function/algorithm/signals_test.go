// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// signalled sets the Signals that the observed Analysis reports beside what it knows, each until a minute from now.
func (w *world) signalled(all ...observev1alpha1.ActiveSignal) {
	w.t.Helper()
	for i := range all {
		all[i].Until = metav1.NewTime(w.request.Now.Add(time.Minute))
	}
	told, err := compose.AsMap(observev1alpha1.AnalysisObservation{Signals: all})
	if err != nil {
		w.t.Fatal(err)
	}
	w.change(names.Analysis, func(o composetest.Object) {
		at := maps.Clone(compose.Map(o, "status", "atProvider"))
		if at == nil {
			at = map[string]any{}
		}
		at["signals"] = told["signals"]
		o["status"] = map[string]any{"atProvider": at}
	})
}

// TestSignalRaisesReplicas shows that a Signal raises the least number of an autoscaler for as long as it lasts, within the spec's bounds.
func TestSignalRaisesReplicas(t *testing.T) {
	w := serving(t, byLoad)
	w.provided(compose.Available)
	w.compose(w.plan())
	least := func() int64 {
		t.Helper()
		p := w.plan()
		w.compose(p)
		return compose.Number(w.request.Observed[names.Autoscaler(names.SlotA)].Map(), 0, "spec", "forProvider", "autoscaler", "minReplicas")
	}
	raise := func(n int32) observev1alpha1.ActiveSignal {
		return observev1alpha1.ActiveSignal{Name: "sale", UID: "u", Do: string(eventsv1alpha1.ActMinReplicas), Replicas: n}
	}
	for _, step := range []struct {
		reason string
		do     func()
		want   int64
	}{
		{"without one the spec counts", func() {}, 2},
		{"more than the spec", func() { w.signalled(raise(6)) }, 6},
		{"less changes nothing", func() { w.signalled(raise(1)) }, 2},
		{"at most what the spec allows", func() { w.signalled(raise(100)) }, 9},
		{"one that has ended counts no more, although the provider still reports it", func() { w.later(time.Minute) }, 2},
	} {
		step.do()
		if got := least(); got != step.want {
			t.Errorf("%s: minReplicas is %d, want %d", step.reason, got, step.want)
		}
	}
}

// TestSignalStatus shows that the status lists what is in force, and says what has no effect.
func TestSignalStatus(t *testing.T) {
	cases := map[string]struct {
		reason, spec string
		do           eventsv1alpha1.Act
		want         string
	}{
		"Holds":       {"it holds rollouts", "{image: x, lifecycle: {}}", eventsv1alpha1.ActHold, ""},
		"NoRollouts":  {"there is nothing to hold", "{image: x}", eventsv1alpha1.ActHold, "spec.lifecycle is not set, so that there are no rollouts"},
		"NoScaling":   {"there is nothing to raise", "{image: x}", eventsv1alpha1.ActMinReplicas, "spec.scaling is not set: set it, or edit spec.replicas"},
		"WithScaling": {"it raises the least number", byLoad, eventsv1alpha1.ActMinReplicas, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, tc.spec)
			w.signalled(observev1alpha1.ActiveSignal{Name: "errors", UID: "u", Do: string(tc.do), Replicas: 3, Cause: "alertmanager: Errors"})
			st, ok := w.plan().Status.(v1alpha1.AlgorithmStatus)
			if !ok {
				t.Fatal("there is no status of an Algorithm")
			}
			want := []v1alpha1.SignalStatus{{Name: "errors", Do: string(tc.do), Cause: "alertmanager: Errors", Ignored: tc.want}}
			if diff := cmp.Diff(want, st.Signals, cmpopts.IgnoreFields(v1alpha1.SignalStatus{}, "Until")); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSignalAborts shows that a Signal takes traffic back from the revision that it names, and from no other.
func TestSignalAborts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		revision func(candidate string) string
		want     v1alpha1.RolloutPhase
	}{
		"Candidate": {"the revision under test", func(c string) string { return c }, v1alpha1.RolloutRollingBack},
		"Another":   {"another revision is not under test", func(string) string { return "0123456789" }, v1alpha1.RolloutStepping},
	} {
		t.Run(name, func(t *testing.T) {
			const spec = "{image: %s, replicas: 4, lifecycle: {canaryWeight: 50, soak: 1h, bake: 10m}}"
			w := serving(t, fmt.Sprintf(spec, "x:1"))
			w.edit(fmt.Sprintf(spec, "x:2"))
			for range 4 {
				w.settle()
				w.later(time.Minute)
				w.judges("II")
			}
			st, _ := w.plan().Status.(v1alpha1.AlgorithmStatus)
			if st.Rollout == nil || st.Rollout.Phase != v1alpha1.RolloutStepping {
				t.Fatalf("want a candidate under test, got %+v", st.Rollout)
			}
			w.signalled(observev1alpha1.ActiveSignal{Name: "errors", UID: "u", Do: string(eventsv1alpha1.ActAbort), Revision: tc.revision(st.Rollout.Candidate)})
			st, _ = w.plan().Status.(v1alpha1.AlgorithmStatus)
			if st.Rollout == nil || st.Rollout.Phase != tc.want {
				t.Errorf("%s: want phase %s, got %+v", tc.reason, tc.want, st.Rollout)
			}
			if aborted := tc.want == v1alpha1.RolloutRollingBack; aborted && !strings.Contains(st.Rollout.Message, "a Signal aborts it") {
				t.Errorf("the message should name the Signal and no field, got %q", st.Rollout.Message)
			}
		})
	}
}
