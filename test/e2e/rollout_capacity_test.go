// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/images/demo-algorithm/load"
)

// A balance follows the replicas that serve in each slot and the share of requests that the route sends there.
type balance struct {
	mu sync.Mutex

	// worst is the least ratio of what serves to what is needed, and when it was observed with which replicas.
	worst float64
	what  string

	// looks is how often it was observed.
	looks int
	stop  func()
}

// balanceOf an Algorithm behind the Gateway whose requests need so many replicas altogether, from now on.
func balanceOf(t *testing.T, ns, name string, need float64) *balance {
	t.Helper()
	b := &balance{worst: 100}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			// The route first: replicas may only end after requests have left them.
			if weights, err := routeWeights(ctx, ns, name); err == nil {
				b.look(ctx, ns, name, need, weights, time.Since(began))
			}
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	b.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(b.stop)

	return b
}

// routeWeights in percent, by slot.
func routeWeights(ctx context.Context, ns, name string) (map[string]float64, error) {
	r := &unstructured.Unstructured{}
	r.SetAPIVersion("gateway.networking.k8s.io/v1")
	r.SetKind("HTTPRoute")
	if _, err := get(ctx, r, ns, name); err != nil {
		return nil, err
	}
	rules, _, _ := unstructured.NestedSlice(r.Object, "spec", "rules")
	if len(rules) == 0 {
		return nil, fmt.Errorf("the route of %s has no rule", name)
	}
	rule, _ := rules[len(rules)-1].(map[string]any)
	backends, _, _ := unstructured.NestedSlice(rule, "backendRefs")
	weights := map[string]float64{}
	for _, ref := range backends {
		m, _ := ref.(map[string]any)
		to, _ := m["name"].(string)
		weight, _ := m["weight"].(int64)
		weights[to[strings.LastIndex(to, "-")+1:]] = float64(weight)
	}

	return weights, nil
}

func (b *balance) look(ctx context.Context, ns, name string, need float64, weights map[string]float64, at time.Duration) {
	serves := map[string]int32{}
	for slot := range weights {
		if d, err := get(ctx, &appsv1.Deployment{}, ns, name+"-"+slot); err == nil {
			serves[slot] = d.Status.AvailableReplicas
		}
	}
	if ctx.Err() != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looks++
	for slot, weight := range weights {
		if weight == 0 {
			continue
		}
		if ratio := float64(serves[slot]) / (need * weight / 100); ratio < b.worst {
			b.worst = ratio
			b.what = fmt.Sprintf("after %s slot %s had %d replicas for %.0f %% of requests, of which all need %.1f",
				at.Round(100*time.Millisecond), slot, serves[slot], weight, need)
		}
	}
}

// suffices fails the test if there was a moment with too few replicas behind the weights. An autoscaler changes nothing
// for a tenth.
func (b *balance) suffices(t *testing.T, when string) {
	t.Helper()
	b.stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Logf("%s: the worst of %d looks: %s", when, b.looks, b.what)
	if b.looks == 0 || b.worst < 0.9 {
		t.Errorf("%s: too few replicas served: %s", when, b.what)
	}
}

// following fails until a slot has so many replicas, all of them ready.
func following(ns, name, slot string, n int32) func(context.Context) error {
	return func(ctx context.Context) error {
		d, err := get(ctx, &appsv1.Deployment{}, ns, name+"-"+slot)
		if err == nil && (*d.Spec.Replicas != n || d.Status.AvailableReplicas != n) {
			err = fmt.Errorf("slot %s: %d replicas are wanted, %d serve", slot, *d.Spec.Replicas, d.Status.AvailableReplicas)
		}

		return err
	}
}

