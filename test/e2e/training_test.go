// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// trainingImage is a training that keeps account: it fails at the end if a step was counted twice, or not at all.
func trainingImage() string {
	return os.Getenv("CAPSTAN_REGISTRY") + "/capstan-dev/demo-training:" + os.Getenv("CAPSTAN_VERSION")
}

// training of a few small workers with a claim of its own.
func training(ns, name string, workers int32, args ...string) *v1alpha1.Training {
	cpu, memory, storage := resource.MustParse("10m"), resource.MustParse("48Mi"), resource.MustParse("64Mi")
	return &v1alpha1.Training{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Training"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: v1alpha1.TrainingSpec{
			Image: trainingImage(), Args: append([]string{"/demo-training"}, args...), Workers: &workers,
			Resources: &v1alpha1.Resources{CPU: &cpu, Memory: &memory},
			Checkpoint: &v1alpha1.TrainingCheckpoint{Claim: &v1alpha1.ModelCache{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   v1alpha1.ModelCacheResources{Requests: v1alpha1.ModelCacheRequests{Storage: &storage}},
			}},
			Watch: &v1alpha1.TrainingWatch{Phases: &v1alpha1.TrainingPhases{
				Setup: &metav1.Duration{Duration: time.Minute}, Step: &metav1.Duration{Duration: 8 * time.Second},
			}},
			GracePeriod: &metav1.Duration{Duration: 5 * time.Second},
		},
	}
}

// trained fails until the status of a Training is as it should be.
func trained(ns, name string, is func(v1alpha1.TrainingStatus) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		tr, err := get(ctx, &v1alpha1.Training{}, ns, name)
		if err != nil {
			return err
		}
		if st := tr.Status; !is(st) {
			attempt := int32(-1)
			if st.Attempt != nil {
				attempt = *st.Attempt
			}
			return fmt.Errorf("the Training is %s in run %d, attempt %d, fault %+v, history %+v: %v", st.Phase, st.Run, attempt, st.LastFault, st.History, st.Conditions)
		}
		return nil
	}
}

// ranksRun fails until all ranks of a run are in an attempt, or a later one.
func ranksRun(ns, name string, run, attempt int32) func(context.Context) error {
	return trained(ns, name, func(st v1alpha1.TrainingStatus) bool {
		return st.Phase == v1alpha1.TrainingRunning && st.Run == run && st.Attempt != nil && *st.Attempt >= attempt
	})
}

// crewOf a Training: the UIDs of its pods that have not ended, by their names.
func crewOf(ctx context.Context, ns, name string) (map[string]string, error) {
	var pods corev1.PodList
	if err := kube.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{crew.LabelTraining: name}); err != nil {
		return nil, err
	}
	uids := map[string]string{}
	for _, p := range pods.Items {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			uids[p.Name] = string(p.UID)
		}
	}
	return uids, nil
}

// podless fails until no pod of a Training runs.
func podless(ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		pods, err := crewOf(ctx, ns, name)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("pods still run: %v", slices.Sorted(maps.Keys(pods)))
		}
		return err
	}
}

