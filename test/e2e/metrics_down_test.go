// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestReplicasComeDown has a service whose latency is near its target at any load. What a peak added is removed after it: the
// latency guards the target upwards only.
func TestReplicasComeDown(t *testing.T) {
	const (
		// A prediction takes 85 ms, and so lies in the bucket from 75 to 100 ms, whose p95 is 98.75 ms: 0.92 of the target.
		takes, target = 85, 107
		most          = 3
	)
	ns := namespace(t)
	host := hostOf(ns, "reco")
	create(t, algorithm(ns, "reco", routed(host), draining(drainSeconds), args("--latency-ms="+strconv.Itoa(takes)), measured(),
		scaled(v1alpha1.Scaling{
			MinReplicas: 1, MaxReplicas: most, Signal: "InFlight", PerReplica: new(2.0), TargetLatencyMs: new(int32(target)),
			ScaleDownAfterSeconds: new(int32(20)),
		})))
	eventually(t, "the Gateway serves it", answers(host, "/predict", 200))
	trickle := callOutside(t, calling(host, 5))
	sized := func(enough func(wanted, available int32) bool) func(context.Context) error {
		return func(ctx context.Context) error {
			wanted, available, err := size(ctx, ns, "reco")
			if err == nil && !enough(wanted, available) {
				err = fmt.Errorf("%d replicas are wanted, %d serve", wanted, available)
			}
			return err
		}
	}

	peak := callOutside(t, calling(host, 65))
	within(t, 3*timeout, "there are replicas for the peak", sized(func(wanted, available int32) bool { return wanted == most && available == most }))
	lossless(t, "in the peak", peak())
	over := time.Now()

	// Two minutes until the recorded latency is about the trickle alone, and a replica a minute.
	within(t, 4*timeout, "the replicas of the peak are gone", sized(func(wanted, available int32) bool { return wanted == 1 && available == 1 }))
	t.Logf("one replica is left %s after the peak", time.Since(over).Round(time.Second))
	p95, err := promQL(t.Context(), fmt.Sprintf("capstan:latency_p95_ms{namespace=%q,algorithm=%q,slot=%q}", ns, "reco", "a"))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := strconv.ParseFloat(p95, 64); err != nil || v < 0.9*target || v > 1.05*target {
		t.Errorf("the latency should be near its target of %d ms, or this shows nothing: p95 is %s ms (%v)", target, p95, err)
	}
	time.Sleep(2 * drainSeconds * time.Second)
	lossless(t, "all the time", trickle())
}
