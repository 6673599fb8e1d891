// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// experiment whose arm B has other variables, with the share of requests within 100 ms as its metric.
func experiment(ns, name string, armB ...v1alpha1.EnvVar) *v1alpha1.Experiment {
	return &v1alpha1.Experiment{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Experiment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: v1alpha1.ExperimentSpec{
			Algorithm:  "reco",
			ArmB:       v1alpha1.ExperimentArm{Env: armB},
			Assignment: v1alpha1.ExperimentAssignment{Percent: 50},
			Metric:     v1alpha1.ExperimentMetric{Kind: v1alpha1.ExperimentLatency, WithinMs: new(int32(100))},
			Guardrails: &v1alpha1.ExperimentGuardrails{SuccessThreshold: new(0.95)},
			Stop:       &v1alpha1.ExperimentStop{Duration: &metav1.Duration{Duration: time.Hour}, MinSamples: new(int32(200))},
		},
	}
}

// plans applies an Experiment.
func plans(t *testing.T, e *v1alpha1.Experiment) {
	t.Helper()
	if err := apply(t.Context(), e); err != nil {
		t.Fatalf("cannot apply the Experiment: %v", err)
	}
}

// naming an Experiment in an Algorithm.
func naming(name string) func(*v1alpha1.Algorithm) {
	return func(a *v1alpha1.Algorithm) { a.Spec.Experiment = name }
}

// tells fails until an Experiment has a phase and a reason.
func tells(ns, name string, phase v1alpha1.ExperimentPhase, reason string) func(context.Context) error {
	return func(ctx context.Context) error {
		e, err := get(ctx, &v1alpha1.Experiment{}, ns, name)
		if err != nil {
			return err
		}
		if st := e.Status; st.Phase != phase || st.Reason != reason {
			return fmt.Errorf("the Experiment is %s, %s: %s, %v", st.Phase, st.Reason, st.Message, st.Conditions)
		}

		return nil
	}
}

// experimentIs fails until the experiment of an Algorithm is in a phase, for a reason if one is named.
func experimentIs(ns, name, id string, phase v1alpha1.ExperimentPhase, reason string) func(context.Context) error {
	return func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
		if err != nil {
			return err
		}
		e := a.Status.Experiment
		if e == nil {
			return errors.New("the status has no experiment")
		}
		if e.Name != id || e.Phase != phase || reason != "" && e.Reason != reason {
			return fmt.Errorf("experiment %s is %s, %s: %s", e.Name, e.Phase, e.Reason, e.Message)
		}

		return nil
	}
}

