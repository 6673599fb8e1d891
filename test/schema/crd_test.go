// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// definitions returns every CRD that Capstan brings, by the path of its source.
func definitions(t *testing.T) map[string]*extv1.CustomResourceDefinition {
	t.Helper()
	crds := map[string]*extv1.CustomResourceDefinition{}
	for pattern, read := range map[string]func(*testing.T, string) *extv1.CustomResourceDefinition{
		"apis/*/definition.yaml":        readXRD,
		"package/provider/crds/*.yaml":  readCRD,
		"package/function/input/*.yaml": readCRD,
	} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("cannot find any definition at %q: %v", pattern, err)
		}
		for _, path := range paths {
			path, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			crds[path] = read(t, path)
		}
	}
	return crds
}

// TestAccepted shows that the API server takes the CRDs: structural, valid defaults, rules that compile and whose
// estimated cost is within the budget of a CRD.
func TestAccepted(t *testing.T) {
	for path, crd := range definitions(t) {
		t.Run(path, func(t *testing.T) {
			in := internal(t, crd)
			in.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
			for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), in) {
				t.Error(err)
			}
		})
	}
}

// TestRulesCompileOnOldClusters shows that no rule needs a function that the oldest cluster we support lacks.
func TestRulesCompileOnOldClusters(t *testing.T) {
	oldest := environment.MustBaseEnvSet(version.MajorMinor(1, 30))
	for path, crd := range definitions(t) {
		t.Run(path, func(t *testing.T) {
			root := newAdmission(t, crd).schema
			rules := 0
			visit(root, true, func(s *structural.Structural, isRoot bool) {
				results, err := cel.Compile(s, model.SchemaDeclType(s, isRoot), celconfig.PerCallLimit, oldest,
					cel.StoredExpressionsEnvLoader())
				if err != nil {
					t.Errorf("cannot compile rules: %v", err)
				}
				for i, r := range results {
					rules++
					if r.Error != nil {
						t.Errorf("rule %q: %v", s.XValidations[i].Rule, r.Error)
					}
					if r.MessageExpressionError != nil {
						t.Errorf("message expression of rule %q: %v", s.XValidations[i].Rule, r.MessageExpressionError)
					}
				}
			})
			t.Logf("%d rules", rules)
		})
	}
}

// visit calls fn for a schema and everything below it.
func visit(s *structural.Structural, isRoot bool, fn func(s *structural.Structural, isRoot bool)) {
	fn(s, isRoot)
	if s.Items != nil {
		visit(s.Items, false, fn)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		visit(s.AdditionalProperties.Structural, false, fn)
	}
	for _, below := range s.Properties {
		visit(&below, false, fn)
	}
}

// TestManagementPolicies shows what the provider may do with what it manages unless a person says otherwise.
func TestManagementPolicies(t *testing.T) {
	prometheus := map[string]any{"kind": "ClusterProviderConfig", "name": "prometheus"}

	cases := map[string]struct {
		reason string
		path   string
		spec   map[string]any
		want   map[string]any
		errs   []string
	}{
		"AnalysisObserves": {
			reason: "An Analysis looks and never touches.",
			path:   "package/provider/crds/observe.capstan.dev_analyses.yaml",
			spec:   map[string]any{"forProvider": map[string]any{"algorithm": "reco"}},
			want: map[string]any{
				"managementPolicies": []any{"Observe"},
				"providerConfigRef":  prometheus,
				"forProvider":        map[string]any{"algorithm": "reco", "container": "algorithm"},
			},
		},
		"AnalysisPaused": {
			reason: "No policy at all is how one pauses a managed resource.",
			path:   "package/provider/crds/observe.capstan.dev_analyses.yaml",
			spec: map[string]any{
				"managementPolicies": []any{},
				"forProvider":        map[string]any{"algorithm": "reco", "container": "main"},
			},
			want: map[string]any{
				"managementPolicies": []any{},
				"providerConfigRef":  prometheus,
				"forProvider":        map[string]any{"algorithm": "reco", "container": "main"},
			},
		},
		"AnalysisThatDeletes": {
			reason: "A policy that nothing implements is refused.",
			path:   "package/provider/crds/observe.capstan.dev_analyses.yaml",
			spec: map[string]any{
				"managementPolicies": []any{"Observe", "Delete"},
				"forProvider":        map[string]any{"algorithm": "reco", "container": "main"},
			},
			want: map[string]any{
				"managementPolicies": []any{"Observe", "Delete"},
				"providerConfigRef":  prometheus,
				"forProvider":        map[string]any{"algorithm": "reco", "container": "main"},
			},
			errs: []string{"spec.managementPolicies: Invalid value: must be Observe or nothing: an Analysis only observes"},
		},
		"CredentialKeepsItsSecret": {
			reason: "The default leaves out Delete, so the Secret outlives the Credential.",
			path:   "package/provider/crds/credentials.capstan.dev_credentials.yaml",
			spec:   map[string]any{},
			want: map[string]any{
				"managementPolicies": []any{"Observe", "Create", "Update", "LateInitialize"},
				"forProvider": map[string]any{
					"length":   int64(32),
					"alphabet": "Alphanumeric",
					"keys":     []any{map[string]any{"name": "password"}},
				},
			},
		},
		"CredentialTooShort": {
			reason: "A password that can be guessed is refused, and the bound is named.",
			path:   "package/provider/crds/credentials.capstan.dev_credentials.yaml",
			spec: map[string]any{
				"managementPolicies": []any{"*"},
				"forProvider":        map[string]any{"length": int64(8)},
			},
			want: map[string]any{
				"managementPolicies": []any{"*"},
				"forProvider": map[string]any{
					"length":   int64(8),
					"alphabet": "Alphanumeric",
					"keys":     []any{map[string]any{"name": "password"}},
				},
			},
			errs: []string{"spec.forProvider.length: Invalid value: 8: spec.forProvider.length in body should be greater than or equal to 16"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			crd := readCRD(t, tc.path)
			got, errs := newAdmission(t, crd).create(t, map[string]any{
				"apiVersion": crd.Spec.Group + "/" + crd.Spec.Versions[0].Name,
				"kind":       crd.Spec.Names.Kind,
				"metadata":   map[string]any{"name": "reco", "namespace": "demo"},
				"spec":       tc.spec,
			})
			if diff := cmp.Diff(tc.want, got["spec"]); diff != "" {
				t.Errorf("\n%s\ncreate(...): -want spec, +got spec:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.errs, errs); diff != "" {
				t.Errorf("\n%s\ncreate(...): -want errors, +got errors:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCategories shows that one command lists what is ours.
func TestCategories(t *testing.T) {
	for path, crd := range definitions(t) {
		want := []string{"capstan"}
		switch {
		case strings.HasPrefix(path, "apis/"):
			want = append(want, "composite")
		case strings.Contains(path, "providerconfig"):
			want = append(want, "crossplane", "provider")
		case strings.HasPrefix(path, "package/provider/"):
			want = append(want, "crossplane", "managed")
		default:
			continue
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(crd.Spec.Names.Categories))); diff != "" {
			t.Errorf("%s: -want categories, +got categories:\n%s", path, diff)
		}
	}
}
