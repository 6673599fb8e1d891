// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// flinkStream with a double of Flink, which has the command line of Java. It counts numbers: see images/demo-flink.
func flinkStream(ns, name string, args ...string) *v1alpha1.Pipeline {
	cpu, memory, storage := resource.MustParse("10m"), resource.MustParse("1280Mi"), resource.MustParse("64Mi")
	seconds := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Second} }
	return &v1alpha1.Pipeline{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Pipeline"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: v1alpha1.PipelineSpec{
			Engine:    v1alpha1.PipelineFlink,
			Image:     os.Getenv("CAPSTAN_REGISTRY") + "/capstan-dev/demo-flink:" + os.Getenv("CAPSTAN_VERSION"),
			Args:      append([]string{"--pause=50ms"}, args...),
			Env:       []v1alpha1.EnvVar{{Name: "FLINK_JAVA", Value: "/demo-flink"}},
			Resources: &v1alpha1.Resources{CPU: &cpu, Memory: &memory},
			Flink: &v1alpha1.PipelineFlinkSpec{
				MainClass: "org.example.Account",
				State: v1alpha1.PipelineFlinkState{Claim: &v1alpha1.ModelCache{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   v1alpha1.ModelCacheResources{Requests: v1alpha1.ModelCacheRequests{Storage: &storage}},
				}},
				CheckpointEvery: seconds(2), SavepointWithin: seconds(30), StableWithin: seconds(60),
			},
		},
	}
}

// A flinkCount is what all JobManagers of a stream counted, by their logs.
type flinkCount struct {
	t        *testing.T
	ns, name string

	mu      sync.Mutex
	highest int
	wrong   []string
	seen    map[string]bool
}

// countFlink follows the logs of the JobManager's pods, each from its begin, while the test runs.
func countFlink(t *testing.T, ns, name string) *flinkCount {
	t.Helper()
	a := &flinkCount{t: t, ns: ns, name: name, highest: -1, seen: map[string]bool{}}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { stop(); all.Wait() })
	all.Go(func() {
		for ctx.Err() == nil {
			var pods corev1.PodList
			if err := kube.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{runner.LabelPipeline: name, flink.LabelRole: flink.RoleJobManager}); err == nil {
				for _, p := range pods.Items {
					if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].State.Running == nil || a.seen[string(p.UID)] {
						continue
					}
					a.seen[string(p.UID)] = true
					all.Go(func() { a.read(ctx, p.Name) })
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return a
}

func (a *flinkCount) read(ctx context.Context, pod string) {
	in, err := clients.CoreV1().Pods(a.ns).GetLogs(pod, &corev1.PodLogOptions{Container: runner.Container, Follow: true}).Stream(ctx)
	if err != nil {
		return
	}
	defer in.Close()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		at := strings.Index(lines.Text(), "account ")
		var n, count int
		if at < 0 {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text()[at:], "account %d %d", &n, &count); err != nil {
			continue
		}
		a.mu.Lock()
		a.highest = max(a.highest, n)
		if count != n/4+1 {
			a.wrong = append(a.wrong, lines.Text())
		}
		a.mu.Unlock()
	}
}

// exact fails if a number was counted twice or not at all, or nothing since a number. It returns the highest number.
func (a *flinkCount) exact(beyond int) int {
	a.t.Helper()
	eventually(a.t, "it goes on counting", func(context.Context) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.highest <= beyond {
			return fmt.Errorf("the highest number is %d, and was %d", a.highest, beyond)
		}
		return nil
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.wrong) > 0 {
		a.t.Errorf("numbers were lost or counted twice: %v", a.wrong[:min(len(a.wrong), 5)])
	}
	return a.highest
}

// flinkStatus fails until the status of a stream is as it should be.
func flinkStatus(ns, name string, is func(v1alpha1.PipelineStatus, v1alpha1.PipelineStream) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := get(ctx, &v1alpha1.Pipeline{}, ns, name)
		if err != nil {
			return err
		}
		s := v1alpha1.PipelineStream{}
		if p.Status.Stream != nil {
			s = *p.Status.Stream
		}
		if !is(p.Status, s) {
			return fmt.Errorf("the stream is %s, %+v, from %+v, savepoint %+v: %v", p.Status.Phase, s, s.From, s.Savepoint, p.Status.Conditions)
		}
		return nil
	}
}

