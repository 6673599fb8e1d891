// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/images/demo-algorithm/load"
)

// idleFor is the shortest time of spec.scaling.idleAfterSeconds.
const idleFor = 60

// startTime of a replica that takes a while to start, as servers do that load a model.
const startTime = 5 * time.Second

// sleepy Algorithm.
func sleepy(ns, name, version, host string, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
	return algorithm(ns, name, append(modify, versioned(version), starting(startTime), measured(), routed(host), draining(drainSeconds),
		scaled(v1alpha1.Scaling{MinReplicas: 0, MaxReplicas: 2, IdleAfterSeconds: new(int32(idleFor))}))...)
}

// byGRPC is how clients reach it.
func byGRPC(a *v1alpha1.Algorithm) {
	a.Spec.Protocol, a.Spec.Probes = v1alpha1.ProtocolGRPC, &v1alpha1.Probes{Path: "/demo.v1.Predictor"}
}

// sleeps fails until no replica runs, and the Algorithm reports it and is Ready.
func sleeps(ns, name, slot string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := ready(ns, name, v1alpha1.PhaseAsleep, 0)(ctx); err != nil {
			return err
		}
		d, err := get(ctx, &appsv1.Deployment{}, ns, name+"-"+slot)
		if err == nil && (*d.Spec.Replicas != 0 || d.Status.Replicas != 0) {
			err = fmt.Errorf("%d replicas are desired and %d run", *d.Spec.Replicas, d.Status.Replicas)
		}

		return err
	}
}

// direct fails until requests reach replicas without the activator.
func direct(ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		s, err := get(ctx, &corev1.Service{}, ns, name)
		if err != nil {
			return err
		}
		if s.Spec.Selector["capstan.dev/slot"] == "" {
			return fmt.Errorf("the Service selects %v", s.Spec.Selector)
		}
		weights, err := routeWeights(ctx, ns, name)
		if err == nil && weights["a"]+weights["b"] != 100 {
			err = fmt.Errorf("the route has the weights %v", weights)
		}

		return err
	}
}

// burst of requests at once. It returns the responses that are no success, and the times of the first and the last.
func burst(ctx context.Context, host string, n int) (failed []string, first, last time.Duration) {
	var (
		mu  sync.Mutex
		all sync.WaitGroup
	)
	began := time.Now()
	for i := range n {
		all.Go(func() {
			status, err := post(ctx, host, fmt.Sprintf(`{"user":%d}`, i))
			mu.Lock()
			defer mu.Unlock()
			last = time.Since(began)
			if first == 0 {
				first = last
			}
			if err != nil || status != http.StatusOK {
				failed = append(failed, fmt.Sprintf("%d (%v)", status, err))
			}
		})
	}
	all.Wait()

	return failed, first, last
}

// post a prediction through the Gateway. A request with a body is not sent a second time by any client.
func post(ctx context.Context, host, body string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, gateway+"/predict", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Host = host
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rsp.Body.Close() }()
	_, err = io.Copy(io.Discard, rsp.Body)

	return rsp.StatusCode, err
}

