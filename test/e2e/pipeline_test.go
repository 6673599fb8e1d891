// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// pipelineImage is a program that works for a while, and fails on request.
func pipelineImage() string {
	return os.Getenv("CAPSTAN_REGISTRY") + "/capstan-dev/demo-pipeline:" + os.Getenv("CAPSTAN_VERSION")
}

// pipeline of a small program that is tried again soon.
func pipeline(ns, name string, args ...string) *v1alpha1.Pipeline {
	cpu, memory := resource.MustParse("10m"), resource.MustParse("48Mi")
	return &v1alpha1.Pipeline{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Pipeline"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: v1alpha1.PipelineSpec{
			Image: pipelineImage(), Args: append([]string{"/demo-pipeline"}, args...),
			Resources:   &v1alpha1.Resources{CPU: &cpu, Memory: &memory},
			Retry:       &v1alpha1.PipelineRetry{Backoff: &v1alpha1.PipelineBackoff{From: &metav1.Duration{Duration: time.Second}}},
			GracePeriod: &metav1.Duration{Duration: 5 * time.Second},
		},
	}
}

// withRun is a Pipeline with a run of an id.
func withRun(p *v1alpha1.Pipeline, id string) *v1alpha1.Pipeline {
	p.Spec.Run = &v1alpha1.PipelineRunRequest{ID: id}
	return p
}

// piped fails until the status of a Pipeline is as it should be.
func piped(ns, name string, is func(v1alpha1.PipelineStatus) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := get(ctx, &v1alpha1.Pipeline{}, ns, name)
		if err != nil {
			return err
		}
		if st := p.Status; !is(st) {
			return fmt.Errorf("the Pipeline is %s, runs %+v: %v", st.Phase, st.Runs, st.Conditions)
		}
		return nil
	}
}

// ran fails until the last run has an id and a state.
func ran(ns, name, id, state string) func(context.Context) error {
	return piped(ns, name, func(st v1alpha1.PipelineStatus) bool {
		return st.LastRun != nil && st.LastRun.ID == id && st.LastRun.State == state
	})
}

// runPods of a Pipeline that have not ended.
func runPods(ctx context.Context, ns, name string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := kube.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{runner.LabelPipeline: name}); err != nil {
		return nil, err
	}
	var active []corev1.Pod
	for _, p := range pods.Items {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			active = append(active, p)
		}
	}
	return active, nil
}

// scheduledJobs of a Pipeline that succeeded.
func scheduledJobs(ctx context.Context, ns, name string) (int, error) {
	var jobs batchv1.JobList
	if err := kube.List(ctx, &jobs, client.InNamespace(ns), client.MatchingLabels{runner.LabelPipeline: name}); err != nil {
		return 0, err
	}
	n := 0
	for _, j := range jobs.Items {
		if j.Status.Succeeded > 0 {
			n++
		}
	}
	return n, nil
}

