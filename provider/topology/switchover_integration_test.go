// SPDX-License-Identifier: Apache-2.0

//go:build integration

package topology

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/signals"
	"github.com/capstan-dev/capstan/test/outside"
)

// TestSwitchover on a real API server: each id is carried out once, whatever is stopped or recreated.
func TestSwitchover(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kube, err := client.New(outside.APIServer(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Client: kube, t: t}
	b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "moves"}})
	clock := time.Now()

	// provider that was just started, and remembers nothing.
	provider := func() *observer {
		return &observer{
			kube: kube, seen: kube, direct: kube, now: func() time.Time { return clock }, memory: newMemory(time.Now),
			counts: newCounts(kube, kube, logging.NewNopLogger()), gather: newGathering(), board: &signals.Board{}, again: func(types.NamespacedName, time.Duration) {},
		}
	}
	o := provider()
	look := func(tp *v1alpha1.Topology) v1alpha1.TopologyObservation {
		t.Helper()
		seen, err := o.Observe(t.Context(), tp)
		if err != nil {
			t.Fatal(err)
		}
		if !seen.ResourceUpToDate {
			if _, err := o.Update(t.Context(), tp); err != nil {
				t.Fatal(err)
			}
			if _, err := o.Observe(t.Context(), tp); err != nil {
				t.Fatal(err)
			}
		}
		return tp.Status.AtProvider
	}
	failover := func() map[string]string {
		t.Helper()
		m := scoped("moves", members.SuffixFailover, nil)
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(m), m); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return m.Annotations
	}
	outcome := func(seen v1alpha1.TopologyObservation, id string) string {
		for _, s := range seen.Switchovers {
			if s.ID == id {
				return s.State
			}
		}
		return ""
	}
	leader := scoped("moves", members.SuffixLeader, map[string]string{members.AnnotationLeader: "orders-db-a-0", annotationTTL: "30"})
	b.create(leader, scoped("moves", members.SuffixConfig, map[string]string{members.AnnotationInitialize: "7575"}))
	for _, letter := range []string{"a", "b"} {
		b.member("moves", letter, "")
	}
	tp := b.topology("moves")
	tp.Spec.ForProvider.Switchover = &v1alpha1.TopologySwitchover{ID: "1", From: "orders-db-a", To: "orders-db-b"}
	if got := outcome(look(tp), "1"); got != v1alpha1.SwitchoverAsked || failover()[members.AnnotationLeader] != "orders-db-a-0" || failover()[members.AnnotationCandidate] != "orders-db-b-0" {
		t.Fatalf("a switchover that is asked for is %q, and Patroni has %v", got, failover())
	}

	// Patroni does it, while the provider is stopped.
	m := scoped("moves", members.SuffixFailover, nil)
	b.annotate(m, map[string]string{members.AnnotationLeader: "", members.AnnotationCandidate: ""})
	b.annotate(leader, map[string]string{members.AnnotationLeader: "orders-db-b-0"})
	o = provider()
	if got := outcome(look(tp), "1"); got != v1alpha1.SwitchoverDone {
		t.Fatalf("a switchover that was done is %q", got)
	}

	// The lead goes back, and the Topology is recreated.
	b.annotate(leader, map[string]string{members.AnnotationLeader: "orders-db-a-0"})
	clock = clock.Add(time.Hour)
	o, tp = provider(), b.topology("moves")
	tp.Spec.ForProvider.Switchover = &v1alpha1.TopologySwitchover{ID: "1", From: "orders-db-a", To: "orders-db-b"}
	if got := outcome(look(tp), "1"); got != v1alpha1.SwitchoverDone || failover()[members.AnnotationLeader] != "" {
		t.Fatalf("the same id again is %q, and Patroni has %v", got, failover())
	}

	// One that nobody takes up is taken back, so that it does not happen later.
	tp.Spec.ForProvider.Switchover.ID = "2"
	if got := outcome(look(tp), "2"); got != v1alpha1.SwitchoverAsked || failover()[members.AnnotationLeader] != "orders-db-a-0" {
		t.Fatalf("another id is %q, and Patroni has %v", got, failover())
	}
	clock = clock.Add(time.Hour)
	if got := outcome(look(tp), "2"); got != v1alpha1.SwitchoverFailed || failover()[members.AnnotationLeader] != "" || failover()[members.AnnotationCandidate] != "" {
		t.Fatalf("one that nobody took up is %q, and Patroni has %v", got, failover())
	}

	// Written down and never asked, because the provider ended in between.
	config := scoped("moves", members.SuffixConfig, nil)
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(config), config); err != nil {
		t.Fatal(err)
	}
	b.annotate(config, map[string]string{annotationSwitchovers: `[{"id":"3","from":"orders-db-a","to":"orders-db-b","state":"Asked","at":"` +
		clock.Add(-time.Minute).UTC().Format(time.RFC3339) + `"}]`})
	tp.Spec.ForProvider.Switchover.ID = "3"
	if got := outcome(look(tp), "3"); got != v1alpha1.SwitchoverFailed || failover()[members.AnnotationLeader] != "" {
		t.Fatalf("one that was written down and not asked for is %q, and Patroni has %v", got, failover())
	}
}
