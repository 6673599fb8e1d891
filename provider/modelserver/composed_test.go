// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// A composedRule is one that the function makes for an Algorithm.
type composedRule struct {
	Record      string            `json:"record,omitempty"`
	Alert       string            `json:"alert,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type composedGroup struct {
	Name  string         `json:"name"`
	Rules []composedRule `json:"rules"`
}

// composed rules of the Algorithms of examples, by their folders.
func composed(t *testing.T) map[string][]composedGroup {
	t.Helper()
	paths, err := filepath.Glob("../../examples/algorithm/*/want.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("There should be examples: %v", err)
	}
	all := map[string][]composedGroup{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for d := yamlutil.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data)); ; {
			o := struct {
				Kind string
				Spec struct{ Groups []composedGroup }
			}{}
			if err := d.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if name := filepath.Base(filepath.Dir(path)); o.Kind == "PrometheusRule" {
				all[name] = append(all[name], o.Spec.Groups...)
			}
		}
	}
	return all
}

// TestComposedRules shows that what Algorithms have recorded and are alerted of is PromQL.
func TestComposedRules(t *testing.T) {
	var told []string
	for name, groups := range composed(t) {
		for _, g := range groups {
			for _, r := range g.Rules {
				if _, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr); err != nil {
					t.Errorf("%s: %s%s: %v", name, r.Record, r.Alert, err)
				}
				told = append(told, r.Record+r.Alert)
			}
		}
	}
	for _, want := range []string{v1alpha1.SeriesSLORequests, v1alpha1.SeriesSLOBad, "AlgorithmErrorBudgetBurnsFast", "AlgorithmRequestsFail", "AlgorithmLatencyAboveTarget"} {
		if !slices.Contains(told, want) {
			t.Errorf("No example has a rule %s", want)
		}
	}
}
