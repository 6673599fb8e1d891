// SPDX-License-Identifier: Apache-2.0

// Package draft is an object while a person edits it: as YAML, as what differs from before, and merged with what others changed meanwhile.
package draft

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Limit of a manifest in bytes. The API server takes 1.5 MiB.
const Limit = 1 << 20

// Parse the YAML of one object.
func Parse(text string) (*unstructured.Unstructured, error) {
	if len(text) > Limit {
		return nil, fmt.Errorf("the YAML has %d bytes, and at most %d are possible", len(text), Limit)
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	first, err := documents.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the YAML cannot be read: %w", err)
	}
	if rest, _ := documents.Read(); len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("the YAML has more than one object: leave the one that this page is about")
	}
	data, err := yaml.YAMLToJSONStrict(first)
	if err != nil {
		return nil, fmt.Errorf("the YAML cannot be read: %w", err)
	}
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil, errors.New("the YAML has to be one object with apiVersion, kind, metadata and spec")
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("the YAML is no object of Kubernetes: %w", err)
	}

	return u, nil
}

// Expect that an object is the one that a page is about.
func Expect(u *unstructured.Unstructured, apiVersion, kind, namespace, name string) error {
	for _, part := range []struct{ field, have, want string }{
		{"apiVersion", u.GetAPIVersion(), apiVersion},
		{"kind", u.GetKind(), kind},
		{"metadata.namespace", u.GetNamespace(), namespace},
		{"metadata.name", u.GetName(), name},
	} {
		if part.want != "" && part.have != part.want {
			return fmt.Errorf("%s is %q: this page is about %q, so leave it as it is", part.field, part.have, part.want)
		}
	}
	if u.GetName() == "" {
		return errors.New("metadata.name is empty: give it a name")
	}

	return nil
}

// Clean is an object as people write it: without what the API server and Crossplane add.
func Clean(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}}
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	annotations, labels := u.GetAnnotations(), u.GetLabels()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	maps.DeleteFunc(labels, func(k, _ string) bool { return strings.HasPrefix(k, "crossplane.io/") })
	if len(annotations) > 0 {
		out.SetAnnotations(annotations)
	}
	if len(labels) > 0 {
		out.SetLabels(labels)
	}
	if spec, ok := u.Object["spec"].(map[string]any); ok {
		spec = runtime.DeepCopyJSON(spec)
		delete(spec, "crossplane")
		out.Object["spec"] = spec
	}

	return out
}

// Text of an object as YAML.
func Text(u *unstructured.Unstructured) string {
	data, err := yaml.Marshal(u.Object)
	if err != nil {
		return "" // Not of an object that was decoded from JSON.
	}

	return string(data)
}

// A Line of a difference: Sign is "+", "-", "@" or empty.
type Line struct{ Sign, Text string }

// Diff of two texts, with three lines around each change. Nothing differs when it is empty.
func Diff(before, after string) []Line {
	unified := udiff.Unified("before", "after", before, after)
	var lines []Line
	for i, text := range strings.Split(strings.TrimSuffix(unified, "\n"), "\n") {
		switch {
		case i < 2 || text == "":
		case strings.ContainsAny(text[:1], "+-@"):
			lines = append(lines, Line{text[:1], text[1:]})
		default:
			lines = append(lines, Line{"", text[1:]})
		}
	}

	return lines
}

// Patch is the JSON merge patch from one object to another, for this version of it only.
func Patch(before, after *unstructured.Unstructured, resourceVersion string) ([]byte, error) {
	patch := changed(before.Object, after.Object)
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = resourceVersion
	patch["metadata"] = metadata
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the patch: %w", err)
	}

	return data, nil
}

// changed fields as a JSON merge patch, in which nil removes a field.
func changed(before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range before {
		if _, ok := after[name]; !ok {
			patch[name] = nil
		}
	}
	for name, v := range after {
		old, had := before[name]
		a, aMap := old.(map[string]any)
		b, bMap := v.(map[string]any)
		switch {
		case had && aMap && bMap:
			if below := changed(a, b); len(below) > 0 {
				patch[name] = below
			}
		case !had || !reflect.DeepEqual(old, v):
			patch[name] = v
		}
	}

	return patch
}

// Merge what one person changed since base into what others made of it. Conflicts are the fields that both changed, and not alike: there the
// result has what the person wrote.
func Merge(base, mine, theirs *unstructured.Unstructured) (merged *unstructured.Unstructured, conflicts []string) {
	own, others := changed(base.Object, mine.Object), changed(base.Object, theirs.Object)
	merged = theirs.DeepCopy()
	apply(merged.Object, own)

	return merged, clashes(own, others, "")
}

func apply(object, patch map[string]any) {
	for name, v := range patch {
		below, isMap := v.(map[string]any)
		have, hasMap := object[name].(map[string]any)
		switch {
		case v == nil:
			delete(object, name)
		case isMap && hasMap:
			apply(have, below)
		case isMap:
			// Where nothing is left to remove from, a removal makes no block.
			if set, _ := without(v).(map[string]any); len(set) > 0 || len(below) == 0 {
				object[name] = set
			}
		default:
			object[name] = without(v)
		}
	}
}

// without the fields that a patch removes, where nothing is there to remove them from.
func without(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return runtime.DeepCopyJSONValue(v)
	}
	out := map[string]any{}
	for name, below := range m {
		if below != nil {
			out[name] = without(below)
		}
	}

	return out
}

func clashes(own, others map[string]any, at string) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(own)) {
		theirs, both := others[name]
		if !both {
			continue
		}
		path := strings.TrimPrefix(at+"."+name, ".")
		a, aMap := own[name].(map[string]any)
		b, bMap := theirs.(map[string]any)
		switch {
		case aMap && bMap:
			found = append(found, clashes(a, b, path)...)
		case !reflect.DeepEqual(own[name], theirs):
			found = append(found, path)
		}
	}

	return found
}
