// SPDX-License-Identifier: Apache-2.0

package edge

import "github.com/capstan-dev/capstan/function/compose"

// Where the API server keeps account of who wrote what. It is as large as the rest of an object, and few read it.
const (
	keyMetadata      = "metadata"
	keyManagedFields = "managedFields"
)

// An Object of a request. It stays as it came until something of it is read. What is read is as structpb decodes it. It must not be
// read by several goroutines at once.
type Object struct {
	raw string

	whole   map[string]any
	managed []compose.Object
	account bool
}

// Map is the object as decoded JSON, without its managed fields. It must not be changed.
func (o *Object) Map() map[string]any {
	if o.whole == nil {
		o.whole = mapOf(o.raw, keyMetadata)
		if v, ok := find(o.raw, keyMetadata); ok {
			o.whole[keyMetadata] = metadata(v)
		}
	}
	return o.whole
}

// metadata of an object without its managed fields.
func metadata(value string) any {
	if f := content(value); f.number == valueStruct {
		return mapOf(f.text, keyManagedFields)
	}
	return anyOf(value)
}

// Managed fields of the object, an Object for each entry.
func (o *Object) Managed() []compose.Object {
	if !o.account {
		v, _ := o.at([]string{keyMetadata, keyManagedFields})
		if list := content(v); list.number == valueList {
			values(list.text, func(v string) { o.managed = append(o.managed, objectOf(v)) })
		}
		o.account = true
	}
	return o.managed
}

// Below are the fields at a path, as objects. The last one of a key counts.
func (o *Object) Below(path ...string) []compose.Entry {
	raw := o.raw
	if len(path) > 0 {
		v, _ := o.at(path)
		raw = objectOf(v).raw
	}
	all := make([]compose.Entry, 0, count(raw))
	values(raw, func(s string) {
		key, v, _ := entry(s)
		all = append(all, compose.Entry{Key: key, Value: objectOf(v)})
	})
	return all
}

// objectOf a Value, without fields for one that is no object.
func objectOf(v string) *Object {
	if f := content(v); f.number == valueStruct {
		return &Object{raw: f.text}
	}
	return &Object{}
}

// Field at a path, as decoded JSON, or nil. Nothing else is decoded. It must not be changed.
func (o *Object) Field(path ...string) any {
	if o.whole != nil || len(path) == 0 {
		return compose.Field(o.Map(), path...)
	}
	v, ok := o.at(path)
	switch {
	case !ok:
		return nil
	case path[0] != keyMetadata:
		return anyOf(v)
	case len(path) == 1:
		return metadata(v)
	case path[1] == keyManagedFields:
		return nil
	default:
		return anyOf(v)
	}
}

// Has reports whether there is a field at a path, which may be null.
func (o *Object) Has(path ...string) bool {
	_, ok := o.at(path)
	return ok
}

// Text at a path, or "". Nothing else is decoded.
func (o *Object) Text(path ...string) string {
	v, _ := o.at(path)
	if f := content(v); f.number == valueString {
		return f.text
	}
	return ""
}

// at is the Value at a path, and whether there is one. There is none in no object.
func (o *Object) at(path []string) (value string, found bool) {
	if o == nil {
		return "", false
	}
	for s, i := o.raw, 0; i < len(path); i++ {
		if value, found = find(s, path[i]); !found {
			return "", false
		}
		f := content(value)
		if s = f.text; f.number != valueStruct && i < len(path)-1 {
			return "", false
		}
	}
	return value, found
}
