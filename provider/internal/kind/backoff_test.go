// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

func TestBackoff(t *testing.T) {
	seconds := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Second} }
	cases := map[string]struct {
		reason string
		retry  *v1alpha1.Retry
		want   []int
	}{
		"Usual":    {reason: "The wait doubles up to half a minute.", want: []int{1, 2, 4, 8, 16, 30, 30}},
		"Longest":  {reason: "A config may allow longer waits.", retry: &v1alpha1.Retry{MaxDelay: seconds(60)}, want: []int{1, 2, 4, 8, 16, 32, 60}},
		"First":    {reason: "A config may begin with a longer wait.", retry: &v1alpha1.Retry{BaseDelay: seconds(10)}, want: []int{10, 20, 30}},
		"Crossing": {reason: "The longest wait counts when the first is longer.", retry: &v1alpha1.Retry{BaseDelay: seconds(60)}, want: []int{30, 30}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, req := newBackoff(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}
			for range 2 {
				var got []int
				for range tc.want {
					b.set(req, tc.retry)
					got = append(got, int(b.When(req).Seconds()))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("\n%s\n-want seconds, +got seconds:\n%s", tc.reason, diff)
				}

				// From the start again.
				b.Forget(req)
			}
			if len(b.failing) != 0 {
				t.Errorf("Nothing should be remembered of forgotten requests, got %v", b.failing)
			}
		})
	}
}

func TestSchedule(t *testing.T) {
	s, req, now := newSchedule(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}, time.Unix(1000, 0)
	if _, ok := s.start(req, now); ok {
		t.Error("No poll was due, so none is late")
	}
	s.poll(req, now.Add(time.Minute))
	if late, ok := s.start(req, now.Add(time.Second)); !ok || late != 0 {
		t.Errorf("An event before the poll is not late, got %s", late)
	}
	s.poll(req, now)
	if late, ok := s.start(req, now.Add(time.Second)); !ok || late != time.Second {
		t.Errorf("The poll should be a second late, got %s", late)
	}
	if _, ok := s.start(req, now); ok {
		t.Error("A poll counts once")
	}
}