// TestRolloutKeepsCapacity has an autoscaler beside a step that lasts longer than it takes the autoscaler to remove replicas.
// After that one revision is promoted and then reverted, and another one aborted: what takes all requests can bear them.
func TestRolloutKeepsCapacity(t *testing.T) {
	t.Parallel()
	const (
		clients = 12 // that wait for slow responses, and so keep as many requests in progress
		bears   = 2  // requests in progress that a replica bears
		need    = clients / bears
	)
	ns := namespace(t)
	reco := func(name, v string, modify ...func(*v1alpha1.Lifecycle)) *v1alpha1.Algorithm {
		lasts := func(l *v1alpha1.Lifecycle) {
			l.Approval, l.Bake = v1alpha1.ApprovalBeforePromotion, &metav1.Duration{Duration: 10 * time.Minute}
		}

		return algorithm(ns, name, versioned(v), sized(need), draining(drainSeconds), routed(hostOf(ns, name)), args("--latency-ms=1000"),
			rolling(append([]func(*v1alpha1.Lifecycle){steps(50), lasts}, modify...)...),
			scaled(v1alpha1.Scaling{
				MinReplicas: 1, MaxReplicas: 2 * need, Signal: "InFlight", PerReplica: new(float64(bears)), ScaleDownAfterSeconds: new(int32(30)),
			}))
	}
	balances, calls := map[string]*balance{}, map[string]func() *load.Report{}
	for _, name := range []string{"promoted", "aborted"} {
		create(t, reco(name, "v1"))
		host := hostOf(ns, name)
		eventually(t, "the Gateway serves "+name, answers(host, "/healthz", 200))
		calls[name] = callOutside(t, load.Options{URL: gateway + "/predict", Host: host, Concurrency: clients, Timeout: 20 * time.Second})
	}
	for _, name := range []string{"promoted", "aborted"} {
		within(t, 2*timeout, name+" has the replicas that its load needs", following(ns, name, "a", need))
		// For a moment the autoscaler may still act on a time without load.
		time.Sleep(40 * time.Second)
		within(t, 2*timeout, name+" still has them", following(ns, name, "a", need))
		balances[name] = balanceOf(t, ns, name, need)
		edit(t, reco(name, "v2"))
	}
	candidates := map[string]string{}
	for _, name := range []string{"promoted", "aborted"} {
		within(t, 3*timeout, name+" waits for an approval", rollout(ns, name, v1alpha1.RolloutHolding, string(v1alpha1.ReasonAwaitingApproval)))
		candidates[name] = rolloutOf(t.Context(), ns, name).Candidate
	}
	// Long enough to remove replicas that have nothing to do: after 30 s, one each minute.
	time.Sleep(150 * time.Second)

	edit(t, requesting(reco("aborted", "v2"), v1alpha1.RolloutRequests{Abort: candidates["aborted"]}))
	approved := v1alpha1.RolloutRequests{Approve: []string{candidates["promoted"] + ":100"}}
	edit(t, requesting(reco("promoted", "v2"), approved))
	within(t, 2*timeout, "it is rolled back", rollout(ns, "aborted", v1alpha1.RolloutRolledBack, ""))
	within(t, 2*timeout, "all traffic goes to v2", rollout(ns, "promoted", v1alpha1.RolloutBaking, ""))
	time.Sleep(30 * time.Second)
	edit(t, requesting(reco("promoted", "v1"), approved))
	within(t, 2*timeout, "all traffic goes back to v1", rollout(ns, "promoted", v1alpha1.RolloutStable, ""))
	time.Sleep(10 * time.Second)

	balances["aborted"].suffices(t, "before and after the abort")
	balances["promoted"].suffices(t, "through promotion and return")
	for name, end := range calls {
		lossless(t, name, end())
	}
}

// passed reports whether a check was reported to pass. Later verdicts of the same step are only reported when they change a decision.
func (c *course) passed(check string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.stages {
		// Passes that end a step are shown by the decision alone.
		if d := s.LastDecision; d != nil && d.Reason == string(v1alpha1.ReasonPassed) && strings.Contains(d.Message, check+" ") {
			return true
		}
		for _, e := range s.Evidence {
			if e.Name == check && strings.Contains(e.Verdicts, "P") {
				return true
			}
		}
	}

	return false
}

// TestEqualRevisionsPass compares the latency of two revisions of the same program under a load that makes requests wait. A
// replica of either gets as many requests, so that they wait as long.
func TestEqualRevisionsPass(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	// A replica answers 12.5 requests per second, one after the other.
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), sized(6), draining(drainSeconds), routed(host),
			args("--latency-ms=80", "--jitter-ms=70", "--workers=1"), rolling(steps(50), func(l *v1alpha1.Lifecycle) {
				l.Soak = &metav1.Duration{Duration: time.Minute}
				l.MaxLatencyIncreasePercent = new(int32(10))
			}))
	}
	stable(t, reco("v1"))
	c := courseOf(t, ns, "reco")
	// Clients that are not in step arrive at random, nearly: what comes evenly does not wait.
	var calls []func() *load.Report
	for _, perSecond := range []float64{6.1, 6.7, 7.3, 7.9, 8.3} {
		calls = append(calls, callOutside(t, load.Options{
			URL: gateway + "/predict", Host: host, Concurrency: 6, Rate: perSecond, Timeout: 10 * time.Second,
		}))
	}
	time.Sleep(20 * time.Second)
	edit(t, reco("v2"))
	within(t, 5*timeout, "v2 bakes", func(ctx context.Context) error {
		if f := rolloutOf(ctx, ns, "reco").Failed; len(f) > 0 {
			t.Fatalf("the same program was rolled back: %s: %s", f[0].Reason, f[0].Message)
		}

		return rollout(ns, "reco", v1alpha1.RolloutBaking, "")(ctx)
	})
	if !c.passed("latency-against-baseline") {
		t.Error("the latencies of both should have been compared, and have passed")
	}
	within(t, timeout, "v2 is live", live(ns, "reco", "v2"))
	if err := algorithmCondition(ns, "reco", v1alpha1.TypePodsHealthy, corev1.ConditionTrue, v1alpha1.ReasonServing)(t.Context()); err != nil {
		t.Error(err)
	}
	for _, end := range calls {
		lossless(t, "all the time", end())
	}
}
