// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// maxWrites is how many writes a healthy hour may make in the status of a Run. Each may have the Training written as well, and 20 is what
// both may make together.
const maxWrites = 10

// TestHour counts the writes of healthy runs from their first pod to their success.
func TestHour(t *testing.T) {
	cases := map[string]struct {
		reason string
		lasts  time.Duration
		of     int64
	}{
		"Hour":    {"The goal is about an hour.", time.Hour, 60_000},
		"Short":   {"A short run has few minutes and all phases.", 5 * time.Minute, 60_000},
		"Half":    {"A fifth of all steps takes longer than the shortest interval.", 30 * time.Minute, 60_000},
		"Endless": {"Without a number of steps there is no share.", time.Hour, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			const size = 16
			at := now
			var pods []client.Object
			for i := range 2 {
				p := pod(i, func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now) })
				pods = append(pods, &p)
			}
			seen := withEvents(pods...)
			o := &observer{seen: seen, direct: seen, now: func() time.Time { return at }, counts: newCounts(seen), phone: newPhone(func(context.Context, *corev1.Pod, int32) (*crew.State, error) {
				return healthy(at.Sub(now), tc.lasts, tc.of, size), nil
			}, func() time.Time { return at })}
			cr, writes, over := runOf(v1alpha1.RunObservation{}), 0, false
			for !over {
				if at.Sub(now) >= tc.lasts {
					s := healthy(tc.lasts, tc.lasts, tc.of, size)
					s.Phase, over = crew.PhaseSucceeded, true
					p := pod(0, ended(0, "Completed", asJSON(t, s)))
					if err := seen.Status().Update(t.Context(), &p); err != nil {
						t.Fatal(err)
					}
				}
				was := cr.Status.DeepCopy()
				if _, err := o.Observe(t.Context(), cr); err != nil {
					t.Fatal(err)
				}
				if !equality.Semantic.DeepEqual(*was, cr.Status) {
					writes++
				}
				at = at.Add(o.poll(cr, 10*time.Minute))
			}
			if writes > maxWrites {
				t.Errorf("%s\nwant at most %d writes in %s, got %d", tc.reason, maxWrites, tc.lasts, writes)
			}
			if got := cr.Status.AtProvider; got.Phase != "Succeeded" || got.Checkpoint == nil {
				t.Errorf("at the end got %+v", got)
			}
			t.Logf("%d writes in %s", writes, tc.lasts)
		})
	}
}

// healthy is what a coordinator says: the crew gathers for a minute, and there is a checkpoint every three minutes.
func healthy(since, lasts time.Duration, of int64, size int) *crew.State {
	s := &crew.State{Run: 1, Phase: crew.PhaseGathering}
	if since < time.Minute {
		for i := int(since.Seconds()) * size / 60; i < size; i++ {
			s.Missing = append(s.Missing, crew.Missing{Index: i, Since: now})
		}
		return s
	}
	s.Phase, s.GoodputPercent = crew.PhaseRunning, 90+int(since/time.Minute)%7
	s.Progress = crew.Progress{
		Step: int64(60_000 * since.Seconds() / lasts.Seconds()), Of: of, Loss: fmt.Sprint(1 / since.Seconds()), StepsPerSecond: 15 + float64(since%7)/9,
	}
	if at := since.Truncate(3 * time.Minute); at > 0 {
		n := int64(at / (3 * time.Minute))
		s.Checkpoint = &crew.Checkpoint{Step: n * 3000, URI: fmt.Sprint("/checkpoints/", n), At: now.Add(at)}
	}
	return s
}

