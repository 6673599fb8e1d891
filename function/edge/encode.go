// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// keyStatus is what API types bring along of an object's status.
const keyStatus = "status"

// An Encoder writes objects one after the other, in the same memory.
type Encoder struct{ encoder }

// Encode anything that marshals to a JSON object as a Struct on the wire, in one walk and always in the same order. Nulls are left
// out: API types write one for a time that is not set, and server-side apply would own the field.
func (e *Encoder) Encode(v any) (string, error) { return e.encode(v, "") }

// EncodeComposed encodes an object without its status, which is not for Crossplane to apply.
func (e *Encoder) EncodeComposed(v any) (string, error) { return e.encode(v, keyStatus) }

func (e *encoder) encode(v any, without string) (string, error) {
	e.size, e.without = 0, without
	root := reflect.ValueOf(v)
	for root.Kind() == reflect.Pointer && !root.IsNil() && !marshals(root) {
		root = root.Elem()
	}
	if k := root.Kind(); k != reflect.Struct && k != reflect.Map || marshals(root) {
		m, err := decoded(v)
		if err != nil {
			return "", err
		}
		root = reflect.ValueOf(m)
	}
	if root.Kind() == reflect.Map && root.Type().Key().Kind() != reflect.String {
		return "", fmt.Errorf("cannot use %T: it must be a JSON object", v)
	}
	if err := e.fields(root); err != nil {
		return "", err
	}
	return string(e.buf[len(e.buf)-e.size:]), nil
}

// decoded JSON of what marshals to an object in its own way.
func decoded(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot marshal %T: %w", v, err)
	}
	var m map[string]any
	if err := unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("cannot use %T: it must be a JSON object: %w", v, err)
	}
	return m, nil
}

// unmarshal JSON, numbers as they are written.
func unmarshal(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(v)
}

// An encoder writes from the back to the front, so that the size of what is within a message is known before its own beginning is
// written.
type encoder struct {
	// buf has the written bytes at its end, and size is their number.
	buf  []byte
	size int

	// without is a key of the outermost object that is left out.
	without string
}

// front makes room for n bytes before what is written.
func (e *encoder) front(n int) []byte {
	if free := len(e.buf) - e.size; free < n {
		grown := make([]byte, max(2*len(e.buf), len(e.buf)+n, 4096))
		copy(grown[len(grown)-e.size:], e.buf[free:])
		e.buf = grown
	}
	e.size += n
	at := len(e.buf) - e.size
	return e.buf[at : at+n]
}

func (e *encoder) varint(n uint64) {
	protowire.AppendVarint(e.front(protowire.SizeVarint(n))[:0], n)
}

func (e *encoder) tag(n protowire.Number, t protowire.Type) { e.varint(protowire.EncodeTag(n, t)) }

// close a message that began to be written at a size: it gets its length and tag.
func (e *encoder) close(n protowire.Number, from int) {
	e.varint(uint64(e.size - from)) //nolint:gosec // It grows only.
	e.tag(n, protowire.BytesType)
}

// text of a field. What is no UTF-8 is replaced, as in JSON.
func (e *encoder) text(n protowire.Number, s string) {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	from := e.size
	copy(e.front(len(s)), s)
	e.close(n, from)
}

// entry of a Struct, or nothing if the value is null.
func (e *encoder) entry(key string, v reflect.Value) error {
	end := e.size
	written, err := e.value(v)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if !written {
		e.size = end
		return nil
	}
	e.close(entryValue, end)
	e.text(entryKey, key)
	e.close(structFields, end)
	return nil
}

// fields of a map or of a struct, without braces. Keys are in the order of the alphabet.
func (e *encoder) fields(v reflect.Value) error {
	without := e.without
	e.without = ""
	if v.Kind() == reflect.Map {
		return e.entries(v, without)
	}
	fs := planOf(v.Type())
	for i := len(fs) - 1; i >= 0; i-- {
		f := &fs[i]
		value, ok := f.of(v)
		if !ok || without != "" && f.name == without || f.omitted(value) {
			continue
		}
		if err := e.entry(f.name, value); err != nil {
			return err
		}
	}
	return nil
}

