// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"
	"maps"
	"slices"
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
	entries := o.Managed()
	if len(entries) == 0 {
		return identified(o, pruned(o.Map()))
	}
	kept := map[string]any{}
	for _, e := range entries {
		if appliedByCrossplane(e, TextOf(o, "apiVersion")) {
			kept = merged(kept, ownedOf(o, e.Below("fieldsV1")))
		}
	}
	return identified(o, kept)
}

// ownedOf an object is the part that a set of fields names (see owned). Nothing else of it is decoded.
func ownedOf(o Object, fields []Entry) map[string]any {
	if len(fields) == 0 {
		return o.Map()
	}
	part := map[string]any{}
	for _, f := range fields {
		name, isField := strings.CutPrefix(f.Key, "f:")
		if value := o.Field(name); isField && value != nil {
			part[name] = owned(value, f.Value)
		}
	}
	return part
}

// OwnsField reports whether a manager other than Crossplane owns a field by way of a subresource, for instance an autoscaler
// spec.replicas by way of scale.
func OwnsField(o Object, subresource string, path ...string) bool {
	at := make([]string, 0, len(path)+1)
	at = append(at, "fieldsV1")
	for _, k := range path {
		at = append(at, "f:"+k)
	}
	for _, e := range o.Managed() {
		if TextOf(e, "subresource") == subresource {
			if _, owns := e.Field(at...).(map[string]any); owns {
				return true
			}
		}
	}
	return false
}

func appliedByCrossplane(entry Object, apiVersion string) bool {
	return strings.HasPrefix(TextOf(entry, "manager"), composedManagerPrefix) &&
		TextOf(entry, "operation") == "Apply" &&
		TextOf(entry, "subresource") == "" &&
		TextOf(entry, "apiVersion") == apiVersion
}

// owned is the part of a value that a set of fields names. In such a set "f:name" is a field, `k:{"name":"x"}` the item of a list
// with these keys, `v:"x"` an item that equals a value, "." the value itself, and an empty set stands for everything below.
func owned(value any, fields Object) any {
	switch v := value.(type) {
	case map[string]any:
		entries := fields.Below()
		if len(entries) == 0 {
			return v
		}
		part := make(map[string]any, len(entries))
		for _, e := range entries {
			name, isField := strings.CutPrefix(e.Key, "f:")
			if below, ok := v[name]; ok && isField {
				part[name] = owned(below, e.Value)
			}
		}
		return part
	case []any:
		entries := fields.Below()
		if len(entries) == 0 {
			return v
		}
		part, selectors := []any{}, selectorsIn(entries)
		for _, item := range v {
			if i := slices.IndexFunc(selectors, func(s selector) bool { return s.selects(item) }); i >= 0 {
				part = append(part, owned(item, selectors[i].fields))
			}
		}
		return part
	default:
		return value
	}
}

// A selector of items of a list: those that equal a value, or have its keys. fields are what is owned of them.
type selector struct {
	byKeys bool
	want   any
	fields Object
}

// selectorsIn a set of fields.
func selectorsIn(entries []Entry) []selector {
	ss := make([]selector, 0, len(entries))
	for _, e := range entries {
		kind, value, _ := strings.Cut(e.Key, ":")
		s := selector{byKeys: kind == "k", fields: e.Value}
		if (kind == "v" || kind == "k") && json.Unmarshal([]byte(value), &s.want) == nil {
			ss = append(ss, s)
		}
	}
	slices.Reverse(ss) // The last one of a key counts.
	return ss
}

func (s selector) selects(item any) bool {
	if s.byKeys {
		return hasKeys(item, s.want)
	}
	return equal(item, s.want)
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
func identified(o Object, part map[string]any) map[string]any {
	out := maps.Clone(part)
	out["apiVersion"] = TextOf(o, "apiVersion")
	out["kind"] = TextOf(o, "kind")
	metadata := map[string]any{"name": TextOf(o, "metadata", "name")}
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
