// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// TestDefaults shows that an Algorithm that was stored before its schema had a default is planned as one that has it.
func TestDefaults(t *testing.T) {
	for name, spec := range map[string]string{
		"Smallest": "{image: x}",
		"Full":     full,
		"Rich":     rich,
		"Empty": `{image: x, config: {a: b}, secrets: [{name: a}], resources: {gpu: a.org/b}, scaling: {maxReplicas: 3}, metrics: {},
		  probes: {warmUp: {path: /}}, route: {}, access: [{}], availability: {}, pod: {}}`,
		"S3":       "{image: x, model: {uri: s3://models/a, cache: {resources: {requests: {storage: 1Gi}}}}}",
		"OCI":      "{image: x, model: {uri: oci://a}}",
		"Volume":   "{image: x, model: {uri: pvc://a}}",
		"Registry": "{image: x, model: {uri: models:/a@b}}",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec).platform()
			w.request.Settings.Algorithm.Gateway = &v1alpha1.GatewayReference{Name: "shared", Namespace: "gateway"}
			var got [2]v1alpha1.AlgorithmSpec
			for i := range got {
				_, s, problems := read(w.request)
				if len(problems) > 0 {
					t.Fatalf("the spec cannot be read: %v", problems)
				}
				got[i] = s
				w.request.Composite = composetest.Object{
					"metadata": w.request.Composite.Map()["metadata"], "spec": theDefinition().Defaulted(parse(t, spec)),
				}
			}
			if diff := cmp.Diff(got[1], got[0]); diff != "" {
				t.Errorf("-with the defaults of the schema, +without:\n%s", diff)
			}
		})
	}
}
