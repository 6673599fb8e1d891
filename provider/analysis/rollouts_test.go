// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// TestRollouts tells as metrics what Analyses are told, and nothing else.
func TestRollouts(t *testing.T) {
	analysis := func(name, algorithm, told string) client.Object {
		a := &v1alpha1.Analysis{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		a.Spec.ForProvider.Algorithm = algorithm
		if told != "" {
			a.Annotations = map[string]string{v1alpha1.AnnotationRollout: told}
		}
		return a
	}
	kube := newKube(t, interceptor.Funcs{},
		analysis("reco", "reco", `{"phase":"Holding","reason":"Inconclusive","since":"1970-01-01T00:10:00Z"}`),
		analysis("again", "reco", `{"phase":"Stable","since":"1970-01-01T00:10:00Z"}`),
		analysis("none", "none", ""),
		analysis("wrong", "wrong", `{"phase":"a b","since":"1970-01-01T00:10:00Z"}`),
		analysis("broken", "broken", `{"phase":`),
		analysis("new", "new", `{"phase":"Stable","since":"1970-01-01T00:00:01Z"}`),
	)

	// Of two Analyses of one Algorithm the first in order counts: again comes before reco.
	want := `
# HELP capstan_algorithm_rollout_phase The phase that the rollout of an Algorithm is in, as 1.
# TYPE capstan_algorithm_rollout_phase gauge
capstan_algorithm_rollout_phase{algorithm="new",algorithm_namespace="shop",phase="Stable",reason=""} 1
capstan_algorithm_rollout_phase{algorithm="reco",algorithm_namespace="shop",phase="Stable",reason=""} 1
# HELP capstan_algorithm_rollout_phase_start_time_seconds When the phase began that the rollout of an Algorithm is in, in seconds since 1970.
# TYPE capstan_algorithm_rollout_phase_start_time_seconds gauge
capstan_algorithm_rollout_phase_start_time_seconds{algorithm="new",algorithm_namespace="shop"} 1
capstan_algorithm_rollout_phase_start_time_seconds{algorithm="reco",algorithm_namespace="shop"} 600
`
	registry := prometheus.NewRegistry()
	registry.MustRegister(newRollouts(kube))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := &strings.Builder{}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(got, f); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got.String()); diff != "" {
		t.Errorf("What Analyses are told should be the metrics: -want, +got:\n%s", diff)
	}
}