// TestWorth is what is written, and when.
func TestWorth(t *testing.T) {
	read := func(before time.Duration) func(*observation) {
		return func(o *observation) { o.Progress.At = new(metav1.NewTime(ago(before))) }
	}
	two := []v1alpha1.RunMember{{Index: 1, Since: metav1.NewTime(ago(time.Hour))}, {Index: 2, Since: metav1.NewTime(ago(time.Hour))}}
	cases := map[string]struct {
		reason  string
		was, is observation
		want    bool
	}{
		"First":      {"What was never seen is news.", observation{Job: "fraud-r1", Number: 1}, saw(), true},
		"Same":       {"The time at which it was read is none.", saw(read(time.Hour)), saw(), false},
		"Step":       {"Steps can wait.", saw(read(9 * time.Minute)), saw(func(o *observation) { o.Progress.Step++ }), false},
		"StepDue":    {"They do not wait for ever.", saw(read(10 * time.Minute)), saw(func(o *observation) { o.Progress.Step++ }), true},
		"Leap":       {"A fifth of all steps is news.", saw(read(time.Minute)), saw(func(o *observation) { o.Progress.Step += 12_000 }), true},
		"LeapSoon":   {"It is none after seconds.", saw(read(59 * time.Second)), saw(func(o *observation) { o.Progress.Step += 12_000 }), false},
		"Checkpoint": {"Checkpoints can wait.", saw(read(9 * time.Minute)), saw(func(o *observation) { o.Checkpoint.Step++ }), false},
		"FirstCheckpoint": {
			"The first one cannot: without it a run begins again.",
			saw(read(time.Minute), func(o *observation) { o.Checkpoint = nil }), saw(), true,
		},
		"Goodput": {"A share changes all the time.", saw(read(time.Minute)), saw(func(o *observation) { o.GoodputPercent = new(int32(12)) }), false},
		"Phase":   {"A phase is news.", saw(), saw(func(o *observation) { o.Phase = "Recovering" }), true},
		"Attempt": {"So is an attempt.", saw(), saw(func(o *observation) { o.Attempt = new(int32(3)) }), true},
		"Missing": {"So is a member that is missing.", saw(), saw(func(o *observation) { o.Missing = two }), true},
		"OneCame": {
			"One that came can wait for others.",
			saw(read(59*time.Second), func(o *observation) { o.Missing = two }), saw(func(o *observation) { o.Missing = two[1:] }), false,
		},
		"SomeCame": {"But not for long.", saw(read(time.Minute), func(o *observation) { o.Missing = two }), saw(func(o *observation) { o.Missing = two[1:] }), true},
		"AllCame":  {"That no member is missing any more is news.", saw(read(time.Second), func(o *observation) { o.Missing = two }), saw(), true},
		"Fault":    {"A fault is news.", saw(), saw(func(o *observation) { o.LastFault = &v1alpha1.RunFault{Class: "Stalled"} }), true},
		"Stuck":    {"So is an attempt that made no progress.", saw(), saw(func(o *observation) { o.WithoutProgress = 1 }), true},
		"Unstuck":  {"Progress can wait.", saw(func(o *observation) { o.WithoutProgress = 1 }), saw(), false},
		"Silent":   {"Silence is news.", saw(), saw(func(o *observation) { o.Silent = "it does not answer" }), true},
		"Pods":     {"So is what blocks pods.", saw(), saw(func(o *observation) { o.Pods = &v1alpha1.RunPods{Reason: "Evicted"} }), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := worth(tc.was, tc.is, now); got != tc.want {
				t.Errorf("%s\nworth(…): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestNobodyIsAsked when there is nobody, or nothing to ask.
func TestNobodyIsAsked(t *testing.T) {
	for name, p := range map[string]corev1.Pod{
		"Waits": pod(0, waits), "Ended": pod(0, ended(0, "Completed", "")), "Over": pod(1),
	} {
		kube := withEvents(&p)
		o := &observer{
			seen: kube, direct: kube, counts: newCounts(kube), now: func() time.Time { return now },
			phone: newPhone(func(context.Context, *corev1.Pod, int32) (*crew.State, error) {
				t.Errorf("%s: nobody should be asked", name)
				return nil, errors.New("nobody should be asked")
			}, func() time.Time { return now }),
		}
		cr := runOf(v1alpha1.RunObservation{})
		if name == "Over" {
			cr.Status.AtProvider = saw(func(o *observation) { o.Phase = "Succeeded" })
		}
		if _, err := o.Observe(t.Context(), cr); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if every := o.poll(cr, 10*time.Minute); every < 9*time.Minute {
			t.Errorf("%s: want it to wait for events, got %s", name, every)
		}
	}
}

// withEvents is a client that can select pods by their Job, and events of Jobs.
func withEvents(all ...client.Object) client.WithWatch {
	b := fake.NewClientBuilder().WithObjects(all...).WithStatusSubresource(&corev1.Pod{}).WithIndex(&corev1.Pod{}, byJob, jobOf)
	for field, of := range map[string]func(*corev1.Event) string{
		"involvedObject.kind": func(e *corev1.Event) string { return e.InvolvedObject.Kind },
		"involvedObject.name": func(e *corev1.Event) string { return e.InvolvedObject.Name },
		"reason":              func(e *corev1.Event) string { return e.Reason },
	} {
		b = b.WithIndex(&corev1.Event{}, field, func(o client.Object) []string {
			if e, ok := o.(*corev1.Event); ok {
				return []string{of(e)}
			}
			return nil
		})
	}
	return b.Build()
}

// TestRefused is why a Job makes no pod.
func TestRefused(t *testing.T) {
	event := func(name, message string, before time.Duration) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: name},
			InvolvedObject: corev1.ObjectReference{Kind: "Job", Namespace: "shop", Name: "fraud-r1"}, Reason: "FailedCreate",
			Message: message, LastTimestamp: metav1.NewTime(ago(before)),
		}
	}
	quota := `Error creating: pods "fraud-r1-3-x7k2p" is forbidden: exceeded quota: gpus, requested: 8, used: 8, limited: 8`
	running, gone := pod(0), *running(func(s *state) { s.Missing = []crew.Missing{{Index: 3, Since: now}} })
	cases := map[string]struct {
		reason  string
		objects []client.Object
		state   *state
		want    string
	}{
		"Quota":   {"Without a pod nothing else says why.", []client.Object{event("a", quota, time.Minute)}, nil, "QuotaExceeded"},
		"Newest":  {"The newest event counts.", []client.Object{event("a", quota, 2*time.Minute), event("b", "denied by policy", time.Minute)}, nil, "PodsRefused"},
		"Old":     {"An old event may have been mended.", []client.Object{event("a", quota, time.Hour)}, nil, ""},
		"Member":  {"A member without a pod is missing for the crew.", []client.Object{event("a", quota, time.Minute), &running}, &gone, "QuotaExceeded"},
		"AllHere": {"While no member is missing, an event is of the past.", []client.Object{event("a", quota, time.Minute), &running}, &state{Run: 1, Phase: crew.PhaseRunning}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := withEvents(tc.objects...)
			o := &observer{seen: kube, direct: kube, now: func() time.Time { return now }, counts: newCounts(kube), phone: newPhone(func(context.Context, *corev1.Pod, int32) (*crew.State, error) {
				return tc.state, nil
			}, func() time.Time { return now })}
			cr := runOf(v1alpha1.RunObservation{})
			if _, err := o.Observe(t.Context(), cr); err != nil {
				t.Fatal(err)
			}
			got := ""
			if p := cr.Status.AtProvider.Pods; p != nil {
				got = p.Reason
				if strings.Contains(p.Message, "x7k2p") {
					t.Errorf("it names a pod: %s", p.Message)
				}
			}
			if got != tc.want {
				t.Errorf("%s\nwant reason %q, got %+v", tc.reason, tc.want, cr.Status.AtProvider.Pods)
			}
			if tc.state == nil && o.poll(cr, 10*time.Minute) > absentEvery {
				t.Error("no event of a pod says when there is one, so it should look again soon")
			}
		})
	}
}
