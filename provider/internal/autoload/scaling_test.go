// SPDX-License-Identifier: Apache-2.0

package autoload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// TestLatency of a query of the spec, to record it without a target that replicas are scaled by.
func TestLatency(t *testing.T) {
	own := &v1alpha1.Queries{Latency: "increase(p_seconds_bucket[$window])"}
	expression := func(slot string) v1alpha1.SlotExpression {
		pods := `algorithm="reco",namespace="shop",slot="` + slot + `"`
		return v1alpha1.SlotExpression{
			Slot: slot, Series: "capstan:own_latency_ms",
			Expression: "1000 * histogram_quantile(0.99, sum by (le) (increase(p_seconds_bucket{" + pods + "}[2m]))) > 0 or 0 * (count(up{" + pods + "} == 1) > 0)",
		}
	}
	for name, tc := range map[string]struct {
		reason     string
		percentile *int32
		queries    *v1alpha1.Queries
		want       []v1alpha1.SlotExpression
	}{
		"NotAsked":  {reason: "Nothing reads it.", queries: own},
		"NoQueries": {reason: "The platform's rules record the built-in ones.", percentile: new(int32(99))},
		"NoLatency": {reason: "Nor is there a query of the latency.", percentile: new(int32(99)), queries: &v1alpha1.Queries{Requests: "p_total"}},
		"EachSlot":  {reason: "A candidate serves clients, too.", percentile: new(int32(99)), queries: own, want: []v1alpha1.SlotExpression{expression("a"), expression("b")}},
		"NotPromQL": {reason: "The checks of the latency say why.", percentile: new(int32(99)), queries: &v1alpha1.Queries{Latency: "sum("}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Latency("shop", "reco", &v1alpha1.MetricsParameters{
				Slots: []string{"b", "a"}, Window: &metav1.Duration{Duration: 2 * time.Minute}, Queries: tc.queries, RecordLatency: tc.percentile,
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
