// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	access "github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentials "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	events "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	observe "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	registry "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	storage "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	input "github.com/capstan-dev/capstan/input/v1alpha1"
)

// types are the Go types of every definition.
func types() map[string]reflect.Type {
	return map[string]reflect.Type{
		algorithmXRD:  reflect.TypeFor[v1alpha1.Algorithm](),
		databaseXRD:   reflect.TypeFor[v1alpha1.Database](),
		pipelineXRD:   reflect.TypeFor[v1alpha1.Pipeline](),
		trainingXRD:   reflect.TypeFor[v1alpha1.Training](),
		previewXRD:    reflect.TypeFor[v1alpha1.Preview](),
		experimentXRD: reflect.TypeFor[v1alpha1.Experiment](),
		"package/provider/crds/access.capstan.dev_accesses.yaml":           reflect.TypeFor[access.Access](),
		"package/provider/crds/observe.capstan.dev_autoscalers.yaml":       reflect.TypeFor[observe.Autoscaler](),
		"package/provider/crds/events.capstan.dev_receivers.yaml":          reflect.TypeFor[events.Receiver](),
		"package/provider/crds/events.capstan.dev_signals.yaml":            reflect.TypeFor[events.Signal](),
		"package/provider/crds/observe.capstan.dev_hooks.yaml":             reflect.TypeFor[observe.Hook](),
		"package/provider/crds/observe.capstan.dev_flinkjobs.yaml":         reflect.TypeFor[observe.FlinkJob](),
		"package/provider/crds/observe.capstan.dev_jobhistories.yaml":      reflect.TypeFor[observe.JobHistory](),
		"package/provider/crds/observe.capstan.dev_lineages.yaml":          reflect.TypeFor[observe.Lineage](),
		"package/provider/crds/observe.capstan.dev_runs.yaml":              reflect.TypeFor[observe.Run](),
		"package/provider/crds/observe.capstan.dev_topologies.yaml":        reflect.TypeFor[observe.Topology](),
		"package/provider/crds/storage.capstan.dev_volumeclaims.yaml":      reflect.TypeFor[storage.VolumeClaim](),
		"package/provider/crds/capstan.dev_clusterproviderconfigs.yaml":    reflect.TypeFor[v1alpha1.ClusterProviderConfig](),
		"package/provider/crds/capstan.dev_providerconfigs.yaml":           reflect.TypeFor[v1alpha1.ProviderConfig](),
		"package/provider/crds/capstan.dev_providerconfigusages.yaml":      reflect.TypeFor[v1alpha1.ProviderConfigUsage](),
		"package/provider/crds/credentials.capstan.dev_credentials.yaml":   reflect.TypeFor[credentials.Credential](),
		"package/provider/crds/observe.capstan.dev_analyses.yaml":          reflect.TypeFor[observe.Analysis](),
		"package/provider/crds/registry.capstan.dev_modelaliases.yaml":     reflect.TypeFor[registry.ModelAlias](),
		"package/provider/crds/registry.capstan.dev_modelversions.yaml":    reflect.TypeFor[registry.ModelVersion](),
		"package/provider/crds/registry.capstan.dev_registeredmodels.yaml": reflect.TypeFor[registry.RegisteredModel](),
		"package/provider/crds/storage.capstan.dev_buckets.yaml":           reflect.TypeFor[storage.Bucket](),
		"package/function/input/capstan.dev_settings.yaml":                 reflect.TypeFor[input.Settings](),
	}
}

// TestTypesAgree shows that the Go types and the schemas have the same fields.
func TestTypesAgree(t *testing.T) {
	schemas := written(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(types())), slices.Sorted(maps.Keys(schemas))); diff != "" {
		t.Fatalf("-definitions with a Go type, +definitions:\n%s", diff)
	}
	for path, typ := range types() {
		t.Run(path, func(t *testing.T) {
			var inSchema []string
			for _, n := range nodes(t, "", schemas[path], nil) {
				inSchema = append(inSchema, n.path)
			}
			inType := slices.DeleteFunc(paths("", typ), func(p string) bool {
				// Crossplane adds these to what a definition of a composite kind says.
				added := p == ".apiVersion" || p == ".kind" || p == ".metadata" || strings.HasPrefix(p, ".status.conditions")
				return added && filepath.Base(path) == "definition.yaml"
			})
			slices.Sort(inSchema)
			slices.Sort(inType)
			if diff := cmp.Diff(inType, inSchema); diff != "" {
				t.Errorf("-fields of the Go type, +fields of the schema:\n%s", diff)
			}
		})
	}
}

