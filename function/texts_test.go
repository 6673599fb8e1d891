// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	optionalkinds "github.com/capstan-dev/capstan/apis/optional"
	"github.com/capstan-dev/capstan/function/compose"
)

// mark is in every hostile text, to find where it goes.
const mark = "zqx"

// hostile ends of texts. Each has a character that ends a text, or begins something else, in a language of what is composed.
func hostile() []string {
	return []string{
		`"} or vector(1) or {x="`, "`", `'; select pg_sleep(1); --`, `\`, "\n- evil: true\nevil: true\n", "\r\nX-Evil: 1", `{{ query "up" }}`,
		"$(id)", "/../../etc", "%2e%2e%2f", "?a=b#c", " --evil", `","evil":"1`, "\x00", ":evil", "@evil", "=evil",
	}
}

// TestTexts tries hostile texts in every text field of the composite resources. What the schema or the planner refuses is closed. Every
// other field needs an entry that names where its text goes. There it has to be what the author wrote and no more: the same objects with
// the same fields as with a harmless text, and one text of the language that it is in.
func TestTexts(t *testing.T) {
	entries, means := texts(), meanings(t)
	var mutex sync.Mutex
	tried, used := map[string]bool{}, map[string]bool{}
	t.Run("Kinds", func(t *testing.T) {
		for _, kind := range []string{"Algorithm", "Database", "Experiment", "Pipeline", "Preview", "Training"} {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				f := newFunction(kinds(), func() time.Time { return now })
				documents := documentsOf(t, kind)
				for _, path := range textsOf(t, kind) {
					t.Run(path, func(t *testing.T) {
						name := kind + "." + path
						places := attempt(t, f, documents, path, entries[name], means)
						mutex.Lock()
						defer mutex.Unlock()
						tried[name] = true
						for _, p := range places {
							used[p] = true
						}
					})
				}
			})
		}
	})
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !tried[name] {
			t.Errorf("there is no text field %s", name)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(means)) {
		if !used[place] {
			t.Errorf("%s: no text goes there", place)
		}
	}
}

// attempt hostile texts in a field, compare the places that they reach with its entry, and return them.
func attempt(t *testing.T, f *Function, documents []document, path string, entry *entry, means map[string]meaning) []string {
	t.Helper()
	if strings.HasSuffix(path, "{any}") {
		if entry == nil || entry.nowhere == "" {
			t.Error("the schema allows any field: it needs an entry that says what checks them")
		}
		return nil
	}
	found, accepted, usable := map[string]bool{}, false, false
	for _, d := range documents {
		if !d.has(path) {
			continue
		}
		before, why := d.planned(t, f, d.text)
		if why != "" {
			continue // an example of a mistake, or of what the platform does not allow
		}
		usable = true
		for _, end := range hostile() {
			after, why := d.planned(t, f, d.with(path, func(s string) string { return s + mark + end }))
			if why != "" {
				continue
			}
			accepted = true
			if diff := cmp.Diff(shapes(before), shapes(after)); diff != "" {
				t.Errorf("%q changes more than texts: -without, +with:\n%s", end, diff)
			}
			for place, text := range reached(after) {
				found[place] = true
				if err := means[place].verify(text, mark+end); err != nil {
					t.Errorf("%s: %q: %v", place, end, err)
				}
			}
		}
		// Documents that show every place of the entry are enough, and so is one in which all texts are refused.
		if !accepted || len(found) > 0 && (entry == nil || len(found) >= len(entry.places)) {
			break
		}
	}
	places := slices.Sorted(maps.Keys(found))
	switch {
	case entry != nil && entry.refused != "":
		if usable {
			t.Error("a document with the field is accepted: its text needs an entry")
		}
	case !usable:
		t.Error("no valid document has this field: add it to testdata/texts")
	case accepted && entry == nil:
		t.Errorf("hostile texts are accepted, and go to %q: the field needs a pattern in its schema, or an entry", places)
	case !accepted && entry != nil:
		t.Error("every hostile text is refused: the entry has no effect")
	case accepted:
		if diff := cmp.Diff(slices.Sorted(slices.Values(entry.places)), places); diff != "" {
			t.Errorf("where its text goes: -entry, +found:\n%s", diff)
		}
		if (len(places) == 0) != (entry.nowhere != "") {
			t.Error("an entry names places, or says why its text goes nowhere")
		}
	}
	return places
}

// A document is a composite resource, with what its example has observed.
type document struct {
	file     string
	xr       map[string]any
	observed map[string]*fnv1.Resource

	// text is what has the texts: the composite resource, or what it requires.
	text map[string]any
}

// documentsOf a kind, those with the shortest way to composed objects first.
func documentsOf(t *testing.T, kind string) []document {
	t.Helper()
	var all []document
	for _, pattern := range []string{"testdata/texts/*.yaml", "../examples/*/*/xr.yaml", "../test/schema/testdata/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, xr := range yamlOf(t, file) {
				if xr["kind"] != kind {
					continue
				}
				d := document{file: file, xr: xr, text: xr, observed: observedBy(t, file)}
				if kind == "Experiment" { // Its Algorithm composes.
					d.xr = yamlOf(t, "../examples/algorithm/experiment/xr.yaml")[0]
				}
				all = append(all, d)
			}
		}
	}
	return all
}

// observedBy an example, or by the one that a document names instead.
func observedBy(t *testing.T, file string) map[string]*fnv1.Resource {
	t.Helper()
	if example, ok := observedFrom[file]; ok {
		file = example
	}
	file = filepath.Join(filepath.Dir(file), "observed", "objects.yaml")
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	observed := map[string]*fnv1.Resource{}
	for _, o := range yamlOf(t, file) {
		if name := compose.Text(o, "metadata", "annotations", "crossplane.io/composition-resource-name"); name != "" {
			observed[name] = resourceOf(o)
		}
	}
	return observed
}

func yamlOf(t *testing.T, file string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for doc := range strings.SplitSeq(string(bytesOf(t, file)), "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatalf("cannot read %s: %v", file, err)
		}
		if len(o) > 0 {
			all = append(all, o)
		}
	}
	return all
}

func bytesOf(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// has reports whether there is a text at a path.
func (d document) has(path string) bool {
	return replace(copied(d.text), steps(path), func(s string) string { return s })
}

// with another text at a path, the first that is there.
func (d document) with(path string, to func(string) string) map[string]any {
	o := copied(d.text)
	replace(o, steps(path), to)
	return o
}

// planned is what the function composes with a text, or why it does not.
func (d document) planned(t *testing.T, f *Function, text map[string]any) (map[string]map[string]any, string) {
	t.Helper()
	served := map[string]any{}
	for _, k := range kinds() {
		for _, gvk := range k.Optional {
			served[optionalkinds.Key(gvk)] = true
		}
	}
	xr := d.xr
	if text["kind"] == xr["kind"] {
		xr = text
	}
	req := &fnv1.RunFunctionRequest{
		Meta: &fnv1.RequestMeta{Tag: "tag"}, Context: structFrom(map[string]any{contextKeyNow: "2026-01-01T00:00:00Z"}),
		Observed:          &fnv1.State{Composite: resourceOf(xr), Resources: d.observed},
		RequiredResources: map[string]*fnv1.Resources{requiredSettings: {}, requiredKinds: reported(served)},
	}
	if text["kind"] == "Preview" {
		for _, o := range yamlOf(t, "../examples/preview/both/required/originals.yaml") { // What it copies.
			req.RequiredResources["base-"+strings.ToLower(compose.Text(o, "kind"))] = &fnv1.Resources{Items: []*fnv1.Resource{resourceOf(o)}}
		}
	}
	objects := map[string]map[string]any{}
	if text["kind"] == xr["kind"] {
		return objects, composes(t, f, req, objects)
	}
	own := &fnv1.RunFunctionRequest{Meta: req.GetMeta(), Context: req.GetContext(), Observed: &fnv1.State{Composite: resourceOf(text)}}
	if why := refusal(run(t, f, own)); why != "" {
		return nil, why
	}
	req.RequiredResources["experiment"] = &fnv1.Resources{Items: []*fnv1.Resource{resourceOf(text)}}
	// What it requires has an effect only once the live revision serves.
	for moment := range 4 {
		req.Context = structFrom(map[string]any{contextKeyNow: now.Add(time.Duration(moment) * time.Minute).Format(time.RFC3339)})
		composed := map[string]map[string]any{}
		if why := composes(t, f, req, composed); why != "" {
			return nil, why
		}
		for name, o := range composed {
			objects[fmt.Sprintf("%d-%s", moment, name)] = o
		}
		req.Observed.Resources = serving(composed)
	}
	return objects, ""
}

// composes adds what one pass composes to objects, or returns why it composes nothing.
func composes(t *testing.T, f *Function, req *fnv1.RunFunctionRequest, objects map[string]map[string]any) string {
	t.Helper()
	rsp := run(t, f, req)
	if why := refusal(rsp); why != "" {
		return why
	}
	for name, r := range rsp.GetDesired().GetResources() {
		objects[name] = r.GetResource().AsMap()
	}
	return ""
}

// serving are composed objects as they are observed when all of them do what they should.
func serving(objects map[string]map[string]any) map[string]*fnv1.Resource {
	observed := map[string]*fnv1.Resource{}
	for name, o := range objects {
		r := observe(name, resourceOf(o))
		status := map[string]any{}
		switch o["kind"] {
		case "Deployment":
			n := compose.Map(o, "spec")["replicas"]
			status = map[string]any{"observedGeneration": 1, "replicas": n, "readyReplicas": n, "availableReplicas": n, "updatedReplicas": n}
		case "HTTPRoute":
			status = map[string]any{"parents": []any{map[string]any{
				"parentRef":  map[string]any{"name": "shared", "namespace": "gateway"},
				"conditions": []any{current("Accepted"), current("ResolvedRefs")},
			}}}
		case "Analysis":
			status = map[string]any{"atProvider": map[string]any{"trial": []any{
				map[string]any{"name": "success", "verdict": "Pass"},
				map[string]any{"name": "success-against-baseline", "verdict": "Pass"},
				map[string]any{"name": "latency", "verdict": "Pass"},
			}}}
		}
		fields := r.GetResource().AsMap()
		fields["status"] = status
		observed[name] = resourceOf(fields)
	}
	return observed
}

// current condition of an object of the first generation.
func current(kind string) map[string]any {
	c := condition(kind, kind)
	c["observedGeneration"] = 1
	return c
}

// refusal of a spec, or "".
func refusal(rsp *fnv1.RunFunctionResponse) string {
	for _, r := range rsp.GetResults() {
		if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			return r.GetMessage()
		}
	}
	if c := conditionOf(rsp, "Accepted"); c != nil && c.GetStatus() != fnv1.Status_STATUS_CONDITION_TRUE {
		return c.GetMessage()
	}
	return ""
}

// textsOf the spec of a kind: the paths of its text fields, as in env[].value, labels{} and labels{key}. A path with {any} stands for fields
// that the schema does not know.
func textsOf(t *testing.T, kind string) []string {
	t.Helper()
	var xrd struct {
		Spec struct {
			Versions []struct {
				Schema extv1.CustomResourceValidation `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(bytesOf(t, "../apis/"+strings.ToLower(kind)+"/definition.yaml"), &xrd); err != nil {
		t.Fatal(err)
	}
	var paths []string
	var walk func(path string, s extv1.JSONSchemaProps)
	walk = func(path string, s extv1.JSONSchemaProps) {
		for name, below := range s.Properties {
			walk(path+"."+name, below)
		}
		if s.Items != nil {
			walk(path+"[]", *s.Items.Schema)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			paths = append(paths, path+"{key}")
			walk(path+"{}", *s.AdditionalProperties.Schema)
		}
		switch {
		case s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields:
			paths = append(paths, path+"{any}")
		case s.Type == "string" && len(s.Enum) == 0:
			paths = append(paths, path)
		}
	}
	walk("spec", xrd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
	slices.Sort(paths)
	return paths
}

func steps(path string) []string {
	return strings.Split(strings.NewReplacer("[]", ".[]", "{}", ".{}", "{key}", ".{key}").Replace(path), ".")
}

// replace the first text at a path, and report whether there is one.
func replace(v any, path []string, to func(string) string) bool {
	switch v := v.(type) {
	case []any:
		for i := range v {
			if s, ok := v[i].(string); ok && len(path) == 1 {
				v[i] = to(s)
				return true
			}
			if path[0] == "[]" && len(path) > 1 && replace(v[i], path[1:], to) {
				return true
			}
		}
	case map[string]any:
		names := []string{path[0]}
		if path[0] == "{}" || path[0] == "{key}" {
			names = slices.Sorted(maps.Keys(v))
		}
		for _, name := range names {
			s, ok := v[name].(string)
			switch {
			case path[0] == "{key}":
				below := v[name]
				delete(v, name)
				v[to(name)] = below
				return true
			case ok && len(path) == 1:
				v[name] = to(s)
				return true
			case len(path) > 1 && replace(v[name], path[1:], to):
				return true
			}
		}
	}
	return false
}

func copied(o map[string]any) map[string]any {
	return structFrom(o).AsMap()
}

// revisions are in names, and follow the content.
var revisions = regexp.MustCompile(`-[0-9a-f]{10}\b`)

// visit every value of composed objects, with its path. Texts that are JSON are visited like objects.
func visit(objects map[string]map[string]any, fn func(path string, v any)) {
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, below := range v {
				walk(path+"."+k, below)
			}
			return
		case []any:
			for i, below := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), below)
			}
			return
		case string:
			var inner any
			if isJSON.MatchString(path) && json.Unmarshal([]byte(v), &inner) == nil {
				walk(path+"|", inner)
				return
			}
		}
		fn(path, v)
	}
	for name, o := range objects {
		walk(revisions.ReplaceAllString(name, "-#")+" "+fmt.Sprint(o["kind"]), o)
	}
}

// isJSON matches the paths of texts that are JSON.
var isJSON = regexp.MustCompile(`[.](json|body|capstan[.]dev/(ledger|plan))$`)

// shapes of composed objects: the paths of all that is in them.
func shapes(objects map[string]map[string]any) map[string]bool {
	all := map[string]bool{}
	visit(objects, func(path string, _ any) { all[path] = true })
	return all
}

// index of an element of a list.
var index = regexp.MustCompile(`\[\d+\]`)

// reached places of composed objects that have the mark, with one text of each.
func reached(objects map[string]map[string]any) map[string]string {
	all := map[string]string{}
	visit(objects, func(path string, v any) {
		if s, ok := v.(string); ok && strings.Contains(s, mark) {
			_, place, _ := strings.Cut(path, " ")
			all[index.ReplaceAllString(place, "[]")] = s
		}
	})
	return all
}
