// SPDX-License-Identifier: Apache-2.0

package access

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

func TestIdleness(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	i := newIdleness(func() time.Time { return now })
	look := func(after time.Duration, sessions int) bool {
		now = now.Add(after)
		return i.look("x", "api", sessions)
	}
	for n := range 20 {
		if look(30*time.Second, 0) {
			t.Fatalf("after %d looks: idle too soon", n)
		}
	}
	if !look(30*time.Second, 0) {
		t.Error("after ten minutes without a session it is idle")
	}
	if look(30*time.Second, 1) || look(30*time.Second, 0) {
		t.Error("after a session it begins again")
	}
	for range 18 {
		look(30*time.Second, 0)
	}
	if look(gap+time.Second, 0) {
		t.Error("of a time that nobody looked at nothing is known")
	}
	i.forget("x")
	if look(time.Second, 0) {
		t.Error("what is forgotten begins again")
	}
}

func TestOverlaps(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]bool{
		"": false, "soon": false, "2026-11-22T12:00:00Z": false, "2026-11-22T12:00:01Z": true, "2026-11-22T11:59:59Z": false,
	} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{credentialsv1alpha1.AnnotationOverlapUntil: text}}}
		if got := overlaps(s, now); got != want {
			t.Errorf("%q: want %t, got %t", text, want, got)
		}
	}
}