// TestTraining: ranks start again in their pods after faults, pods that are deleted are replaced, an edit goes on from the newest
// checkpoint, and no step is counted twice. Old checkpoints are removed meanwhile, and a program that writes none is reported. A wrong
// argument ends a Training with its last lines.
func TestTraining(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	wrong := training(ns, "wrong", 2, "--nonsense")
	if err := apply(t.Context(), wrong); err != nil {
		t.Fatal(err)
	}
	unsaved := func(every string) *v1alpha1.Training {
		tr := training(ns, "unsaved", 1, "--steps=1000000", "--step=100ms", every)
		tr.Spec.Checkpoint.Every = &metav1.Duration{Duration: 2 * time.Second}

		return tr
	}
	if err := apply(t.Context(), unsaved("--every=0")); err != nil {
		t.Fatal(err)
	}
	usual := func(more ...string) *v1alpha1.Training {
		tr := training(ns, "fraud", 4, append([]string{"--steps=1500", "--step=100ms", "--every=20", "--keep=1000"}, more...)...)
		tr.Spec.Metrics, tr.Spec.Checkpoint.Keep = &v1alpha1.TrainingMetrics{}, new(int32(5))

		return tr
	}
	if err := apply(t.Context(), usual("--fault=kill:1:30:0", "--fault=nan:0:60:1", "--fault=hang:3:90:2")); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "all ranks run", ranksRun(ns, "fraud", 1, 0))
	before, err := crewOf(t.Context(), ns, "fraud")
	if err != nil || len(before) != 4 {
		t.Fatalf("want four pods, got %v, %v", before, err)
	}
	within(t, 2*timeout, "ranks start again after a kill, a loss that is not a number, and a stall", ranksRun(ns, "fraud", 1, 3))
	if after, err := crewOf(t.Context(), ns, "fraud"); err != nil || !maps.Equal(before, after) {
		t.Errorf("pods should stay as they are: before %v, after %v, %v", before, after, err)
	}

	within(t, timeout, "the first checkpoint is gone from the volume, and the newest stay", kept(ns, "fraud", 1, 2, "/checkpoints/attempt-0-step-00000020"))

	for _, index := range []string{"3", "0"} {
		attempt := attemptOf(t, ns, "fraud")
		for name, uid := range before {
			if strings.HasPrefix(name, "fraud-r1-"+index+"-") {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
				if err := kube.Delete(t.Context(), pod); err != nil {
					t.Fatalf("cannot delete pod %s with UID %s: %v", name, uid, err)
				}
			}
		}
		within(t, 2*timeout, "the crew goes on with another pod "+index, ranksRun(ns, "fraud", 1, attempt+1))
	}

	within(t, 2*timeout, "Prometheus sees the steps of the run", func(ctx context.Context) error {
		_, err := promQL(ctx, fmt.Sprintf("max(capstan_training_step{namespace=%q,training=%q,run=%q}) > 0", ns, "fraud", "1"))

		return err
	})

	if err := apply(t.Context(), usual("--pad=4")); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "an edit makes the next run", ranksRun(ns, "fraud", 2, 0))
	eventually(t, "it goes on from the newest checkpoint", trained(ns, "fraud", func(st v1alpha1.TrainingStatus) bool {
		return len(st.History) == 1 && st.History[0].Outcome == "Edited" && st.Progress != nil && st.Progress.Step > 90
	}))

	suspended := usual("--pad=4")
	suspended.Spec.Suspend = true
	if err := apply(t.Context(), suspended); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a suspended Training gives its pods back", podless(ns, "fraud"))
	eventually(t, "it is reported", trained(ns, "fraud", func(st v1alpha1.TrainingStatus) bool { return st.Phase == v1alpha1.TrainingSuspended }))
	if err := apply(t.Context(), usual("--pad=4")); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "it goes on", ranksRun(ns, "fraud", 3, 0))
	within(t, 3*timeout, "each step was counted exactly once", trained(ns, "fraud", func(st v1alpha1.TrainingStatus) bool { return st.Phase == v1alpha1.TrainingSucceeded }))

	within(t, 2*timeout, "a program that writes no checkpoint is reported", trained(ns, "unsaved", checkpoints(v1alpha1.ReasonCheckpointOverdue)))
	// Its options leave the time between two checkpoints to the spec.
	if err := apply(t.Context(), unsaved("--every=100000")); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "one that knows how often writes them in time", trained(ns, "unsaved", func(st v1alpha1.TrainingStatus) bool {
		return st.Run == 2 && st.Checkpoint != nil && checkpoints(v1alpha1.ReasonCheckpointsInTime)(st)
	}))

	within(t, timeout, "a wrong argument ends a Training with its last lines", trained(ns, "wrong", func(st v1alpha1.TrainingStatus) bool {
		return st.Phase == v1alpha1.TrainingFailed && strings.Contains(st.Message, "nonsense")
	}))
	eventually(t, "and gives its pods back", podless(ns, "wrong"))
}

// checkpoints reports whether what is said of them has a reason.
func checkpoints(reason xpv2.ConditionReason) func(v1alpha1.TrainingStatus) bool {
	return func(st v1alpha1.TrainingStatus) bool {
		return st.GetCondition(v1alpha1.TypeCheckpointsHealthy).Reason == reason
	}
}

// kept fails unless the newest checkpoints that rank 0 reported to its pod are on the volume, and these paths are not.
func kept(ns, name string, run, newest int, gone ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := coordinatorOf(ctx, ns, name, run)
		if err != nil {
			return err
		}
		has := func(path string) error {
			// The image has no shell, and its companion reads a folder.
			out, err := execIn(ctx, p, crew.Container, "", crew.BinaryDir+"/companion", "digest", path)
			if err != nil {
				return fmt.Errorf("%s: %w: %s", path, err, out)
			}
			return nil
		}
		for _, path := range gone {
			if err := has(path); err == nil || !strings.Contains(err.Error(), "no such file") {
				return fmt.Errorf("%s should be gone (%w)", path, err)
			}
		}
		var written []string
		for line := range strings.SplitSeq(logs(ctx, p, crew.Container, 0), "\n") {
			if _, path, ok := strings.Cut(line, " checkpoint="); ok {
				written = append(written, path)
			}
		}
		if len(written) < newest {
			return fmt.Errorf("only %v were written", written)
		}
		for _, path := range written[len(written)-newest:] {
			if err := has(path); err != nil {
				return err
			}
		}
		return nil
	}
}

// coordinatorOf a run: the pod of index 0 that runs.
func coordinatorOf(ctx context.Context, ns, name string, run int) (*corev1.Pod, error) {
	return memberOf(ctx, ns, name, run, 0)
}

// memberOf a run: the pod of an index that runs, and is not about to end.
func memberOf(ctx context.Context, ns, name string, run, index int) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := kube.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{crew.LabelTraining: name}); err != nil {
		return nil, err
	}
	for i, p := range pods.Items {
		if strings.HasPrefix(p.Name, fmt.Sprintf("%s-r%d-%d-", name, run, index)) && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			return &pods.Items[i], nil
		}
	}
	return nil, fmt.Errorf("no pod of index %d of run %d runs", index, run)
}

// attemptOf a run.
func attemptOf(t *testing.T, ns, name string) int32 {
	t.Helper()
	tr, err := get(t.Context(), &v1alpha1.Training{}, ns, name)
	if err != nil || tr.Status.Attempt == nil {
		t.Fatalf("want an attempt, got %v, %v", tr.Status, err)
	}
	return *tr.Status.Attempt
}
