// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// What a queue writes into the pods that it admits. The label is on the node, and nothing has the taint.
const (
	poolLabel = "capstan.dev/e2e-pool"
	poolTaint = "capstan.dev/e2e-reserved"
)

// kueueObject of a kind of Kueue. An empty namespace makes it one of the cluster.
func kueueObject(kind, ns, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	u.SetKind(kind)
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

// queueOf a namespace that has room for some pods at a time, on nodes of a pool. Its name is jobs, and its priorities are NS-low and NS-high.
func queueOf(t *testing.T, ns string, pods int64) {
	t.Helper()
	quota := func(resource string, amount any) any { return map[string]any{"name": resource, "nominalQuota": amount} }
	objects := []*unstructured.Unstructured{
		kueueObject("ResourceFlavor", "", ns, map[string]any{"spec": map[string]any{
			"nodeLabels":  map[string]any{poolLabel: ns},
			"tolerations": []any{map[string]any{"key": poolTaint, "operator": "Exists", "effect": "NoSchedule"}},
		}}),
		kueueObject("ClusterQueue", "", ns, map[string]any{"spec": map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: ns}},
			"preemption":        map[string]any{"withinClusterQueue": "LowerPriority"},
			"resourceGroups": []any{map[string]any{
				"coveredResources": []any{"cpu", "memory", "pods"},
				"flavors": []any{map[string]any{
					"name":      ns,
					"resources": []any{quota("cpu", "100"), quota("memory", "100Gi"), quota("pods", pods)},
				}},
			}},
		}}),
		kueueObject("LocalQueue", ns, "jobs", map[string]any{"spec": map[string]any{"clusterQueue": ns}}),
		kueueObject("WorkloadPriorityClass", "", ns+"-low", map[string]any{"value": int64(1)}),
		kueueObject("WorkloadPriorityClass", "", ns+"-high", map[string]any{"value": int64(1000)}),
	}
	for _, o := range objects {
		if err := apply(t.Context(), o); err != nil {
			t.Fatalf("cannot make %s %s of Kueue: %v", o.GetKind(), o.GetName(), err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		for _, o := range slices.Backward(objects) {
			if err := kube.Delete(ctx, o); err != nil {
				t.Errorf("cannot delete %s %s of Kueue: %v", o.GetKind(), o.GetName(), err)
			}
		}
	})
	nodes := &corev1.NodeList{}
	if err := kube.List(t.Context(), nodes); err != nil || len(nodes.Items) == 0 {
		t.Fatalf("cannot list nodes: %d, %v", len(nodes.Items), err)
	}
	node := &nodes.Items[0]
	label := func(ctx context.Context, value string) error {
		patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, poolLabel, value)
		return kube.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	if err := label(t.Context(), fmt.Sprintf("%q", ns)); err != nil {
		t.Fatalf("cannot label a node: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := label(ctx, "null"); err != nil {
			t.Errorf("cannot remove a label from a node: %v", err)
		}
	})
}

// inQueue fails until a Training waits in its queue, with all of these words as the cause.
func inQueue(ns, name string, words ...string) func(context.Context) error {
	return trained(ns, name, func(st v1alpha1.TrainingStatus) bool {
		c := st.GetCondition(v1alpha1.TypeProgressing)
		return st.Phase == v1alpha1.TrainingQueued && c.Status == corev1.ConditionFalse &&
			!slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(c.Message, w) })
	})
}

// applied fails until Crossplane has applied all objects for the present generation of a Training.
func applied(ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		tr, err := get(ctx, &v1alpha1.Training{}, ns, name)
		if err != nil {
			return err
		}
		if c := tr.Status.GetCondition(xpv2.TypeSynced); c.Status != corev1.ConditionTrue || c.ObservedGeneration != tr.Generation {
			return fmt.Errorf("condition Synced is %s for generation %d of %d: %s", c.Status, c.ObservedGeneration, tr.Generation, c.Message)
		}
		return nil
	}
}

// jobOf a run of a Training.
func jobOf(t *testing.T, ns, name string) *batchv1.Job {
	t.Helper()
	j, err := get(t.Context(), &batchv1.Job{}, ns, name)
	if err != nil {
		t.Fatalf("cannot read Job %s: %v", name, err)
	}
	return j
}

// chosen reports whether a queue has chosen nodes for the pods of a Job.
func chosen(j *batchv1.Job, ns string) bool {
	pod := j.Spec.Template.Spec
	return pod.NodeSelector[poolLabel] == ns && slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return t.Key == poolTaint })
}

// resumed is what a rank writes when it begins with a checkpoint.
var resumed = regexp.MustCompile(`resumed after step (\d+) from`)

// resumedAfter is the last step of the checkpoint that the ranks of some pods began with, or -1.
func resumedAfter(t *testing.T, ns string, pods []string) int64 {
	t.Helper()
	for _, name := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		if found := resumed.FindStringSubmatch(logs(t.Context(), pod, crew.Container, 0)); found != nil {
			step, err := strconv.ParseInt(found[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("the ranks began with the checkpoint of step %d", step)

			return step
		}
	}
	return -1
}

// refusals are the warnings of Crossplane about a Training: it makes one for each object that it cannot apply.
func refusals(ctx context.Context, ns, name string) ([]string, error) {
	events := &corev1.EventList{}
	if err := kube.List(ctx, events, client.InNamespace(ns)); err != nil {
		return nil, err
	}
	var found []string
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning && e.InvolvedObject.Kind == "Training" && e.InvolvedObject.Name == name {
			found = append(found, e.Reason+": "+e.Message)
		}
	}
	return found, nil
}