// entries of a map.
func (e *encoder) entries(v reflect.Value, without string) error {
	if m, ok := v.Interface().(map[string]any); ok {
		keys := make([]string, 0, len(m))
		for k := range m {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range slices.Backward(keys) {
			if without != "" && k == without || m[k] == nil {
				continue
			}
			if err := e.entry(k, reflect.ValueOf(m[k])); err != nil {
				return err
			}
		}
		return nil
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range slices.Backward(keys) {
		if without != "" && k.String() == without {
			continue
		}
		if err := e.entry(k.String(), v.MapIndex(k)); err != nil {
			return err
		}
	}
	return nil
}

// value as the content of a Value. It reports false for a null, which it has written.
func (e *encoder) value(v reflect.Value) (bool, error) {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return e.null(), nil
		}
		if v.Kind() == reflect.Pointer && marshals(v) {
			return e.marshaled(v)
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return e.null(), nil
	}
	if marshals(v) {
		return e.marshaled(v)
	}
	switch v.Kind() {
	case reflect.String:
		if v.Type() == numberType {
			return true, e.number(v.String())
		}
		e.text(valueString, v.String())
	case reflect.Bool:
		e.varint(protowire.EncodeBool(v.Bool()))
		e.tag(valueBool, protowire.VarintType)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return true, e.integer(v.Int())
	case reflect.Float64:
		return true, e.float(v.Float())
	case reflect.Struct:
		return true, e.within(valueStruct, v, e.fields)
	case reflect.Map, reflect.Slice:
		return e.collection(v)
	case reflect.Array:
		return true, e.within(valueList, v, e.items)
	default:
		return e.marshaled(v)
	}
	return true, nil
}

// collection as the content of a Value, like value.
func (e *encoder) collection(v reflect.Value) (bool, error) {
	switch {
	case v.IsNil():
		return e.null(), nil
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		e.text(valueString, base64.StdEncoding.EncodeToString(v.Bytes()))
		return true, nil
	case v.Kind() == reflect.Slice:
		return true, e.within(valueList, v, e.items)
	case v.Type().Key().Kind() != reflect.String:
		return e.marshaled(v)
	default:
		return true, e.within(valueStruct, v, e.fields)
	}
}

// null is a value in a list, where it has a place. Elsewhere it is taken back.
func (e *encoder) null() bool {
	e.varint(0)
	e.tag(valueNull, protowire.VarintType)
	return false
}

// within a message of its own.
func (e *encoder) within(n protowire.Number, v reflect.Value, write func(reflect.Value) error) error {
	from := e.size
	if err := write(v); err != nil {
		return err
	}
	e.close(n, from)
	return nil
}

// items of a list.
func (e *encoder) items(v reflect.Value) error {
	for i := v.Len() - 1; i >= 0; i-- {
		from := e.size
		if _, err := e.value(v.Index(i)); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		e.close(listValues, from)
	}
	return nil
}

// integer that a float64 holds exactly. Another one is refused, because the protocol knows only floating point.
func (e *encoder) integer(n int64) error {
	const exact = 1 << 53
	if n >= -exact && n <= exact {
		return e.float(float64(n))
	}
	return e.number(strconv.FormatInt(n, 10))
}

// number as it is written in JSON.
func (e *encoder) number(n string) error {
	f, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return fmt.Errorf("cannot represent number %s: %w", n, err)
	}
	if integer := !strings.ContainsAny(n, ".eE"); integer && strconv.FormatFloat(f, 'f', -1, 64) != n {
		return fmt.Errorf("cannot represent integer %s exactly", n)
	}
	return e.float(f)
}

func (e *encoder) float(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("cannot represent number %v", f)
	}
	b := e.front(8)
	for i, bits := 0, math.Float64bits(f); i < 8; i++ {
		b[i] = byte(bits >> (8 * i))
	}
	e.tag(valueNumber, protowire.Fixed64Type)
	return nil
}

// marshaled writes what a value marshals to in its own way.
func (e *encoder) marshaled(v reflect.Value) (bool, error) {
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		return false, fmt.Errorf("cannot marshal %s: %w", v.Type(), err)
	}
	if n := len(raw) - 1; n > 0 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		e.text(valueString, string(raw[1:n]))
		return true, nil
	}
	var own any
	if err := unmarshal(raw, &own); err != nil {
		return false, fmt.Errorf("cannot use %s: %w", v.Type(), err)
	}
	return e.value(reflect.ValueOf(own))
}
