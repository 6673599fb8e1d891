// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"
	"maps"
	"strings"
)

// composedManagerPrefix begins the name that Crossplane applies composed objects under. The rest of it is a hash of the composite
// resource.
const composedManagerPrefix = "apiextensions.crossplane.io/composed"

// What Crossplane itself adds to every composed object.
const (
	resourceNameAnnotation = "crossplane.io/composition-resource-name"
	compositeLabel         = "crossplane.io/composite"
)

// Keep is an observed object as Capstan applied it before, and nothing else of it: to apply it again changes neither a value nor
// the owner of a field. It is what a plan holds for an object whose desired state cannot be known right now, because what a plan leaves
// out is deleted.
//
// The API server keeps account of the fields each manager applied. An object without that account, as in a preview, is kept whole,
// except what only the API server writes. An object with an account in which Crossplane does not appear is kept by its name
// alone.
func Keep(o Object) map[string]any {
	live := o.Map()
	entries := o.Managed()
	if len(entries) == 0 {
		return identified(live, pruned(live))
	}
	kept := map[string]any{}
	for _, v := range entries {
		if e, ok := v.(map[string]any); ok && appliedByCrossplane(e, Text(live, "apiVersion")) {
			part, _ := owned(live, Map(e, "fieldsV1")).(map[string]any)
			kept = merged(kept, part)
		}
	}
	return identified(live, kept)
}

// OwnsField reports whether a manager other than Crossplane owns a field by way of a subresource, for instance an autoscaler
// spec.replicas by way of scale.
func OwnsField(o Object, subresource string, path ...string) bool {
	at := make([]string, 0, len(path)+1)
	at = append(at, "fieldsV1")
	for _, k := range path {
		at = append(at, "f:"+k)
	}
	for _, v := range o.Managed() {
		e, ok := v.(map[string]any)
		if ok && Text(e, "subresource") == subresource && Map(e, at...) != nil {
			return true
		}
	}
	return false
}

func appliedByCrossplane(entry map[string]any, apiVersion string) bool {
	return strings.HasPrefix(Text(entry, "manager"), composedManagerPrefix) &&
		Text(entry, "operation") == "Apply" &&
		Text(entry, "subresource") == "" &&
		Text(entry, "apiVersion") == apiVersion
}

// owned is the part of a value that a set of fields names. In such a set "f:name" is a field, `k:{"name":"x"}` the item of a list
// with these keys, `v:"x"` an item that equals a value, "." the value itself, and an empty set stands for everything below.
func owned(value any, fields map[string]any) any {
	if len(fields) == 0 {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		part := map[string]any{}
		for name, below := range v {
			if f, ok := fields["f:"+name].(map[string]any); ok {
				part[name] = owned(below, f)
			}
		}
		return part
	case []any:
		part := []any{}
		for _, item := range v {
			if f, ok := ownedItem(item, fields); ok {
				part = append(part, owned(item, f))
			}
		}
		return part
	default:
		return value
	}
}

// ownedItem is the set of owned fields of one item of a list.
func ownedItem(item any, fields map[string]any) (map[string]any, bool) {
	for selector, below := range fields {
		kind, text, ok := strings.Cut(selector, ":")
		if !ok {
			continue
		}
		var want any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			continue
		}
		if kind == "v" && equal(item, want) || kind == "k" && hasKeys(item, want) {
			f, _ := below.(map[string]any)
			return f, true
		}
	}
	return nil, false
}

// hasKeys reports whether an item has the keys of a list's selector.
func hasKeys(item, keys any) bool {
	m, ok := item.(map[string]any)
	ks, isMap := keys.(map[string]any)
	if !ok || !isMap {
		return false
	}
	for k, want := range ks {
		if !equal(m[k], want) {
			return false
		}
	}
	return true
}

// equal reports whether a value is the string, number or boolean wanted. Selectors hold nothing else.
func equal(value, want any) bool {
	switch want.(type) {
	case string, float64, bool:
		return value == want
	default:
		return false
	}
}

// merged is a with what only b has.
func merged(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for k, v := range b {
		below, isMap := v.(map[string]any)
		before, wasMap := out[k].(map[string]any)
		switch {
		case isMap && wasMap:
			out[k] = merged(before, below)
		case out[k] == nil:
			out[k] = v
		}
	}
	return out
}

// pruned is an object without what only the API server and controllers write.
func pruned(live map[string]any) map[string]any {
	part := maps.Clone(live)
	delete(part, "status")
	metadata := map[string]any{}
	for _, k := range []string{"labels", "annotations"} {
		if m := Map(live, "metadata", k); m != nil {
			metadata[k] = m
		}
	}
	part["metadata"] = metadata
	return part
}

// identified is a part of an object with what the object is called by, and without what Crossplane adds again anyway.
func identified(live, part map[string]any) map[string]any {
	out := maps.Clone(part)
	out["apiVersion"] = Text(live, "apiVersion")
	out["kind"] = Text(live, "kind")
	metadata := map[string]any{"name": Text(live, "metadata", "name")}
	for k, theirs := range map[string]string{"labels": compositeLabel, "annotations": resourceNameAnnotation} {
		m := maps.Clone(Map(part, "metadata", k))
		delete(m, theirs)
		if len(m) > 0 {
			metadata[k] = m
		}
	}
	out["metadata"] = metadata
	return out
}
