// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

const (
	// promptly is how long an edit usually takes at most, on two busy cores.
	promptly = 20 * time.Second
	// functionLostAim is until when calls may still go to a pod of the function whose node is lost. Kubernetes notices the loss after up to
	// 50 s. Crossplane looks for pods when the other one ends a connection, which is within two minutes, and a call that it made to the lost
	// one before takes as long as Crossplane waits.
	functionLostAim = 5 * time.Minute
	// pause between edits.
	pause = 10 * time.Second
)

// TestFunctionNodeLost: the node of one of the function's pods is lost without a word. Crossplane's calls to that pod are in vain until
// Crossplane looks for pods again, which the other one causes, and then edits are carried out promptly.
func TestFunctionNodeLost(t *testing.T) {
	ns := namespace(t)
	core := &corev1.PodList{}
	if err := kube.List(t.Context(), core, client.InNamespace(system), client.MatchingLabels{"app": "crossplane"}); err != nil || len(core.Items) == 0 {
		t.Fatalf("there is no Crossplane: %v", err)
	}
	lost := ""
	for _, p := range runtimePods(t, "pkg.crossplane.io/function") {
		if p.Spec.NodeName != core.Items[0].Spec.NodeName {
			lost = p.Spec.NodeName
		}
	}
	if lost == "" {
		t.Fatal("both pods of the function are on Crossplane's node")
	}
	tr := training(ns, "fraud", 1)
	tr.Spec.Suspend = true
	grace := 10 * time.Second
	edit := func() (took time.Duration) {
		grace += time.Second
		tr.Spec.GracePeriod.Duration = grace
		began := time.Now()
		if err := apply(t.Context(), tr.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		for t.Context().Err() == nil {
			got, err := get(t.Context(), &v1alpha1.Training{}, ns, "fraud")
			if err != nil {
				t.Fatal(err)
			}
			if c := got.Status.GetCondition(xpv2.TypeSynced); c.Status == corev1.ConditionTrue && c.ObservedGeneration == got.Generation {
				break
			}
			if time.Since(began) > 3*functionLostAim {
				t.Fatalf("an edit is not carried out: %v", got.Status.Conditions)
			}
			time.Sleep(200 * time.Millisecond)
		}
		return time.Since(began)
	}
	for range 3 {
		edit()
		time.Sleep(pause)
	}
	letter := lost[strings.LastIndex(lost, "-")+1:]
	t.Cleanup(func() { cluster(t, "plug", letter) })
	cluster(t, "cut", letter)
	cluster(t, "unplug", letter)
	struck := time.Now()
	t.Logf("node %s is lost since %s", lost, struck.UTC().Format(time.TimeOnly))
	edits, slow, last := 0, 0, time.Duration(0)
	for time.Since(struck) < functionLostAim+promptly {
		if took := edit(); took > promptly {
			slow, last = slow+1, time.Since(struck)
			t.Logf("an edit took %s until %s after the loss", took.Round(time.Second), last.Round(time.Second))
		}
		edits++
		// Crossplane's circuit breaker delays an object that changes more often.
		time.Sleep(pause)
	}
	t.Logf("%d of %d edits took longer than %s, the last one until %s after the loss", slow, edits, promptly, last.Round(time.Second))
	if last > functionLostAim {
		t.Errorf("edits took longer than %s until %s after the loss, want at most %s", promptly, last.Round(time.Second), functionLostAim)
	}
}
