// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// writtenBetween are the files of a folder that were written in a time.
func writtenBetween(dir string, from, to time.Time) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		if i.ModTime().After(from) && i.ModTime().Before(to) {
			out = append(out, path)
		}
		return nil
	})
	return out, err
}

// TestTrainingCoordinatorLost: the node of the coordinator is cut off, and its processes still reach the checkpoints. They stop, because
// their crew is gone, and the next run begins without a person although the old pod is still there. Each step is counted once.
func TestTrainingCoordinatorLost(t *testing.T) {
	dir := t.TempDir()
	ns := namespace(t)
	sharedVolume(t, ns, dir)
	usual := func(steps int64) *v1alpha1.Training {
		tr := training(ns, "fraud", 2, fmt.Sprintf("--steps=%d", steps), "--step=100ms", "--every=20", "--keep=10")
		tr.Spec.Checkpoint.Claim.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		tr.Spec.Checkpoint.Claim.StorageClassName = ns
		tr.Spec.Pod = &v1alpha1.JobPod{}
		// Kubernetes would wait for five minutes before it deletes the pods of a node that does not answer.
		for _, taint := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
			tr.Spec.Pod.Tolerations = append(tr.Spec.Pod.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(10)),
			})
		}
		return tr
	}
	if err := apply(t.Context(), usual(1_000_000)); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "all ranks run", ranksRun(ns, "fraud", 1, 0))
	coordinator, err := memberOf(t.Context(), ns, "fraud", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := memberOf(t.Context(), ns, "fraud", 1, 1); err != nil || other.Spec.NodeName == coordinator.Spec.NodeName {
		t.Fatalf("the workers should be on two nodes, got %v, %v", other, err)
	}
	within(t, timeout, "there is a checkpoint", func(context.Context) error {
		files, err := writtenBetween(dir, time.Time{}, time.Now())
		if err == nil && len(files) < 3 {
			err = fmt.Errorf("there are %v", files)
		}
		return err
	})
	lost := coordinator.Spec.NodeName
	letter := lost[strings.LastIndex(lost, "-")+1:]
	moveCrossplane(t, lost)
	joined := false
	t.Cleanup(func() {
		if !joined {
			cluster(t, "rejoin", letter)
		}
	})
	cluster(t, "cut", letter)
	struck := time.Now()
	t.Logf("node %s, which runs %s, is cut off since %s", lost, coordinator.Name, struck.UTC().Format(time.TimeOnly))

	within(t, 5*timeout, "the run is over, and the old pod is still there", trained(ns, "fraud", func(st v1alpha1.TrainingStatus) bool {
		progressing := st.GetCondition(v1alpha1.TypeProgressing)
		return progressing.Reason == "Restarting" && strings.Contains(progressing.Message, lost) && strings.Contains(progressing.Message, "runs no rank")
	}))
	within(t, 3*timeout, "the next run begins without a person", ranksRun(ns, "fraud", 2, 0))
	next, err := memberOf(t.Context(), ns, "fraud", 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the next run began %s after the node was cut off", next.CreationTimestamp.Sub(struck).Round(time.Second))
	old := &corev1.Pod{}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(coordinator), old); err != nil || old.UID != coordinator.UID || old.Status.Phase != corev1.PodRunning {
		t.Fatalf("the old pod should still be there, got %s, %v", old.Status.Phase, err)
	}
	// The crew notices within ten seconds, and its ranks have the grace period.
	late, err := writtenBetween(dir, struck.Add(50*time.Second), next.CreationTimestamp.Time)
	if err != nil || len(late) > 0 {
		t.Errorf("ranks that are cut off still wrote %v, %v", late, err)
	}

	cluster(t, "rejoin", letter)
	joined = true
	within(t, 5*timeout, "the old pod is gone", func(ctx context.Context) error {
		err := kube.Get(ctx, client.ObjectKeyFromObject(coordinator), &corev1.Pod{})
		if err == nil {
			return errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	})
	// The program compares the sum of all steps with what it has to be, and fails when one is missing or counted twice.
	if next, err = memberOf(t.Context(), ns, "fraud", 2, 0); err != nil {
		t.Fatal(err)
	}
	if err := apply(t.Context(), usual(lastStep(t, next)+400)); err != nil {
		t.Fatal(err)
	}
	within(t, 4*timeout, "each step was counted exactly once", trained(ns, "fraud", func(st v1alpha1.TrainingStatus) bool {
		return st.Phase == v1alpha1.TrainingSucceeded && st.Run == 3
	}))
}
