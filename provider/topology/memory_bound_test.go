// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// TestMemoryIsBounded holds that nothing is remembered of objects that are gone: anybody may create pods and ConfigMaps with the label of
// a scope, in any number over time.
func TestMemoryIsBounded(t *testing.T) {
	meta := func(kind string, i int) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(kind, i), Labels: map[string]string{
			v1alpha1.LabelDatabase: "orders-db", v1alpha1.LabelScope: fmt.Sprint("scope-", i),
		}, Annotations: map[string]string{members.AnnotationLeader: "a", annotationPosition: "7"}}
	}
	configMapOf := func(suffix string, i int) *metav1.PartialObjectMetadata {
		m := configMap()
		m.ObjectMeta = meta("", i)
		m.Name = m.Labels[v1alpha1.LabelScope] + "-" + suffix
		return m
	}
	m := newMemory(func() time.Time { return now })
	w := &watcher{memory: m}
	holds := func(scopes, objects int, when string) {
		t.Helper()
		if len(m.all) != scopes || len(m.held) != objects {
			t.Errorf("%s: want %d scopes of %d objects, got %d of %d", when, scopes, objects, len(m.all), len(m.held))
		}
	}
	for _, gone := range []bool{false, true} {
		for i := range 1000 {
			w.note(&corev1.Pod{ObjectMeta: meta("pod-", i)}, gone)
			w.note(configMapOf(members.SuffixLeader, i), gone)
			w.note(configMapOf(members.SuffixFailover, i), gone)
		}
		if !gone {
			holds(1000, 3000, "while they are there")
		}
	}
	holds(0, 0, "after they are gone")

	one := &corev1.Pod{ObjectMeta: meta("pod-", 1)}
	for i := range 1000 {
		one.Labels[v1alpha1.LabelScope] = fmt.Sprint("scope-", i)
		w.note(one, false)
	}
	holds(1, 1, "one pod whose scope changes all the time")

	m.forget("shop", "scope-999")
	holds(0, 0, "after the Topology is deleted")
	w.note(one, false)
	holds(1, 1, "a pod that outlives its Topology")
	w.note(one, true)
	holds(0, 0, "until it ends")

	delete(one.Labels, v1alpha1.LabelScope)
	w.note(one, false)
	holds(0, 0, "a pod without a scope")
}
