// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestRolloutMetric checks the phase of a rollout in Prometheus, with the monitor and the rules of the packages.
func TestRolloutMetric(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("package/monitoring/podmonitor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	monitor := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &monitor.Object); err != nil {
		t.Fatal(err)
	}
	if err := apply(t.Context(), monitor); err != nil {
		t.Fatal(err)
	}

	ns := namespace(t)
	stable(t, algorithm(ns, "reco", versioned("v1"), draining(drainSeconds), rolling(canary(50))))
	series := fmt.Sprintf(`capstan:rollout_phase{namespace=%q,algorithm="reco",phase="Stable"}`, ns)
	within(t, 2*timeout, "Prometheus tells it", func(ctx context.Context) error {
		v, err := promQL(ctx, series)
		if err == nil && v != "1" {
			err = fmt.Errorf("%s is %s", series, v)
		}

		return err
	})
}
