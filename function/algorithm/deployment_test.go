// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"testing"

	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// TestSizeAsSeen gives a size that an autoscaler may be changing back only together with the version of the Deployment that it
// was seen in.
func TestSizeAsSeen(t *testing.T) {
	const scaled = "{image: x, scaling: {minReplicas: 2, maxReplicas: 9}}"
	cases := map[string]struct {
		reason string
		spec   string
		do     func(w *world)
		want   string
	}{
		"NotYetScaled": {"the autoscaler may write its first size at any moment", scaled, nil, "41"},
		"Scaled":       {"no size is given once it is the autoscaler's", scaled, func(w *world) { w.scale(6) }, ""},
		"Fixed":        {"nobody else writes a size that the spec says", "{image: x, replicas: 3}", nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := serving(t, tc.spec)
			if tc.do != nil {
				tc.do(w)
			}
			w.change(names.Deployment(names.SlotA), func(o composetest.Object) {
				compose.Map(o, "metadata")["resourceVersion"] = "41"
			})
			if got := compose.Text(object(t, w.plan(), names.Deployment(names.SlotA)), "metadata", "resourceVersion"); got != tc.want {
				t.Errorf("%s: got version %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
