// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	contract "github.com/capstan-dev/capstan/apis/flink"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/pipeline/flink/names"
)

func begun(t *testing.T, spec string) *world {
	t.Helper()
	w := newWorld(t, spec)
	w.settle()
	w.run(time.Minute)
	w.settle()
	if w.phase() != v1alpha1.PipelineRunning || !w.plan.Ready {
		t.Fatalf("the stream should run, and is %s", w.phase())
	}
	return w
}

func TestObjects(t *testing.T) {
	w := begun(t, usualSpec)
	got := compose.SortedKeys(w.plan.Objects)
	want := []string{
		names.DisruptionBudget, names.Job, names.JobManager, names.NetworkPolicy, names.ServiceAccount, names.Stable, names.State, names.TaskManagers,
		names.Service,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// TestEdit: an edit makes the next revision, which goes on from the savepoint.
func TestEdit(t *testing.T) {
	w := begun(t, usualSpec)
	w.run(time.Minute)
	w.edit(`{image: good-2}`)
	w.settle()
	if w.stream().Revision != 2 || w.counted != 2 || w.image != "good-2" {
		t.Errorf("want revision 2 with good-2 from count 2, got %d with %s from %d", w.stream().Revision, w.image, w.counted)
	}
	if !w.runs.Continues {
		t.Error("its JobManager does not know that there is state, and would begin again with another claim")
	}
	if is, _ := w.condition("RevisionStable"); is != "Unknown/Trial" {
		t.Errorf("an edit that has not completed a checkpoint is %s", is)
	}
	w.run(time.Minute)
	w.settle()
	if is, _ := w.condition("RevisionStable"); is != "True/Stable" {
		t.Errorf("an edit that has completed a checkpoint is %s", is)
	}
}

// TestRollback: an edit that completes no checkpoint in time is taken back, to the state that the edit saved.
func TestRollback(t *testing.T) {
	w := begun(t, usualSpec)
	w.broken["bad"] = true
	w.run(time.Minute)
	w.edit(`{image: bad, args: [another]}`)
	w.settle()
	w.run(9 * time.Minute)
	w.settle()
	if w.stream().Revision != 2 {
		t.Fatalf("it is taken back too early: revision %d", w.stream().Revision)
	}
	w.run(2 * time.Minute)
	w.settle()
	if w.image != "good-1" || w.counted != 2 || w.runs.Revision != 3 || len(w.runs.Ignored) != 1 || w.runs.Ignored[0] != 2 || w.runs.Args[0] != "job" {
		t.Errorf("want good-1 as revision 3 from count 2 without the state of revision 2, got %s from %d by %+v", w.image, w.counted, w.runs)
	}
	is, message := w.condition("RevisionStable")
	if is != "False/RolledBack" || !contains(message, "revision 2", "wrong", "Correct the spec") {
		t.Errorf("want the cause and a remedy, got %s: %s", is, message)
	}
	w.run(time.Minute)
	w.settle()
	if is, _ := w.condition("RevisionStable"); is != "False/RolledBack" || w.phase() != v1alpha1.PipelineRunning || w.stream().RolledBack == nil {
		t.Errorf("it runs, and the spec is still not what runs: %s, %s", is, w.phase())
	}
	w.run(time.Hour)
	w.settle()
	if w.runs.Revision != 3 {
		t.Errorf("what was taken back is tried again: revision %d", w.runs.Revision)
	}
	w.edit(`{image: good-3}`)
	w.settle()
	w.run(time.Minute)
	w.settle()
	if is, _ := w.condition("RevisionStable"); is != "True/Stable" || w.image != "good-3" || w.stream().RolledBack != nil {
		t.Errorf("want the corrected spec, got %s with %s", is, w.image)
	}
}

// TestTakenBack: an edit that is taken back by hand, after Capstan did so, starts nothing.
func TestTakenBack(t *testing.T) {
	w := begun(t, usualSpec)
	w.broken["bad"] = true
	w.edit(`{image: bad}`)
	w.settle()
	w.run(11 * time.Minute)
	w.settle()
	w.run(time.Minute)
	w.settle()
	w.edit(`{image: good-1}`)
	w.settle()
	if is, _ := w.condition("RevisionStable"); is != "True/Stable" || w.runs.Revision != 3 {
		t.Errorf("want revision 3 to go on, got %d: %s", w.runs.Revision, is)
	}
}

// TestFirst: the first revision has none to go back to.
func TestFirst(t *testing.T) {
	w := newWorld(t, usualSpec)
	w.broken["good-1"] = true
	w.settle()
	w.run(time.Minute)
	w.settle()
	w.run(20 * time.Minute)
	w.settle()
	if is, message := w.condition("RevisionStable"); is != "False/Unstable" || !contains(message, "wrong") || w.plan.Ready {
		t.Errorf("want the cause, got %s: %s", is, message)
	}
}

// TestSilentProvider: a JobManager that cannot be asked is no reason to go back.
func TestSilentProvider(t *testing.T) {
	w := begun(t, usualSpec)
	w.edit(`{image: good-2}`)
	w.settle()
	w.report.Silent = "it does not answer"
	w.now = w.now.Add(time.Hour)
	w.settle()
	if is, message := w.condition("RevisionStable"); w.runs.Revision != 2 || is != "Unknown/Trial" || !contains(message, "cannot be asked") {
		t.Errorf("want revision 2 to be on trial, got %d: %s: %s", w.runs.Revision, is, message)
	}
}

// TestProviderStopped: a provider that says nothing after an edit is no reason to go back either. What it says about the pods is.
func TestProviderStopped(t *testing.T) {
	w := begun(t, usualSpec)
	last := *w.report.DeepCopy()
	w.edit(`{image: good-2}`)
	w.settle()
	w.report = last.DeepCopy()
	w.now = w.now.Add(time.Hour)
	w.settle()
	if w.runs.Revision != 2 {
		t.Errorf("revision %d runs", w.runs.Revision)
	}
	w.report.Pods = &observev1alpha1.RunPods{Reason: "ImagePull", Message: "no such image"}
	w.settle()
	if is, message := w.condition("RevisionStable"); w.runs.Revision != 3 || !contains(message, "no such image") {
		t.Errorf("want revision 3 and the cause, got %d: %s: %s", w.runs.Revision, is, message)
	}
}

// TestGPU: a TaskManager has one GPU unless the spec has a number, and goes to the nodes that have it.
func TestGPU(t *testing.T) {
	w := begun(t, `{engine: Flink, image: good-1, flink: {mainClass: a, state: {claimName: a}, taskManagerResources: {gpu: nvidia.com/gpu, gpuProducts: [H100]}}}`)
	template := compose.Map(w.composed[names.TaskManagers].Map(), "spec", "template", "spec")
	container, _ := compose.List(template, "containers")[0].(map[string]any)
	if n := compose.Text(container, "resources", "limits", "nvidia.com/gpu"); n != "1" {
		t.Errorf("want one GPU, got %q", n)
	}
	if text := composetest.Encoded(template); !contains(text, `"key":"nvidia.com/gpu"`, `"nvidia.com/gpu.product"`, "H100") {
		t.Errorf("want a toleration and an affinity, got %s", text)
	}
}

func TestSuspend(t *testing.T) {
	w := begun(t, usualSpec)
	w.edit(`{suspend: true}`)
	w.settle()
	if w.runs != nil || w.phase() != v1alpha1.PipelineSuspended || w.plan.Ready {
		t.Errorf("want no JobManager, got %+v in phase %s", w.runs, w.phase())
	}
	if n := compose.NumberOf(w.composed[names.TaskManagers], -1, "spec", "replicas"); n != 0 {
		t.Errorf("want no TaskManagers, got %d", n)
	}
	w.edit(`{suspend: false}`)
	w.settle()
	w.run(time.Minute)
	w.settle()
	if w.stream().Revision != 1 || w.counted != 2 {
		t.Errorf("want revision 1 from count 1, got %d with %d", w.stream().Revision, w.counted)
	}
}

// TestNumber: the number of TaskManagers reaches no pod, and an autoscaler has it for its own.
func TestNumber(t *testing.T) {
	w := begun(t, usualSpec)
	flink, _ := w.spec["flink"].(map[string]any)
	flink["taskManagers"] = 3.0
	w.settle()
	if n := compose.NumberOf(w.composed[names.TaskManagers], -1, "spec", "replicas"); n != 3 || w.runs.Revision != 1 {
		t.Errorf("want 3 TaskManagers in revision 1, got %d in %d", n, w.runs.Revision)
	}
	flink["scaling"] = map[string]any{"max": 8.0}
	w.settle()
	if !w.has(names.Autoscaler) || w.runs.Revision != 1 {
		t.Errorf("want an autoscaler in revision 1, which is %d", w.runs.Revision)
	}
	flink["scaling"] = map[string]any{"max": 2.0}
	w.settle()
	if is, message := w.condition("Accepted"); is != "False/InvalidSpec" || !contains(message, "spec.flink.scaling.max") {
		t.Errorf("want the field, got %s: %s", is, message)
	}
}

func TestConditions(t *testing.T) {
	cases := map[string]struct {
		reason     string
		report     func(r *observev1alpha1.FlinkJobObservation)
		of, is     string
		message    string
		phaseAfter v1alpha1.PipelinePhase
	}{
		"Savepoint": {
			reason: "A savepoint that was not taken is reported with its cause and what to do.",
			report: func(r *observev1alpha1.FlinkJobObservation) { r.SavepointError = "disk is full" },
			of:     "StateSaved", is: "False/SavepointFailed", message: "disk is full", phaseAfter: v1alpha1.PipelineRunning,
		},
		"Checkpoint": {
			reason: "A checkpoint that fails is reported while the stream still runs.",
			report: func(r *observev1alpha1.FlinkJobObservation) { r.CheckpointFault = "expired" },
			of:     "StateSaved", is: "False/CheckpointFailed", message: "expired", phaseAfter: v1alpha1.PipelineRunning,
		},
		"Blocked": {
			reason: "Flink that is not started because state is gone is reported with the words of the companion.",
			report: func(r *observev1alpha1.FlinkJobObservation) {
				r.Phase, r.Message = string(contract.PhaseBlocked), "there was state: bring it back"
			},
			of: "StateSaved", is: "False/StateBlocked", message: "bring it back", phaseAfter: v1alpha1.PipelineFailed,
		},
		"Restarting": {
			reason: "Tasks that start again are reported with why they failed.",
			report: func(r *observev1alpha1.FlinkJobObservation) {
				r.Phase, r.Fault = string(contract.PhaseRestarting), &observev1alpha1.FlinkJobFault{Message: "TaskManager is gone"}
			},
			of: "Progressing", is: "False/Recovering", message: "TaskManager is gone", phaseAfter: v1alpha1.PipelineRecovering,
		},
		"Finished": {
			reason: "A job whose input ended has succeeded.",
			report: func(r *observev1alpha1.FlinkJobObservation) { r.Phase = string(contract.PhaseFinished) },
			of:     "Progressing", is: "False/Succeeded", message: "its input did", phaseAfter: v1alpha1.PipelineSucceeded,
		},
		"Pods": {
			reason: "What blocks pods is reported as for every kind.",
			report: func(r *observev1alpha1.FlinkJobObservation) {
				r.Pods = &observev1alpha1.RunPods{Reason: "Unschedulable", Message: "no node has 4 CPUs"}
			},
			of: "PodsHealthy", is: "False/Unschedulable", message: "4 CPUs", phaseAfter: v1alpha1.PipelineRunning,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := begun(t, usualSpec)
			tc.report(w.report)
			w.pass(false)
			w.pass(false)
			if is, message := w.condition(tc.of); is != tc.is || !contains(message, tc.message) || w.phase() != tc.phaseAfter {
				t.Errorf("%s\nwant %s with %q in phase %s, got %s: %s in phase %s", tc.reason, tc.is, tc.message, tc.phaseAfter, is, message, w.phase())
			}
		})
	}
}

// TestReserved: a setting that Capstan needs is refused, and what runs is kept.
func TestReserved(t *testing.T) {
	w := begun(t, usualSpec)
	flink, _ := w.spec["flink"].(map[string]any)
	flink["conf"] = map[string]any{"execution.checkpointing.dir": "file:///tmp"}
	w.settle()
	if is, message := w.condition("Accepted"); is != "False/InvalidSpec" || !contains(message, "execution.checkpointing.dir", "remove it") || w.runs.Revision != 1 || !w.has(names.JobManager) {
		t.Errorf("want a refusal and all objects, got %s: %s", is, message)
	}
}