// TestTrainingQueue: a queue of Kueue chooses nodes for a Training, takes it back for one of a higher priority, and admits it again. The same
// run continues from its checkpoint, nothing counts as lost, and Crossplane's applies of the Job pass all the while. What no queue admits
// says why.
func TestTrainingQueue(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	const workers = 2
	// It stays: Jobs without a queue do not reach it.
	if err := clusterCommand("add-ons", "kueue"); err != nil {
		t.Fatal(err)
	}
	queueOf(t, ns, workers)
	inQueueOf := func(queue, priority string, tr *v1alpha1.Training) *v1alpha1.Training {
		tr.Spec.Queue = &v1alpha1.JobQueue{Name: queue, Priority: ns + "-" + priority}
		// Faults would not do: only the queue may end an attempt.
		tr.Spec.Retry = &v1alpha1.TrainingRetry{Attempts: new(int32(1))}
		return tr
	}
	low := func(minutes int) *v1alpha1.Training {
		tr := inQueueOf("jobs", "low", training(ns, "low", workers, "--steps=1500", "--step=100ms", "--every=20"))
		tr.Spec.StartWithin = &metav1.Duration{Duration: time.Duration(minutes) * time.Minute}
		return tr
	}
	// passes edits what reaches no pod, so that Crossplane applies the Job once more.
	passes := func(minutes int, when string) {
		t.Helper()
		if err := apply(t.Context(), low(minutes)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "Crossplane's apply passes "+when, applied(ns, "low"))
	}

	if err := apply(t.Context(), inQueueOf("nowhere", "low", training(ns, "lost", workers))); err != nil {
		t.Fatal(err)
	}
	if err := apply(t.Context(), inQueueOf("jobs", "low", training(ns, "large", workers+1))); err != nil {
		t.Fatal(err)
	}
	if err := apply(t.Context(), low(10)); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "the queue admits the Training", ranksRun(ns, "low", 1, 0))
	job := jobOf(t, ns, "low-r1")
	if !chosen(job, ns) {
		t.Errorf("the queue should choose nodes, got %v and %v", job.Spec.Template.Spec.NodeSelector, job.Spec.Template.Spec.Tolerations)
	}
	passes(11, "after the queue has chosen nodes")
	eventually(t, "a queue that does not exist is the cause", inQueue(ns, "lost", "nowhere doesn't exist", "spec.queue.name"))
	eventually(t, "a queue that is too small is the cause", inQueue(ns, "large", "quota for pods", "raise the quota"))
	within(t, 2*timeout, "there is a checkpoint", trained(ns, "low", func(st v1alpha1.TrainingStatus) bool { return st.Checkpoint != nil && st.Checkpoint.Step > 0 }))
	before, err := crewOf(t.Context(), ns, "low")
	if err != nil || len(before) != workers {
		t.Fatalf("want %d pods, got %v, %v", workers, before, err)
	}

	if err := apply(t.Context(), inQueueOf("jobs", "high", training(ns, "high", workers, "--steps=400", "--step=100ms", "--every=20"))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the queue takes the Training back, and it says so", inQueue(ns, "low", `queue "jobs" took run 1 back: Preempted`, "newest checkpoint"))
	eventually(t, "its pods are gone", podless(ns, "low"))
	if job = jobOf(t, ns, "low-r1"); chosen(job, ns) {
		t.Errorf("the queue should take its choice back, got %v", job.Spec.Template.Spec.NodeSelector)
	}
	passes(12, "after the queue has taken it back")
	within(t, 2*timeout, "the other Training has the pods", ranksRun(ns, "high", 1, 0))
	preempted, err := get(t.Context(), &v1alpha1.Training{}, ns, "low")
	if err != nil {
		t.Fatal(err)
	}
	kept := preempted.Status.Checkpoint
	if kept == nil {
		t.Fatalf("the checkpoint should stay in the status, got %+v", preempted.Status)
	}

	within(t, 2*timeout, "the other Training succeeds", trained(ns, "high", func(st v1alpha1.TrainingStatus) bool { return st.Phase == v1alpha1.TrainingSucceeded }))
	within(t, 2*timeout, "the same run continues", ranksRun(ns, "low", 1, 1))
	passes(13, "after the queue has admitted it again")
	if job = jobOf(t, ns, "low-r1"); !chosen(job, ns) {
		t.Errorf("the queue should choose nodes again, got %v", job.Spec.Template.Spec.NodeSelector)
	}
	after, err := crewOf(t.Context(), ns, "low")
	if err != nil || len(after) != workers {
		t.Fatalf("want %d pods, got %v, %v", workers, after, err)
	}
	for name := range before {
		if after[name] != "" {
			t.Errorf("pod %s should be another one", name)
		}
	}
	step := resumedAfter(t, ns, slices.Collect(maps.Keys(after)))
	if step < kept.Step {
		t.Errorf("it should resume after step %d or later, got %d", kept.Step, step)
	}
	within(t, 3*timeout, "each step was counted exactly once", trained(ns, "low", func(st v1alpha1.TrainingStatus) bool { return st.Phase == v1alpha1.TrainingSucceeded }))

	done, err := get(t.Context(), &v1alpha1.Training{}, ns, "low")
	if err != nil {
		t.Fatal(err)
	}
	if st := done.Status; st.Run != 1 || len(st.History) != 1 || st.Restarts == nil || st.Restarts.Runs != 0 || st.Restarts.WithoutProgress != 0 {
		t.Errorf("want one run without a loss, got run %d, %+v, %+v", st.Run, st.History, st.Restarts)
	}
	if found, err := refusals(t.Context(), ns, "low"); err != nil || len(found) > 0 {
		t.Errorf("each apply of Crossplane should pass, got %q, %v", found, err)
	}
	eventually(t, "what no queue admits still says why", inQueue(ns, "lost", "nowhere doesn't exist"))
}
