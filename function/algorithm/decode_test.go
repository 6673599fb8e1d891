// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"sigs.k8s.io/yaml"

	xpextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestDefaults shows that an Algorithm that was stored before its schema had a
// default is planned as one that has it.
func TestDefaults(t *testing.T) {
	schema := definition(t)

	for name, spec := range map[string]string{
		"Smallest": "{image: x}",
		"Full":     full,
		"Rich":     rich,
		"Empty": `{image: x, config: {files: {a: b}}, secrets: [{name: a}], resources: {gpu: a.org/b}, scaling: {maxReplicas: 3}, metrics: {},
		  probes: {warmUp: {path: /}}, route: {}, access: {from: [{}]}, availability: {}, scheduling: {}}`,
		"S3":       "{image: x, model: {from: s3, s3: {uri: s3://models/a}, cache: {size: 1Gi}}}",
		"OCI":      "{image: x, model: {from: oci, oci: {reference: a}}}",
		"Volume":   "{image: x, model: {from: volume, volume: {claimName: a}}}",
		"Registry": "{image: x, model: {from: registry, registry: {name: a, alias: b}}}",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec).platform()
			stored := parse(t, spec)
			admitted := map[string]any{"spec": parse(t, spec)}
			defaulting.Default(admitted, schema)

			var got [2]v1alpha1.AlgorithmSpec

			for i, spec := range []map[string]any{stored, admitted["spec"].(map[string]any)} {
				s, problems := decode(spec)
				if len(problems) > 0 {
					t.Fatalf("the spec cannot be read: %v", problems)
				}

				got[i] = defaulted(s, w.request.Settings)
			}

			if diff := cmp.Diff(got[1], got[0]); diff != "" {
				t.Errorf("-with the defaults of the schema, +without:\n%s", diff)
			}
		})
	}
}

// definition of Algorithms as the API server sees it.
func definition(t *testing.T) *structural.Structural {
	t.Helper()

	raw, err := os.ReadFile("../../apis/algorithm/definition.yaml")
	if err != nil {
		t.Fatal(err)
	}

	var (
		xrd   xpextv1.CompositeResourceDefinition
		props extv1.JSONSchemaProps
		in    apiextensions.JSONSchemaProps
	)

	if err := yaml.Unmarshal(raw, &xrd); err != nil {
		t.Fatal(err)
	}

	if err := json.Unmarshal(xrd.Spec.Versions[0].Schema.OpenAPIV3Schema.Raw, &props); err != nil {
		t.Fatal(err)
	}

	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &in, nil); err != nil {
		t.Fatal(err)
	}

	s, err := structural.NewStructural(&in)
	if err != nil {
		t.Fatal(err)
	}

	return s
}