// TestPipeline: runs by id succeed, and fail for good with their last lines. One that has not enough memory begins again with more. A pod
// that is deleted is replaced. A stream rolls with an edit, and is suspended.
func TestPipeline(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	daily := pipeline(ns, "daily", "--work=1s")
	daily.Spec.Schedule = &v1alpha1.PipelineSchedule{Cron: "* * * * *"}
	wrong := withRun(pipeline(ns, "wrong", "--nonsense"), "a")
	big := withRun(pipeline(ns, "big", "--memory=100", "--work=3s"), "a")
	big.Spec.Retry.Rules = []v1alpha1.PipelineRetryRule{{When: v1alpha1.PipelineFailure{Class: "OutOfMemory"}, Do: v1alpha1.PipelineDoRetryWithMemory, Factor: new(4.0)}}
	long := withRun(pipeline(ns, "long", "--work=15s"), "a")
	stream := pipeline(ns, "stream", "--work=10h")
	for _, p := range []*v1alpha1.Pipeline{daily, wrong, big, long, stream} {
		if err := apply(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	within(t, 2*timeout, "the pod of a run runs", func(ctx context.Context) error {
		pods, err := runPods(ctx, ns, "long")
		if err != nil || len(pods) != 1 || pods[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("pods %d: %w", len(pods), errors.Join(err, errors.New("not running")))
		}
		return kube.Delete(ctx, &pods[0])
	})
	within(t, 2*timeout, "a stream runs", piped(ns, "stream", func(st v1alpha1.PipelineStatus) bool { return st.Phase == v1alpha1.PipelineRunning }))
	within(t, 2*timeout, "a wrong argument fails a run after three attempts, with its last lines", piped(ns, "wrong", func(st v1alpha1.PipelineStatus) bool {
		return st.Phase == v1alpha1.PipelineFailed && st.LastRun.Attempts == 3 && strings.Contains(st.LastRun.Message, "nonsense")
	}))
	within(t, 2*timeout, "a run that has not enough memory begins again with more", piped(ns, "big", func(st v1alpha1.PipelineStatus) bool {
		return st.Phase == v1alpha1.PipelineSucceeded && st.LastRun.Memory == "192Mi" && len(st.Runs) == 2 && st.Runs[1].Class == "OutOfMemory"
	}))
	within(t, 2*timeout, "a run whose pod was deleted succeeds", ran(ns, "long", "a", "Succeeded"))

	corrected := withRun(pipeline(ns, "wrong", "--work=1s", "--exit=1", "--until=1"), "b")
	if err := apply(t.Context(), corrected); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "another id begins another run with the edited spec", piped(ns, "wrong", func(st v1alpha1.PipelineStatus) bool {
		return st.Phase == v1alpha1.PipelineSucceeded && st.LastRun.ID == "b" && st.LastRun.Attempts == 2 && len(st.Runs) == 2
	}))

	if err := apply(t.Context(), pipeline(ns, "stream", "--work=11h")); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "a stream rolls with an edit", piped(ns, "stream", func(st v1alpha1.PipelineStatus) bool {
		return st.Phase == v1alpha1.PipelineRunning && st.LastRun.ID == "2" && len(st.Runs) == 2 && st.Runs[1].State == "Ended"
	}))
	suspended := pipeline(ns, "stream", "--work=11h")
	suspended.Spec.Suspend = true
	if err := apply(t.Context(), suspended); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "a suspended stream gives its pod back", func(ctx context.Context) error {
		pods, err := runPods(ctx, ns, "stream")
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d pods still run", len(pods))
		}
		return err
	})
	eventually(t, "it is reported", piped(ns, "stream", func(st v1alpha1.PipelineStatus) bool { return st.Phase == v1alpha1.PipelineSuspended }))

	within(t, 3*timeout, "scheduled runs are reported", piped(ns, "daily", func(st v1alpha1.PipelineStatus) bool {
		return st.NextRun != nil && st.LastRun != nil && len(st.Runs) > 0 && st.Runs[len(st.Runs)-1].State == "Succeeded"
	}))
}

// TestPipelineWithoutCapstan: scheduled runs begin while Crossplane and Capstan are stopped, and are in the status afterwards.
func TestPipelineWithoutCapstan(t *testing.T) {
	ns := namespace(t)
	p := pipeline(ns, "daily", "--work=1s", "--exit=1", "--until=1")
	p.Spec.Schedule = &v1alpha1.PipelineSchedule{Cron: "* * * * *"}
	if err := apply(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "the schedule is known", piped(ns, "daily", func(st v1alpha1.PipelineStatus) bool { return st.NextRun != nil }))
	start := stopCapstan(t)
	before, err := scheduledJobs(t.Context(), ns, "daily")
	if err != nil {
		t.Fatal(err)
	}
	within(t, 4*timeout, "a run succeeds meanwhile", func(ctx context.Context) error {
		now, err := scheduledJobs(ctx, ns, "daily")
		if err == nil && now == before {
			err = fmt.Errorf("still %d runs have succeeded", now)
		}
		return err
	})
	start()
	within(t, 2*timeout, "it is in the status, with its attempts", piped(ns, "daily", func(st v1alpha1.PipelineStatus) bool {
		return len(st.Runs) > 0 && st.Runs[len(st.Runs)-1].State == "Succeeded" && st.Runs[len(st.Runs)-1].Attempts == 2
	}))
}