// TestExperiment: a faster arm wins, and an arm that fails harms few requests. After both, all traffic is where it was
// before.
func TestExperiment(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", append([]func(*v1alpha1.Algorithm){
			versioned("a"), variable("LATENCY_MS", "150"), draining(drainSeconds), routed(host), rolling(canary(50)),
		}, modify...)...)
	}
	stable(t, reco())
	before := rolloutOf(t.Context(), ns, "reco").Stable
	c := courseOf(t, ns, "reco")
	calls := callOutside(t, calling(host, 40))

	faster := naming("faster")
	plans(t, experiment(ns, "faster", v1alpha1.EnvVar{Name: "VERSION", Value: "b"}, v1alpha1.EnvVar{Name: "LATENCY_MS", Value: "1"}))
	eventually(t, "an Experiment that no Algorithm names waits", tells(ns, "faster", v1alpha1.ExperimentWaiting, string(v1alpha1.ReasonNotRequested)))
	began := time.Now()
	edit(t, reco(faster))
	within(t, 2*timeout, "both arms have traffic", experimentIs(ns, "reco", "faster", v1alpha1.ExperimentRunning, string(v1alpha1.ReasonExperimenting)))
	within(t, 2*timeout, "the share of arm B is in force", stepping(ns, "reco", 50))
	meets(t, calling(host, 20), "b", 50, 15)
	eventually(t, "traffic goes to what the spec describes", algorithmCondition(ns, "reco", v1alpha1.TypeUpdated, corev1.ConditionTrue, v1alpha1.ReasonLive))
	within(t, 2*timeout, "arm B wins", experimentIs(ns, "reco", "faster", v1alpha1.ExperimentEnded, string(v1alpha1.ReasonArmBBetter)))
	tried := c.routedAt(50, began)
	t.Logf("arm B had half of the traffic %s after the edit, and was found better %s later", tried.Sub(began).Round(time.Second), c.routedAt(0, tried).Sub(tried).Round(time.Second))
	eventually(t, "the result is reported", algorithmCondition(ns, "reco", v1alpha1.TypeExperimentDecided, corev1.ConditionTrue, v1alpha1.ReasonArmBBetter))

	gone := func(ctx context.Context) error {
		if err := idle(ctx, ns, "reco-b"); err != nil {
			return err
		}

		return rollout(ns, "reco", v1alpha1.RolloutStable, "")(ctx)
	}
	within(t, 2*timeout, "arm B is gone", gone)
	a, err := get(t.Context(), &v1alpha1.Algorithm{}, ns, "reco")
	if err != nil {
		t.Fatal(err)
	}
	if e := a.Status.Experiment; e.Winner != v1alpha1.WinnerB || e.Effect == nil || *e.Lower < 0.5 || *e.A.Samples < 200 || *e.B.Samples < 200 {
		t.Errorf("arm B should have won by far, got %+v", e)
	}
	if r := a.Status.Rollout; r.Stable != before || len(r.Failed) > 0 {
		t.Errorf("all traffic should go to %s, and no revision have failed, got %s, %v", before, r.Stable, r.Failed)
	}
	lossless(t, "while there were two arms", calls())
	if got, want := c.routedTo(), []int64{0, 50, 0}; !slices.Equal(got, want) {
		t.Errorf("the HTTPRoute should send %v %% of callers to arm B, one after the other, got %v", want, got)
	}

	within(t, 2*timeout, "the Experiment has the result", tells(ns, "faster", v1alpha1.ExperimentEnded, string(v1alpha1.ReasonArmBBetter)))
	x, err := get(t.Context(), &v1alpha1.Experiment{}, ns, "faster")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the Experiment had the result %s after the end", time.Since(x.Status.EndedAt.Time).Round(time.Second))
	if diff := cmp.Diff(a.Status.Experiment.ExperimentState, x.Status.ExperimentState); diff != "" {
		t.Errorf("the Experiment should have the result of its Algorithm, -Algorithm, +Experiment:\n%s", diff)
	}

	// The same name does not run again, another name does.
	edit(t, reco())
	edit(t, reco(faster))
	time.Sleep(2 * evidenceEvery)
	if err := experimentIs(ns, "reco", "faster", v1alpha1.ExperimentEnded, "")(t.Context()); err != nil {
		t.Errorf("a name should run once: %v", err)
	}

	// A name that nobody has is told, and nothing else happens.
	edit(t, reco(naming("failing")))
	eventually(t, "the missing Experiment is reported", algorithmCondition(ns, "reco", v1alpha1.TypeExperimentDecided, corev1.ConditionUnknown, v1alpha1.ReasonExperimentMissing))
	if err := idle(t.Context(), ns, "reco-b"); err != nil {
		t.Errorf("nothing should start for a name that nobody has: %v", err)
	}
	failing := callOutside(t, calling(host, 40))
	created := time.Now()
	plans(t, experiment(ns, "failing", v1alpha1.EnvVar{Name: "VERSION", Value: "c"}, v1alpha1.EnvVar{Name: "ERROR_RATE", Value: "0.5"}, v1alpha1.EnvVar{Name: "LATENCY_MS", Value: "150"}))
	within(t, 2*timeout, "the Algorithm notes the Experiment", func(ctx context.Context) error {
		err := experimentIs(ns, "reco", "failing", v1alpha1.ExperimentWaiting, string(v1alpha1.ReasonExperimentMissing))(ctx)
		if err == nil {
			return errors.New("it has not read the Experiment")
		}

		return nil
	})
	t.Logf("the Algorithm noted an Experiment that was created after it was named %s later", time.Since(created).Round(time.Second))
	within(t, 3*timeout, "a guardrail ends it", experimentIs(ns, "reco", "failing", v1alpha1.ExperimentEnded, string(v1alpha1.ReasonGuardrailViolated)))
	eventually(t, "the violation is reported", algorithmCondition(ns, "reco", v1alpha1.TypeExperimentDecided, corev1.ConditionFalse, v1alpha1.ReasonGuardrailViolated))
	within(t, 2*timeout, "arm B is gone", gone)
	if r := rolloutOf(t.Context(), ns, "reco"); r.Stable != before || len(r.Failed) > 0 {
		t.Errorf("an arm that fails says nothing against a rollout, got %v", r.Failed)
	}
	within(t, 2*timeout, "the Experiment has the violation", tells(ns, "failing", v1alpha1.ExperimentEnded, string(v1alpha1.ReasonGuardrailViolated)))
	if err := tells(ns, "faster", v1alpha1.ExperimentEnded, string(v1alpha1.ReasonArmBBetter))(t.Context()); err != nil {
		t.Errorf("the result of an earlier experiment should stay: %v", err)
	}
	r := failing()
	t.Logf("%d of %d requests were lost to the arm that fails half of its own", r.Lost(), r.Sent)
}
