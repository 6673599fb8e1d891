// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// nodeLostAim is how long it may take, in seconds, until all ranks start again after a node is lost and there is a spare.
const nodeLostAim = 20.0

// sharedVolume is a volume that pods of all nodes write, for the claims of a StorageClass that has the name of a namespace. It is a folder of
// the machine that all nodes of the embedded cluster run on, as a file server would have it.
func sharedVolume(t *testing.T, ns, dir string) {
	t.Helper()
	// Kubernetes changes the owner of no such folder.
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	v := &corev1.PersistentVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              ns,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: dir, Type: new(corev1.HostPathDirectory)},
			},
		},
	}
	if err := apply(t.Context(), v); err != nil {
		t.Fatalf("cannot make a volume: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := kube.Delete(ctx, v); err != nil {
			t.Errorf("cannot delete a volume: %v", err)
		}
	})
}

// moveCrossplane and Capstan to other nodes, so that the loss of a node is not theirs, too: it would take minutes until they report it.
func moveCrossplane(t *testing.T, from string) {
	t.Helper()
	const crossplane = "crossplane-system"
	cordon := func(ctx context.Context, on bool) error {
		patch := fmt.Sprintf(`{"spec": {"unschedulable": %t}}`, on)
		return kube.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: from}}, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	if err := cordon(t.Context(), true); err != nil {
		t.Fatalf("cannot cordon a node: %v", err)
	}
	defer func() {
		if err := cordon(context.Background(), false); err != nil {
			t.Errorf("cannot let pods on a node again: %v", err)
		}
	}()
	if err := kube.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(crossplane), client.MatchingFields{"spec.nodeName": from}); err != nil {
		t.Fatalf("cannot delete pods of Crossplane: %v", err)
	}
	within(t, 2*timeout, "Crossplane and Capstan run on other nodes", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := kube.List(ctx, pods, client.InNamespace(crossplane)); err != nil {
			return err
		}
		for _, p := range pods.Items {
			ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
			if p.Spec.NodeName == from || !ready {
				return fmt.Errorf("pod %s is on node %q, ready %t", p.Name, p.Spec.NodeName, ready)
			}
		}
		return nil
	})
}

// A logLine that a pod wrote, and when.
type logLine struct {
	at   time.Time
	text string
}

// timed lines of the log of a member.
func timed(ctx context.Context, p *corev1.Pod) ([]logLine, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	raw, err := clients.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Container: crew.Container, Timestamps: true}).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var lines []logLine
	for line := range strings.Lines(string(raw)) {
		at, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if when, err := time.Parse(time.RFC3339Nano, at); err == nil {
			lines = append(lines, logLine{at: when, text: text})
		}
	}
	return lines, nil
}

// first of these lines that matches, from a line on.
func first(lines []logLine, from int, pattern *regexp.Regexp) (int, []string) {
	for i := from; i < len(lines); i++ {
		if m := pattern.FindStringSubmatch(lines[i].text); m != nil {
			return i, m
		}
	}
	return -1, nil
}

// What members and rank 0 write.
var (
	begins  = regexp.MustCompile(`"msg":"attempt begins","attempt":1,"rank":(\d+)`)
	begun   = regexp.MustCompile(`^resumed after step (\d+) from (\S+)$`)
	saved   = regexp.MustCompile(`^step=(\d+) of=\d+ checkpoint=(\S+)$`)
	stepped = regexp.MustCompile(`^step=(\d+) of=\d+ loss=`)
)

// A takeover is what the logs say about the attempt after the first.
type takeover struct {
	// started is when the last of its ranks did, and going when they had made a step together.
	started, going time.Time
	// reached is the furthest step before, saved the newest checkpoint before, resumed the one that it began with and next its first step.
	reached, saved, resumed, next int64
	// from is the path of that checkpoint, and newest of the one before.
	from, newest string
}

// tookOver fails until a spare has a rank, and both ranks have made a step.
func tookOver(out *takeover, coordinator, spare *corev1.Pod) func(context.Context) error {
	return func(ctx context.Context) error {
		was, err := timed(ctx, coordinator)
		if err != nil {
			return err
		}
		its, err := timed(ctx, spare)
		if err != nil {
			return err
		}
		own, _ := first(was, 0, begins)
		other, rank := first(its, 0, begins)
		if own < 0 || other < 0 {
			return errors.New("not all ranks started again")
		}
		if rank[1] != "1" {
			return fmt.Errorf("the spare has rank %s, not the one that was lost", rank[1])
		}
		since, from := first(was, own, begun)
		going, next := first(was, own, stepped)
		if since < 0 || going < 0 {
			return errors.New("the ranks have made no step since")
		}
		*out = takeover{started: its[other].at, going: was[going].at, from: from[2], resumed: number(from[1]), next: number(next[1])}
		if was[own].at.After(out.started) {
			out.started = was[own].at
		}
		for _, line := range was[:own] {
			if m := stepped.FindStringSubmatch(line.text); m != nil {
				out.reached = number(m[1])
			}
			if m := saved.FindStringSubmatch(line.text); m != nil {
				out.saved, out.newest = number(m[1]), m[2]
			}
		}
		return nil
	}
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // The pattern has digits only.
	return n
}

