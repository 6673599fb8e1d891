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
	managed []any
	account bool
}

// Map is the object as decoded JSON, without its managed fields. It must not be changed.
func (o *Object) Map() map[string]any {
	if o.whole == nil {
		o.whole = mapOf(o.raw, keyMetadata)
		if v, ok := find(o.raw, keyMetadata); ok {
			o.whole[keyMetadata] = anyOf(v)
			if f := content(v); f.number == valueStruct {
				o.whole[keyMetadata] = mapOf(f.text, keyManagedFields)
			}
		}
	}
	return o.whole
}

// Managed fields of the object, as decoded JSON. They must not be changed.
func (o *Object) Managed() []any {
	if !o.account {
		if v, ok := o.at([]string{keyMetadata, keyManagedFields}); ok {
			o.managed, _ = anyOf(v).([]any)
		}
		o.account = true
	}
	return o.managed
}

// Field at a path, as decoded JSON, or nil. Nothing else is decoded. It must not be changed.
func (o *Object) Field(path ...string) any {
	account := len(path) > 0 && path[0] == keyMetadata && (len(path) == 1 || path[1] == keyManagedFields)
	if o.whole != nil || account || len(path) == 0 {
		return compose.Field(o.Map(), path...)
	}
	if v, ok := o.at(path); ok {
		return anyOf(v)
	}
	return nil
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
