// SPDX-License-Identifier: Apache-2.0

package training

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/training/names"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// limited settings of a platform.
func limited() inputv1alpha1.TrainingSettings {
	return inputv1alpha1.TrainingSettings{
		MaxWorkers: new(int32(8)), MaxGPUs: new(int32(16)), MaxDeadline: &metav1.Duration{Duration: 72 * time.Hour},
		Allowed: inputv1alpha1.AllowedToTrainings{Queues: []inputv1alpha1.Allowed{{Name: "batch"}, {Name: "urgent", Namespaces: []string{"ads"}}}},
	}
}

// TestLimits shows what a platform refuses, with field, value and remedy.
func TestLimits(t *testing.T) {
	const usual = "image: registry.example.org/train:1, args: [train], queue: {name: batch}"
	for name, tc := range map[string]struct {
		reason, spec string
		words        []string // none: accepted
	}{
		"Within":         {reason: "the limits themselves are allowed", spec: usual + ", workers: 7, spares: 1, resources: {gpu: nvidia.com/gpu, gpuCount: 2}, deadline: 72h"},
		"WithoutGPU":     {reason: "most have no GPU", spec: usual + ", workers: 8"},
		"Workers":        {reason: "too many workers", spec: usual + ", workers: 9", words: []string{"spec.workers", "9", "8", "training.maxWorkers"}},
		"Spares":         {reason: "spares hold nodes, too", spec: usual + ", workers: 8, spares: 1", words: []string{"spec.workers", "9 pods", "spares", "training.maxWorkers"}},
		"GPUs":           {reason: "GPUs count over all pods", spec: usual + ", workers: 4, resources: {gpu: nvidia.com/gpu, gpuCount: 5}", words: []string{"spec.resources.gpuCount", "5", "20 GPUs", "16", "training.maxGPUs"}},
		"DefaultGPU":     {reason: "one GPU is the default", spec: usual + ", workers: 8, spares: 0, resources: {gpu: nvidia.com/gpu}"},
		"Devices":        {reason: "devices of a DRA driver are GPUs, too", spec: usual + ", workers: 4, resources: {deviceRequest: {deviceClassName: gpu.nvidia.com, count: 5}}", words: []string{"spec.resources.deviceRequest.count", "20 GPUs", "training.maxGPUs"}},
		"Deadline":       {reason: "no run may hold its devices for longer", spec: usual + ", deadline: 73h", words: []string{"spec.deadline", "73h", "72h", "training.maxDeadline"}},
		"NoQueue":        {reason: "who names no queue would be beside them", spec: strings.Replace(usual, ", queue: {name: batch}", "", 1), words: []string{"spec.queue.name", `""`, "batch", "training.allowed.queues"}},
		"OthersQueue":    {reason: "a queue may be for other namespaces", spec: strings.Replace(usual, "name: batch", "name: urgent", 1), words: []string{"spec.queue.name", "urgent", "batch", "training.allowed.queues"}},
		"SeveralAtOnce":  {reason: "one edit can correct everything", spec: usual + ", workers: 9, deadline: 99h", words: []string{"spec.workers", "spec.deadline"}},
		"BesideMistakes": {reason: "limits and lists are told apart from what pods can be", spec: usual + ", workers: 9, watch: {progress: '('}", words: []string{"spec.workers", "spec.watch.progress"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "{"+tc.spec+"}")
			w.settings.Training = limited()
			w.settle()
			if got := w.condition(v1alpha1.TypeAccepted); (got == "True/Valid") != (len(tc.words) == 0) {
				t.Fatalf("%s: want mistakes %q, got %s", tc.reason, tc.words, got)
			}
			for _, c := range w.plan.Conditions {
				for _, word := range tc.words {
					if c.Type == v1alpha1.TypeAccepted && !strings.Contains(c.Message, word) {
						t.Errorf("%s: want %q in %q", tc.reason, word, c.Message)
					}
				}
			}
			if len(tc.words) > 0 && w.condition(v1alpha1.TypePodsHealthy) != "True/Stopped" {
				t.Errorf("%s: no pod starts, but PodsHealthy is %s", tc.reason, w.condition(v1alpha1.TypePodsHealthy))
			}
			if runs := w.run() > 0; runs != (len(tc.words) == 0) {
				t.Errorf("%s: a run has begun: %v", tc.reason, runs)
			}
		})
	}
}

// TestLimitsLater: what runs is not touched by a limit that is set later, and the next run has the deadline of the platform.
func TestLimitsLater(t *testing.T) {
	w := begun(t, strings.Replace(usualSpec, "image:", "queue: {name: batch}, image:", 1))
	w.settings.Training = limited()
	w.settings.Training.MaxWorkers = new(int32(2))
	w.settle()
	if w.run() != 1 || w.phase() != v1alpha1.TrainingRunning || w.condition(v1alpha1.TypeAccepted) != "False/InvalidSpec" {
		t.Errorf("the run should go on, got run %d, %s, %s", w.run(), w.phase(), w.condition(v1alpha1.TypeAccepted))
	}
	w.settings.Training.MaxWorkers = nil
	w.settle()
	if w.run() != 1 || w.phase() != v1alpha1.TrainingRunning {
		t.Errorf("the deadline of the platform should begin no run, got run %d, %s", w.run(), w.phase())
	}
	w.edit("{rerun: {id: again}}")
	w.settle()
	w.Gone()
	w.settle()
	if got := compose.NumberOf(w.Composed[names.Job(2)], 0, "spec", "activeDeadlineSeconds"); got != 72*3600 {
		t.Errorf("the next run should have the deadline of the platform, got %v seconds", got)
	}
}