// lastStep that rank 0 reported in its log.
func lastStep(t *testing.T, p *corev1.Pod) int64 {
	t.Helper()
	lines, err := timed(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range slices.Backward(lines) {
		if m := stepped.FindStringSubmatch(line.text); m != nil {
			return number(m[1])
		}
	}
	t.Fatalf("rank 0 in %s reported no step", p.Name)
	return 0
}

// TestTrainingNodeLost: when the node of a worker is lost, a spare takes the worker's rank without Capstan's help. The ranks begin with the
// newest checkpoint, so that each step is counted once, and the status names pod and node. When the node is back, its pod is the spare.
func TestTrainingNodeLost(t *testing.T) {
	dir := t.TempDir()
	ns := namespace(t)
	sharedVolume(t, ns, dir)
	usual := func(steps int64) *v1alpha1.Training {
		tr := training(ns, "fraud", 2, fmt.Sprintf("--steps=%d", steps), "--step=100ms", "--every=20", "--keep=10")
		tr.Spec.Spares = new(int32(1))
		tr.Spec.Checkpoint.Claim.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		tr.Spec.Checkpoint.Claim.StorageClassName = ns
		return tr
	}
	if err := apply(t.Context(), usual(1_000_000)); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "all ranks run", ranksRun(ns, "fraud", 1, 0))
	crewmates, on := make([]*corev1.Pod, 3), map[string]bool{}
	within(t, timeout, "each pod runs on a node of its own", func(ctx context.Context) error {
		clear(on)
		for index := range crewmates {
			p, err := memberOf(ctx, ns, "fraud", 1, index)
			if err != nil {
				return err
			}
			crewmates[index], on[p.Spec.NodeName] = p, true
		}
		if len(on) < len(crewmates) {
			return fmt.Errorf("they share the nodes %v", on)
		}
		return nil
	})
	coordinator, worker, spare := crewmates[0], crewmates[1], crewmates[2]
	eventually(t, "nothing is missing", trained(ns, "fraud", func(st v1alpha1.TrainingStatus) bool {
		return st.GetCondition(v1alpha1.TypePodsHealthy).Status == corev1.ConditionTrue
	}))
	within(t, timeout, "there are checkpoints", func(ctx context.Context) error {
		lines, err := timed(ctx, coordinator)
		if err != nil {
			return err
		}
		if at, _ := first(lines, 0, regexp.MustCompile(`^step=60 .*checkpoint=`)); at < 0 {
			return errors.New("not three yet")
		}
		return nil
	})

	lost := worker.Spec.NodeName
	letter := lost[strings.LastIndex(lost, "-")+1:]
	moveCrossplane(t, lost)
	plugged := false
	t.Cleanup(func() {
		if !plugged {
			cluster(t, "plug", letter)
		}
	})
	struck := time.Now()
	// Without its power a node closes no connection. One that is plugged in again is not cut off.
	cluster(t, "cut", letter)
	cluster(t, "unplug", letter)
	t.Logf("node %s, which ran %s, is lost since %s", lost, worker.Name, struck.UTC().Format(time.TimeOnly))
	var after takeover
	eventually(t, "the spare has the rank", tookOver(&after, coordinator, spare))
	took := after.started.Sub(struck).Seconds()
	t.Logf("from the loss of the node, all ranks had started after %.1f s, and had made a step after %.1f s; before it they had made step %d and saved step %d",
		took, after.going.Sub(struck).Seconds(), after.reached, after.saved)
	if took > nodeLostAim+slack {
		t.Errorf("all ranks had started %.1f s after a node was lost, want at most %.0f s", took, nodeLostAim)
	}
	if after.from != after.newest || after.resumed != after.saved || after.next != after.saved+1 {
		t.Errorf("the ranks began with %s, step %d, after they had saved %s, step %d", after.from, after.next, after.newest, after.saved)
	}
	if repeated := after.reached - after.saved; repeated > 20 {
		t.Errorf("%d steps are repeated, and a checkpoint is written every 20", repeated)
	}

	within(t, timeout, "the status names pod and node", trained(ns, "fraud", func(st v1alpha1.TrainingStatus) bool {
		f, pods := st.LastFault, st.GetCondition(v1alpha1.TypePodsHealthy)
		return st.Phase == v1alpha1.TrainingRunning && st.Run == 1 && st.Attempt != nil && *st.Attempt == 1 && st.Restarts.Processes == 1 &&
			f != nil && f.Class == string(crew.ClassInfrastructure) && f.Index == 1 && f.Rank == -1 && f.Node == lost && f.Attempt == 0 &&
			pods.Reason == v1alpha1.ReasonMemberMissing && strings.Contains(pods.Message, "pod 1") && strings.Contains(pods.Message, lost) &&
			st.GetCondition(v1alpha1.TypeProgressing).Status == corev1.ConditionTrue
	}))

	cluster(t, "plug", letter)
	plugged = true
	within(t, 5*timeout, "the lost pod is replaced, and is the spare", func(ctx context.Context) error {
		p, err := memberOf(ctx, ns, "fraud", 1, 1)
		if err != nil {
			return err
		}
		if p.UID == worker.UID {
			return errors.New("the lost pod is not replaced yet")
		}
		return trained(ns, "fraud", func(st v1alpha1.TrainingStatus) bool {
			return st.Phase == v1alpha1.TrainingRunning && *st.Attempt == 1 && st.GetCondition(v1alpha1.TypePodsHealthy).Status == corev1.ConditionTrue
		})(ctx)
	})

	// The program compares the sum of all steps with what it has to be, and fails when one is missing or counted twice.
	if err := apply(t.Context(), usual(lastStep(t, coordinator)+400)); err != nil {
		t.Fatal(err)
	}
	within(t, 4*timeout, "each step was counted exactly once", trained(ns, "fraud", func(st v1alpha1.TrainingStatus) bool {
		return st.Phase == v1alpha1.TrainingSucceeded && st.Run == 2
	}))
}
