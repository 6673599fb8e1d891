// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

var (
	numberType    = reflect.TypeFor[json.Number]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
	textType      = reflect.TypeFor[encoding.TextMarshaler]()
)

// How types are written. Few are, and they stay.
var (
	plans      sync.Map // reflect.Type -> []member
	marshalers sync.Map // reflect.Type -> bool
)

// marshals reports whether a value is written in its own way.
func marshals(v reflect.Value) bool {
	t := v.Type()
	if t.PkgPath() == "" && t.Kind() != reflect.Pointer {
		return false
	}
	if v.Kind() != reflect.Pointer && v.CanAddr() {
		t = reflect.PointerTo(t)
	}
	if known, ok := marshalers.Load(t); ok {
		return known == true
	}
	own := t.Implements(marshalerType) || t.Implements(textType)
	marshalers.Store(t, own)
	return own
}

// A member of a struct, by the rules of encoding/json.
type member struct {
	name  string
	index []int

	omitEmpty, omitZero bool
}

// of a struct. There is none where an embedded pointer is nil.
func (m *member) of(v reflect.Value) (reflect.Value, bool) {
	if len(m.index) == 1 {
		return v.Field(m.index[0]), true
	}
	for _, i := range m.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, true
}

// omitted reports whether a value is left out.
func (m *member) omitted(v reflect.Value) bool {
	if m.omitZero {
		if z, ok := v.Interface().(interface{ IsZero() bool }); ok && (v.Kind() != reflect.Pointer || !v.IsNil()) {
			return z.IsZero()
		}
		return v.IsZero()
	}
	if !m.omitEmpty {
		return false
	}
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

// planOf a struct: its members by name, including the members of embedded structs.
func planOf(t reflect.Type) []member {
	if known, ok := plans.Load(t); ok {
		return known.([]member) //nolint:errcheck,forcetypeassert // Nothing else is stored.
	}
	depths := map[string]int{}
	var all []member
	for _, f := range reflect.VisibleFields(t) {
		m, ok := memberOf(t, f)
		if !ok {
			continue
		}
		depth, twice := depths[m.name]
		if twice && depth <= len(f.Index) {
			continue
		}
		depths[m.name] = len(f.Index)
		all = append(slices.DeleteFunc(all, func(o member) bool { return o.name == m.name }), m)
	}
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
	plans.Store(t, all)
	return all
}

// memberOf a field, unless it is not written or stands for what is embedded in it.
func memberOf(t reflect.Type, f reflect.StructField) (member, bool) {
	tag := f.Tag.Get("json")
	name, options, _ := strings.Cut(tag, ",")
	if !f.IsExported() || tag == "-" || f.Anonymous && name == "" && isStruct(f.Type) || !inlined(t, f.Index) {
		return member{}, false
	}
	if name == "" {
		name = f.Name
	}
	m := member{name: name, index: f.Index}
	for o := range strings.SplitSeq(options, ",") {
		m.omitEmpty = m.omitEmpty || o == "omitempty"
		m.omitZero = m.omitZero || o == "omitzero"
	}
	return m, true
}

// inlined reports whether all that a field is embedded in is written as if its fields were the outer one's.
func inlined(t reflect.Type, index []int) bool {
	for i := 1; i < len(index); i++ {
		f := t.FieldByIndex(index[:i])
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			return false
		}
	}
	return true
}

// isStruct reports whether a type is a struct or points to one.
func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}