// flinkRevision fails until a revision runs and has completed a checkpoint.
func flinkRevision(ns, name string, number int32) func(context.Context) error {
	return flinkStatus(ns, name, func(st v1alpha1.PipelineStatus, s v1alpha1.PipelineStream) bool {
		return st.Phase == v1alpha1.PipelineRunning && s.Revision == number && s.Checkpoint != nil
	})
}

// TestPipelineFlink: an edit goes on from its savepoint, a broken edit is taken back to it, a JobManager that is deleted or evicted leaves
// with a savepoint, a suspension does, too, and through all of it each number is counted once.
func TestPipelineFlink(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	if err := apply(t.Context(), flinkStream(ns, "clicks")); err != nil {
		t.Fatal(err)
	}
	a := countFlink(t, ns, "clicks")
	within(t, 2*timeout, "the stream runs", flinkRevision(ns, "clicks", 1))
	n := a.exact(10)

	if err := apply(t.Context(), flinkStream(ns, "clicks", "--end=1000000")); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "an edit makes the next revision", flinkRevision(ns, "clicks", 2))
	eventually(t, "it goes on from the savepoint", flinkStatus(ns, "clicks", func(_ v1alpha1.PipelineStatus, s v1alpha1.PipelineStream) bool {
		return s.From != nil && s.Savepoint != nil && s.From.Path == s.Savepoint.Path && s.SavepointError == ""
	}))
	n = a.exact(n)

	if err := apply(t.Context(), flinkStream(ns, "clicks", "--end=1000000", "--failing")); err != nil {
		t.Fatal(err)
	}
	within(t, 3*timeout, "a broken edit is taken back", flinkRevision(ns, "clicks", 4))
	eventually(t, "it says so", flinkStatus(ns, "clicks", func(_ v1alpha1.PipelineStatus, s v1alpha1.PipelineStream) bool {
		return s.RolledBack != nil && s.RolledBack.Revision == 3 && strings.Contains(s.RolledBack.Message, "made to fail") && s.From != nil
	}))
	n = a.exact(n)

	jobManager := func() *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "clicks-jobmanager-0"}}
	}
	saved := func(what string, leave func() error) {
		t.Helper()
		before, err := get(t.Context(), &v1alpha1.Pipeline{}, ns, "clicks")
		if err != nil {
			t.Fatal(err)
		}
		id := int64(0)
		if s := before.Status.Stream.Savepoint; s != nil {
			id = s.ID
		}
		if err := leave(); err != nil {
			t.Fatal(err)
		}
		within(t, 2*timeout, what, flinkStatus(ns, "clicks", func(st v1alpha1.PipelineStatus, s v1alpha1.PipelineStream) bool {
			return st.Phase == v1alpha1.PipelineRunning && s.Savepoint != nil && s.Savepoint.ID > id && s.From != nil && s.From.ID == s.Savepoint.ID
		}))
		n = a.exact(n)
	}
	saved("a JobManager that is deleted leaves with a savepoint", func() error { return kube.Delete(t.Context(), jobManager()) })
	saved("a JobManager that is evicted, as by a drain, leaves with a savepoint", func() error {
		return clients.PolicyV1().Evictions(ns).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: jobManager().ObjectMeta})
	})

	suspended := flinkStream(ns, "clicks", "--end=1000000")
	suspended.Spec.Suspend = true
	if err := apply(t.Context(), suspended); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "a suspension ends all pods", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := kube.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{runner.LabelPipeline: "clicks"}); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d pods are left", len(pods.Items))
		}
		return nil
	})
	if err := apply(t.Context(), flinkStream(ns, "clicks", "--end=1000000")); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "the stream goes on", flinkRevision(ns, "clicks", 4))
	a.exact(n)
}
