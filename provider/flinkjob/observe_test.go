// SPDX-License-Identifier: Apache-2.0

package flinkjob

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/podask"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func pod(role string, state corev1.ContainerState) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "clicks-" + role, UID: "1", Labels: map[string]string{runner.LabelPipeline: "clicks", flink.LabelRole: role}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: runner.Container, Image: "clicks:1"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", HostIP: "10.1.0.1",
			ContainerStatuses: []corev1.ContainerStatus{{Name: runner.Container, State: state}},
		},
	}
}

func TestObservation(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}
	before := v1alpha1.FlinkJobObservation{
		Revision: 2, Phase: "Running", TaskManagers: 2, Checkpoint: &v1alpha1.FlinkJobCheckpoint{ID: 7, At: metav1.NewTime(now.Add(-time.Minute))},
	}
	cases := map[string]struct {
		reason string
		facts  facts
		want   v1alpha1.FlinkJobObservation
	}{
		"Nothing": {reason: "Before the first answer nothing is known."},
		"Answer": {
			reason: "What the companion says counts, within bounds and on one line.",
			facts: facts{was: before, pods: []corev1.Pod{pod(flink.RoleJobManager, running)}, state: &flink.State{
				Revision: 3, Phase: flink.PhaseRestarting, Restarts: -4, From: &flink.Saved{Path: "/state/savepoints/r2/a", ID: 9, At: now.Add(time.Hour)},
				Fault:    &flink.Fault{At: now, Message: "first\n\tsecond" + strings.Repeat("x", 5000)},
				LastStop: &flink.Stop{Error: "disk is full"},
			}},
			want: v1alpha1.FlinkJobObservation{
				Revision: 3, Phase: "Restarting", From: &v1alpha1.FlinkJobState{Path: "/state/savepoints/r2/a", ID: 9, At: metav1.NewTime(now)},
				SavepointError: "disk is full",
			},
		},
		"Gone": {
			reason: "What is known stays while there is no JobManager, but for what only one that runs has.",
			facts:  facts{was: before},
			want:   v1alpha1.FlinkJobObservation{Revision: 2, Phase: "Stopped", Checkpoint: before.Checkpoint},
		},
		"Finished": {
			reason: "A job that has ended has also ended while its pod is gone.",
			facts:  facts{was: v1alpha1.FlinkJobObservation{Revision: 2, Phase: "Finished"}},
			want:   v1alpha1.FlinkJobObservation{Revision: 2, Phase: "Finished"},
		},
		"Silent": {
			reason: "A companion that does not answer says nothing new.",
			facts:  facts{was: before, pods: []corev1.Pod{pod(flink.RoleJobManager, running)}, silent: "it does not answer"},
			want:   v1alpha1.FlinkJobObservation{Revision: 2, Phase: "Running", TaskManagers: 2, Checkpoint: before.Checkpoint, Silent: "it does not answer"},
		},
		"Blocked": {
			reason: "What blocks a TaskManager is reported while the JobManager runs.",
			facts:  facts{was: before, pods: []corev1.Pod{pod(flink.RoleJobManager, running), pod(flink.RoleTaskManager, waiting)}},
			want:   v1alpha1.FlinkJobObservation{Revision: 2, Phase: "Running", TaskManagers: 2, Checkpoint: before.Checkpoint, Pods: &v1alpha1.RunPods{Reason: "ImagePullFailed"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.facts.now = now
			got := tc.facts.observation()
			if f := got.Fault; f != nil {
				if len(f.Message) > maxMessage || !strings.HasPrefix(f.Message, "first / second") {
					t.Errorf("a message of a tenant is not bounded: %q", f.Message)
				}
				got.Fault = nil
			}
			if got.Pods != nil {
				if !strings.Contains(got.Pods.Message, "spec.image") {
					t.Errorf("want a remedy, got %q", got.Pods.Message)
				}
				got.Pods.Message = ""
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWorth(t *testing.T) {
	at := func(minutes int, phase string) v1alpha1.FlinkJobObservation {
		return v1alpha1.FlinkJobObservation{Phase: phase, Checkpoint: &v1alpha1.FlinkJobCheckpoint{ID: int64(minutes), At: metav1.NewTime(now.Add(time.Duration(minutes) * time.Minute))}}
	}
	cases := map[string]struct {
		reason  string
		was, is v1alpha1.FlinkJobObservation
		want    bool
	}{
		"Same":   {reason: "Nothing new is no write.", was: at(0, "Running"), is: at(0, "Running")},
		"Next":   {reason: "The next checkpoint alone is no write.", was: at(0, "Running"), is: at(1, "Running")},
		"Later":  {reason: "After ten minutes it is.", was: at(0, "Running"), is: at(10, "Running"), want: true},
		"Phase":  {reason: "Another phase is one at once.", was: at(0, "Running"), is: at(0, "Restarting"), want: true},
		"First":  {reason: "So is the first checkpoint, which makes a revision stable.", was: v1alpha1.FlinkJobObservation{Phase: "Running"}, is: at(0, "Running"), want: true},
		"Absent": {reason: "Without checkpoints nothing is compared.", was: v1alpha1.FlinkJobObservation{Phase: "Running"}, is: v1alpha1.FlinkJobObservation{Phase: "Running"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := worth(tc.was, tc.is); got != tc.want {
				t.Errorf("%s\nwant %t", tc.reason, tc.want)
			}
		})
	}
}

// TestQuiet: an hour of a healthy stream that completes a checkpoint each minute makes at most seven writes.
func TestQuiet(t *testing.T) {
	was, writes := v1alpha1.FlinkJobObservation{}, 0
	for minute := range 61 {
		f := facts{was: was, now: now.Add(time.Duration(minute) * time.Minute), pods: []corev1.Pod{pod(flink.RoleJobManager, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})}}
		f.state = &flink.State{
			Revision: 1, Phase: flink.PhaseRunning, RunningSince: &now, Parallelism: 2, TaskManagers: 2, Lag: new(int64(minute)),
			Checkpoint: &flink.Checkpoint{ID: int64(minute), At: f.now, Bytes: int64(minute * 1000), Millis: int64(minute)},
		}
		if is := f.observation(); worth(was, is) {
			was, writes = is, writes+1
		}
	}
	if writes > 7 {
		t.Errorf("%d writes", writes)
	}
}

func TestAsk(t *testing.T) {
	answers := map[string]string{}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It ends with the test.
	if err != nil {
		t.Fatal(err)
	}
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers["redirect"] != "" {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(answers["body"]))
	}))
	t.Cleanup(func() { _ = listener.Close() })
	asker := newAsker(func(net.Dialer) outside.Dial {
		return func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, listener.Addr().String())
		}
	})
	p := pod(flink.RoleJobManager, corev1.ContainerState{})
	cases := map[string]struct {
		reason, body, redirect string
		change                 func(p *corev1.Pod)
		want                   string
	}{
		"State":    {reason: "A State is understood.", body: `{"revision":2,"phase":"Running","newer":true}`},
		"Phase":    {reason: "A phase that is not known is no State.", body: `{"revision":2,"phase":"Dancing"}`, want: "no State of a stream"},
		"Zero":     {reason: "Revisions begin with 1.", body: `{"revision":0,"phase":"Running"}`, want: "no State of a stream"},
		"Two":      {reason: "Nothing follows a State.", body: `{"revision":2,"phase":"Running"}{}`, want: "no State of a stream"},
		"Version":  {reason: "A later version is named.", body: `{"version":9,"revision":2,"phase":"Running"}`, want: "version 9"},
		"Long":     {reason: "An answer is bounded.", body: strings.Repeat(" ", podask.MaxAnswer+1), want: "longer than any State"},
		"Redirect": {reason: "No redirect is followed.", redirect: "yes", want: "HTTP status 302"},
		"Node":     {reason: "A pod in the network of its node gets no request.", change: func(p *corev1.Pod) { p.Status.HostIP = p.Status.PodIP }, want: "hostNetwork"},
		"None":     {reason: "A pod without an address gets none.", change: func(p *corev1.Pod) { p.Status.PodIP = "" }, want: "no address yet"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answers["body"], answers["redirect"] = tc.body, tc.redirect
			p := p.DeepCopy()
			if tc.change != nil {
				tc.change(p)
			}
			s, err := asker(t.Context(), p, 0)
			var r *podask.Refusal
			if tc.want == "" && (err != nil || s.Revision != 2) || tc.want != "" && (!errors.As(err, &r) || !strings.Contains(r.Why, tc.want)) {
				t.Errorf("%s\nwant %q, got %+v, %v", tc.reason, tc.want, s, err)
			}
		})
	}
}
