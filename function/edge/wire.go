// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxDepth is how many objects and lists may be within each other. What is deeper is left to the stock codec, which has a limit of
// its own.
const maxDepth = 500

// A field of a message on the wire.
type field struct {
	number protowire.Number
	kind   protowire.Type

	// text is what a field of bytes holds, and bits what a number is.
	text string
	bits uint64
}

// A cursor reads the fields of a message one by one, without copying.
type cursor string

// next field, and whether it can be read.
func (c *cursor) next() (f field, ok bool) {
	tag, ok := c.varint()
	f.number, f.kind = protowire.Number(tag>>3), protowire.Type(tag&7) //nolint:gosec // Checked next.
	if !ok || tag>>3 < uint64(protowire.MinValidNumber) || tag>>3 > uint64(protowire.MaxValidNumber) {
		return f, false
	}
	switch f.kind {
	case protowire.BytesType:
		size, sized := c.varint()
		if !sized || size > uint64(len(*c)) {
			return f, false
		}
		f.text, *c = string((*c)[:size]), (*c)[size:]
		return f, true
	case protowire.VarintType:
		f.bits, ok = c.varint()
		return f, ok
	case protowire.Fixed64Type:
		f.bits, ok = c.fixed(8)
		return f, ok
	case protowire.Fixed32Type:
		f.bits, ok = c.fixed(4)
		return f, ok
	default:
		return f, false
	}
}

// varint is a number of variable length.
func (c *cursor) varint() (n uint64, ok bool) {
	s := string(*c)
	for i := 0; i < len(s) && i < 10; i++ {
		b := s[i]
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			*c = cursor(s[i+1:])
			return n, i < 9 || b < 2
		}
	}
	return 0, false
}

// fixed is a number of a length in bytes, the least first.
func (c *cursor) fixed(length int) (n uint64, ok bool) {
	s := string(*c)
	if len(s) < length {
		return 0, false
	}
	for i := range length {
		n |= uint64(s[i]) << (8 * i)
	}
	*c = cursor(s[length:])
	return n, true
}

// Fields of what google.golang.org/protobuf/types/known/structpb describes.
const (
	entryKey   protowire.Number = 1
	entryValue protowire.Number = 2

	// structFields are entries, listValues values.
	structFields protowire.Number = 1
	listValues   protowire.Number = 1

	valueNull   protowire.Number = 1
	valueNumber protowire.Number = 2
	valueString protowire.Number = 3
	valueBool   protowire.Number = 4
	valueStruct protowire.Number = 5
	valueList   protowire.Number = 6
)

// entry of a map: its key and its value, and whether a codec would write it so.
func entry(s string) (key, value string, ok bool) {
	var seen uint
	for c := cursor(s); c != ""; {
		f, ok := c.next()
		if !ok {
			return "", "", false
		}
		switch f.number {
		case entryKey:
			key = f.text
		case entryValue:
			value = f.text
		default:
			continue
		}
		if f.kind != protowire.BytesType || seen&(1<<f.number) != 0 {
			return "", "", false
		}
		seen |= 1 << f.number
	}
	return key, value, utf8.ValidString(key)
}

// plainStruct reports whether a Struct is as a codec writes it, so that each part of it reads as the stock codec reads it.
func plainStruct(s string, depth int) bool {
	for c := cursor(s); c != ""; {
		f, ok := c.next()
		if !ok || f.number == structFields && f.kind != protowire.BytesType {
			return false
		}
		if f.number != structFields {
			continue
		}
		if _, value, ok := entry(f.text); !ok || !plainValue(value, depth) {
			return false
		}
	}
	return true
}

// plainValue reports the same of a Value.
func plainValue(s string, depth int) bool {
	known := false
	for c := cursor(s); c != ""; {
		f, ok := c.next()
		if !ok {
			return false
		}
		want := protowire.BytesType
		switch f.number {
		case valueNull, valueBool:
			want = protowire.VarintType
		case valueNumber:
			want = protowire.Fixed64Type
		case valueString:
			ok = utf8.ValidString(f.text)
		case valueStruct:
			ok = depth < maxDepth && plainStruct(f.text, depth+1)
		case valueList:
			ok = depth < maxDepth && plainList(f.text, depth+1)
		default:
			continue
		}
		if !ok || known || f.kind != want {
			return false
		}
		known = true
	}
	return true
}

// plainList reports the same of a ListValue.
func plainList(s string, depth int) bool {
	for c := cursor(s); c != ""; {
		f, ok := c.next()
		if !ok || f.number == listValues && (f.kind != protowire.BytesType || !plainValue(f.text, depth)) {
			return false
		}
	}
	return true
}

// find the value of a key of a Struct. Of several the last one counts.
func find(s, key string) (value string, found bool) {
	for c := cursor(s); c != ""; {
		f, ok := c.next()
		if !ok {
			return "", false
		}
		if f.number != structFields {
			continue
		}
		if k, v, _ := entry(f.text); k == key {
			value, found = v, true
		}
	}
	return value, found
}

// content of a Value: the one field that it has. Without one it is null.
func content(s string) field {
	for c := cursor(s); c != ""; {
		f, ok := c.next()
		if !ok {
			break
		}
		if f.number >= valueNull && f.number <= valueList {
			return f
		}
	}
	return field{number: valueNull}
}

// values of the one field of a Struct or a ListValue, one by one.
func values(s string, take func(string)) {
	for c := cursor(s); c != ""; {
		f, ok := c.next()
		if !ok {
			break
		}
		if f.number == listValues {
			take(f.text)
		}
	}
}

// mapOf a Struct, without a key.
func mapOf(s, without string) map[string]any {
	m := make(map[string]any, count(s))
	values(s, func(s string) {
		if key, value, _ := entry(s); without == "" || key != without {
			m[key] = anyOf(value)
		}
	})
	return m
}

// listOf a ListValue.
func listOf(s string) []any {
	l := make([]any, 0, count(s))
	values(s, func(s string) { l = append(l, anyOf(s)) })
	return l
}

// anyOf a Value, as decoded JSON.
func anyOf(s string) any {
	f := content(s)
	switch f.number {
	case valueNumber:
		return numberOf(math.Float64frombits(f.bits))
	case valueString:
		return f.text
	case valueBool:
		return f.bits != 0
	case valueStruct:
		return mapOf(f.text, "")
	case valueList:
		return listOf(f.text)
	default:
		return nil
	}
}

// numberOf the protocol, which knows more numbers than JSON.
func numberOf(f float64) any {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	default:
		return f
	}
}

// count of the fields of a message.
func count(s string) int {
	n := 0
	for c := cursor(s); c != ""; n++ {
		if _, ok := c.next(); !ok {
			break
		}
	}
	return n
}