// paths of a Go type as JSON, in the way of nodes.
func paths(path string, typ reflect.Type) []string {
	all := []string{path}
	switch typ {
	case reflect.TypeFor[metav1.ObjectMeta](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[resource.Quantity](),
		reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[metav1.Duration](), reflect.TypeFor[runtime.RawExtension]():
		return all
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return paths(path, typ.Elem())
	case reflect.Slice:
		return append(all, paths(path+"[]", typ.Elem())...)
	case reflect.Map:
		return append(all, paths(path+"{}", typ.Elem())...)
	case reflect.Struct:
		for field := range typ.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "-" {
				continue // What the schema keeps without naming it.
			}
			if strings.Contains(options, "inline") {
				all = append(all, paths(path, field.Type)[1:]...)
				continue
			}
			all = append(all, paths(path+"."+name, field.Type)...)
		}
	default: // Everything else is a leaf.
	}
	return all
}

// TestRoundTrip shows that nothing that is stored is lost on its way through the Go type.
func TestRoundTrip(t *testing.T) {
	roundTrip(t, "algorithm", algorithmXRD, func() any { return &v1alpha1.Algorithm{} })
	roundTrip(t, "pipeline", pipelineXRD, func() any { return &v1alpha1.Pipeline{} })
	roundTrip(t, "training", trainingXRD, func() any { return &v1alpha1.Training{} })
	roundTrip(t, "preview", previewXRD, func() any { return &v1alpha1.Preview{} })
	roundTrip(t, "experiment", experimentXRD, func() any { return &v1alpha1.Experiment{} })
}

func roundTrip(t *testing.T, kind, xrd string, empty func() any) {
	t.Helper()
	files, err := filepath.Glob("testdata/" + kind + "*.yaml")
	if err != nil {
		t.Fatal(err)
	}

	covered := map[string]bool{}
	for _, file := range files {
		path := "test/schema/" + file
		object := map[string]any{}
		readYAML(t, path, &object)
		cover(covered, "", object)

		t.Run(file, func(t *testing.T) {
			if _, errs := newAdmission(t, readXRD(t, xrd)).create(t, whole(object).(map[string]any)); len(errs) > 0 {
				t.Errorf("it is not valid:\n%s", strings.Join(errs, "\n"))
			}

			typed := empty()
			readYAML(t, path, typed)
			data, err := json.Marshal(typed)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]any{}
			if err := yaml.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			// A part of the status that is always told.
			if object["status"] == nil {
				delete(got, "status")
			}
			if diff := cmp.Diff(whole(object), whole(got)); diff != "" {
				t.Errorf("-what was read, +what is written:\n%s", diff)
			}
		})
	}

	for _, n := range nodes(t, "", written(t)[xrd], nil) {
		if n.leaf() && !covered[n.path] {
			t.Errorf("testdata/%s*.yaml lack %s", kind, n.path)
		}
	}
}

// cover notes the paths of all values in an object.
func cover(covered map[string]bool, path string, v any) {
	covered[path] = true
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			cover(covered, path+"."+name, below)
			cover(covered, path+"{}", below)
		}
	case []any:
		for _, item := range v {
			cover(covered, path+"[]", item)
		}
	}
}

// TestExamplesAreAccepted shows that what users copy from examples/ is valid as it is.
func TestExamplesAreAccepted(t *testing.T) {
	kinds := map[string]admission{}
	for _, crd := range definitions(t) {
		kinds[crd.Spec.Group+"/"+crd.Spec.Versions[0].Name+" "+crd.Spec.Names.Kind] = newAdmission(t, crd)
	}
	examples, err := filepath.Glob(filepath.Join(root, "examples", "*", "*", "*.yaml"))
	if err != nil {
		t.Fatalf("cannot find any example: %v", err)
	}
	seen := map[string]bool{}
	for _, path := range examples {
		if filepath.Base(path) == "want.yaml" {
			continue
		}
		for i, object := range documents(t, path) {
			kind := fmt.Sprint(object["apiVersion"], " ", object["kind"])
			a, ours := kinds[kind]
			if !ours {
				continue
			}
			seen[kind] = true
			if _, errs := a.create(t, whole(object).(map[string]any)); len(errs) > 0 {
				t.Errorf("%s, document %d, is not valid:\n%s", path, i, strings.Join(errs, "\n"))
			}
		}
	}
	// Nobody writes these: they are made, or are no object of their own.
	for kind := range kinds {
		if !seen[kind] && !strings.HasSuffix(kind, " ProviderConfigUsage") && !strings.HasSuffix(kind, " Settings") && !strings.HasSuffix(kind, " Analysis") {
			t.Errorf("there is no example of %s", kind)
		}
	}
}

// documents of a file.
func documents(t *testing.T, path string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("cannot read an example: %v", err)
	}
	var all []map[string]any
	for text := range strings.SplitSeq("\n"+string(data), "\n---") {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatalf("cannot decode %s: %v", path, err)
		}
		if len(object) > 0 {
			all = append(all, object)
		}
	}
	return all
}