// TestScaleToZero lets Algorithms fall asleep and wakes them: by many requests at once through the Gateway, by gRPC, by clients
// inside the cluster, and by an edit. No request is lost.
func TestScaleToZero(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := func(name string) string { return name + "." + ns + ".example.org" }
	const limit = 4 * time.Minute
	create(t, sleepy(ns, "reco", "v1", host("reco")))
	create(t, sleepy(ns, "edited", "v1", host("edited")))
	create(t, sleepy(ns, "rpc", "v1", host("rpc"), byGRPC))
	rpc := dial(t, host("rpc"))
	eventually(t, "the Gateway serves gRPC", func(ctx context.Context) error {
		_, err := rpc.predict(ctx)

		return err
	})
	eventually(t, "the Gateway serves the route", answers(host("reco"), "/predict", http.StatusOK))
	eventually(t, "and the other", answers(host("edited"), "/predict", http.StatusOK))

	// Clients that call until it has fallen asleep and go on would keep it awake: some call, and then nobody does.
	busy := callers(t, ns, "reco", host("reco"), outsideKept, outsideNew, insideNew)
	time.Sleep(20 * time.Second)
	busy.end(t)
	quiet, since, changed, responsive := time.Now(), audit(t), watchStatus(t, ns), watchResponsive(t, ns)
	within(t, limit, "it falls asleep", sleeps(ns, "reco", "a"))
	t.Logf("asleep %s after the last request", time.Since(quiet).Round(time.Second))
	within(t, limit, "the other one, too", sleeps(ns, "edited", "a"))
	within(t, limit, "and the one with gRPC", sleeps(ns, "rpc", "a"))
	t.Logf("writes for each Algorithm until it slept %s", tally(writes(of(since(), ns)), 3))
	within(t, limit, "nothing is written for 20 s while they are asleep", quietly(t, ns))
	events := since()
	t.Logf("%d passes and %d writes for each Algorithm until it slept and was quiet:\n%s", passesOf(of(events, ns), "networkpolicies")/6,
		len(writes(of(events, ns)))/3, timeline(events, ns))
	t.Logf("what changed in the status of the Algorithms:\n%s", strings.Join(changed(), "\n"))
	since = audit(t)

	t.Run("Burst", func(t *testing.T) {
		began := time.Now()
		failed, first, last := burst(t.Context(), host("reco"), 20)
		t.Logf("20 requests at once while asleep: %d lost, the first response after %s, the last after %s", len(failed),
			first.Round(10*time.Millisecond), last.Round(10*time.Millisecond))
		if len(failed) > 0 {
			t.Errorf("lost: %s", strings.Join(failed, ", "))
		}
		if first < startTime {
			t.Errorf("no replica can respond before %s", startTime)
		}
		eventually(t, "requests reach replicas directly", direct(ns, "reco"))
		eventually(t, "and it is Ready", ready(ns, "reco", v1alpha1.PhaseReady, 1))
		all := &corev1.PodList{}
		if err := kube.List(t.Context(), all, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/algorithm": "reco"}); err != nil {
			t.Fatal(err)
		}
		for _, p := range all.Items {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady {
					t.Logf("the replica was created %s after the requests, and ready %s after them", p.CreationTimestamp.Sub(began.Truncate(time.Second)),
						c.LastTransitionTime.Sub(began.Truncate(time.Second)))
				}
			}
		}
		t.Logf("writes of the wake %s", tally(writes(of(since(), ns)), 1))
		t.Logf("writes of the wake:\n%s", timeline(since(), ns))
	})

	t.Run("GRPC", func(t *testing.T) {
		var all sync.WaitGroup
		began := time.Now()
		for range 10 {
			all.Go(func() {
				out := &wrapperspb.StringValue{}
				if err := rpc.connection.Invoke(t.Context(), predictMethod, wrapperspb.String(`{"user": 1}`), out); err != nil {
					t.Errorf("a gRPC request was lost: %v", err)
				}
			})
		}
		all.Wait()
		t.Logf("10 gRPC requests at once while asleep: all have responses after %s", time.Since(began).Round(10*time.Millisecond))
	})

	t.Run("Edit", func(t *testing.T) {
		edit(t, sleepy(ns, "edited", "v2", host("edited")))
		within(t, limit, "clients reach the new revision", live(ns, "edited", "v2"))
		eventually(t, "directly", direct(ns, "edited"))
	})

	// In the other slot it sleeps as well, and clients inside the cluster wake it.
	within(t, limit, "it falls asleep again", sleeps(ns, "reco", "a"))
	within(t, limit, "and in the other slot", sleeps(ns, "edited", "b"))
	began := time.Now()
	calls := load.Options{Concurrency: 4, Rate: rate, Timeout: time.Minute, NoKeepAlive: true}
	atService, atGateway := calls, calls
	atService.URL, atGateway.URL, atGateway.Host = "http://reco/predict", gateway+"/predict", host("edited")
	all := traffic{insideNew: callInside(t, ns, "reco-caller", atService), outsideNew: callOutside(t, atGateway)}
	atService.NoKeepAlive = false
	all[insideKept] = callInside(t, ns, "reco-caller-kept", atService)
	within(t, limit, "clients of its Service wake it", direct(ns, "reco"))
	t.Logf("clients in pods were served directly %s after their start", time.Since(began).Round(time.Second))
	within(t, limit, "clients of the Gateway wake the other", direct(ns, "edited"))
	time.Sleep(15 * time.Second)
	all.end(t)
	if broke := responsive(); broke != "" {
		t.Errorf("the condition Responsive turned False: %s", broke)
	}
}
