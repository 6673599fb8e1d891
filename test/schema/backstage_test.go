// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestBackstageTemplates reads the software templates of Backstage. Their forms have the fields of the curated form, which the definition has.
// What they make is accepted: test/backstage runs them in a real Backstage, which has to give the objects in its testdata.
func TestBackstageTemplates(t *testing.T) {
	for kind, tc := range curated {
		t.Run(kind, func(t *testing.T) {
			lower := strings.ToLower(kind)
			fields := templateFields(t, lower)
			if diff := cmp.Diff(slices.Sorted(maps.Keys(formOf(t, kind).Properties)), fields); diff != "" {
				t.Errorf("-curated form, +template:\n%s", diff)
			}
			manifest := read(t, "integrations/backstage", lower, "manifest.njk")
			for _, at := range fields {
				if specForm(t, tc.definition).at(at) == nil {
					t.Errorf("the definition has no field %s", at)
				}
				if !strings.Contains(manifest, `values["`+at+`"] | dump`) {
					t.Errorf("the manifest has no field %s", at)
				}
			}

			accepts := newAdmission(t, readXRD(t, "apis/"+lower+"/definition.yaml"))
			required, filled := backstageObject(t, lower+"-required"), backstageObject(t, lower+"-filled")
			for _, object := range []map[string]any{required, filled} {
				if _, complaints := accepts.create(t, object); len(complaints) > 0 {
					t.Errorf("%v\nis refused: %s", object, strings.Join(complaints, "\n"))
				}
			}
			if diff := cmp.Diff(tc.typed, required["spec"]); diff != "" {
				t.Errorf("a form with the least: -typed, +made:\n%s", diff)
			}
			for _, at := range fields {
				if _, ok, _ := unstructured.NestedFieldNoCopy(filled, append([]string{"spec"}, strings.Split(at, ".")...)...); !ok {
					t.Errorf("the filled form has no %s", at)
				}
			}
		})
	}
}

// templateFields are the parameters of a template that are paths of fields.
func templateFields(t *testing.T, lower string) []string {
	t.Helper()
	var template struct {
		APIVersion string `json:"apiVersion"`
		Spec       struct {
			Parameters []formSchema `json:"parameters"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "integrations/backstage", lower, "template.yaml")), &template); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("scaffolder.backstage.io/v1beta3", template.APIVersion); diff != "" {
		t.Error(diff)
	}
	var names []string
	for _, page := range template.Spec.Parameters {
		if diff := cmp.Diff(slices.Sorted(maps.Keys(page.Properties)), slices.Sorted(slices.Values(page.Order))); diff != "" {
			t.Errorf("the order of a page: -fields, +ordered:\n%s", diff)
		}
		for name, with := range page.Together {
			for _, other := range with {
				if _, ok := page.Properties[other]; !ok {
					t.Errorf("%s is on a page without %s, which it needs", name, other)
				}
			}
		}
		for name := range page.Properties {
			if name != "name" && name != "namespace" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)

	return names
}

// at is the schema of a field by its path.
func (s formSchema) at(path string) *formSchema {
	for name := range strings.SplitSeq(path, ".") {
		below, ok := s.Properties[name]
		if !ok {
			return nil
		}
		s = below
	}

	return &s
}

func backstageObject(t *testing.T, name string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.UnmarshalStrict([]byte(read(t, "test/backstage/testdata", name+".yaml")), &object); err != nil {
		t.Fatal(err)
	}
	object["spec"] = whole(object["spec"])

	return object
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.Join(path...)))
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}
