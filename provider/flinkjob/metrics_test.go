// SPDX-License-Identifier: Apache-2.0

package flinkjob

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/runner"
)

// TestMetrics shows the series of a stream that runs well, one that does not, one that no companion has answered for, and one with two
// FlinkJobs. Only pods of JobManagers have an interval, and only where their plan can be read.
func TestMetrics(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	job := func(name, pipeline string, at v1alpha1.FlinkJobObservation) client.Object {
		return &v1alpha1.FlinkJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       v1alpha1.FlinkJobSpec{ForProvider: v1alpha1.FlinkJobParameters{Pipeline: pipeline}},
			Status:     v1alpha1.FlinkJobStatus{AtProvider: at},
		}
	}
	planned := func(name, pipeline, role, plan string) client.Object {
		p := pod(role, corev1.ContainerState{})
		p.Name, p.Labels[runner.LabelPipeline] = name, pipeline
		p.Annotations = map[string]string{runner.AnnotationPlan: plan, "example.org/other": "text"}
		slimmed, err := slim(&p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := slim(slimmed) // A list that is streamed does so.
		if err != nil {
			t.Fatal(err)
		}
		small, ok := again.(*corev1.Pod)
		if !ok || small.Annotations["example.org/other"] != "" {
			t.Errorf("the cache should hold no other annotation, got %v", small.Annotations)
		}
		return small
	}
	well := v1alpha1.FlinkJobObservation{Revision: 1, Phase: "Running", Restarts: 2, Checkpoint: &v1alpha1.FlinkJobCheckpoint{ID: 7, At: metav1.NewTime(now)}}
	c := newCounts(
		fake.NewClientBuilder().WithScheme(scheme).WithObjects(
			job("clicks", "clicks", well), job("clicks-again", "clicks", well),
			job("views", "views", v1alpha1.FlinkJobObservation{Phase: "Restarting", CheckpointFault: "full", SavepointError: "full", Silent: "it does not answer"}),
			job("queued", "queued", v1alpha1.FlinkJobObservation{Pods: &v1alpha1.RunPods{Reason: "Unschedulable"}}),
		).Build(),
		fake.NewClientBuilder().WithScheme(scheme).WithObjects(
			planned("a", "clicks", flink.RoleJobManager, `{"checkpointSeconds": 300}`), planned("b", "clicks", flink.RoleTaskManager, `{"checkpointSeconds": 7}`),
			planned("c", "views", flink.RoleJobManager, `{}`), planned("d", "views", flink.RoleJobManager, `{"checkpointSeconds": 90}`),
			planned("e", "queued", flink.RoleJobManager, `no plan`),
		).Build())
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	text := &strings.Builder{}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(text, f); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "#") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{
		`capstan_stream_checkpoint_failed{pipeline="clicks",pipeline_namespace="shop"} 0`,
		`capstan_stream_checkpoint_failed{pipeline="views",pipeline_namespace="shop"} 1`,
		`capstan_stream_checkpoint_interval_seconds{pipeline="clicks",pipeline_namespace="shop"} 300`,
		`capstan_stream_checkpoint_interval_seconds{pipeline="views",pipeline_namespace="shop"} 90`,
		`capstan_stream_last_checkpoint_timestamp_seconds{pipeline="clicks",pipeline_namespace="shop"} 1.795176e+09`,
		`capstan_stream_phase{phase="Restarting",pipeline="views",pipeline_namespace="shop"} 1`,
		`capstan_stream_phase{phase="Running",pipeline="clicks",pipeline_namespace="shop"} 1`,
		`capstan_stream_pods_blocked{pipeline="queued",pipeline_namespace="shop",reason="Unschedulable"} 1`,
		`capstan_stream_restarts{pipeline="clicks",pipeline_namespace="shop"} 2`,
		`capstan_stream_restarts{pipeline="views",pipeline_namespace="shop"} 0`,
		`capstan_stream_savepoint_failed{pipeline="clicks",pipeline_namespace="shop"} 0`,
		`capstan_stream_savepoint_failed{pipeline="views",pipeline_namespace="shop"} 1`,
		`capstan_stream_silent{pipeline="clicks",pipeline_namespace="shop"} 0`,
		`capstan_stream_silent{pipeline="views",pipeline_namespace="shop"} 1`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series -want, +got:\n%s", diff)
	}
}
