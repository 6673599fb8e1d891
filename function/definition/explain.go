// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// explain an error about a bound: what the field must be, with an example. Rules bring their own words.
func (d *Definition) explain(err *field.Error, object any) {
	node, value := d.at(err.Field), err.BadValue
	err.BadValue = d.value(object, err.Field)
	switch {
	case err.Type == field.ErrorTypeDuplicate:
		err.Detail = "is there twice: remove one"
		if key, ok := value.(map[string]any); ok && len(key) == 1 {
			for name := range key {
				err.Field, err.BadValue = err.Field+"."+name, key[name]
			}
		}
		return
	case err.Type == field.ErrorTypeNotSupported:
		err.Detail = "must be " + alternatives(node.Enum)
		return
	case node.MaxLength != nil && err.Type == field.ErrorTypeTooLong:
		text, _ := err.BadValue.(string)
		err.Detail = fmt.Sprintf("has %d characters: must have at most %d", utf8.RuneCountInString(text), *node.MaxLength)
		return
	case err.Type == field.ErrorTypeRequired:
		err.Detail = "is missing"
	case err.Type == field.ErrorTypeTypeInvalid && node.XIntOrString:
		err.Detail = "must be a number or a text"
	case err.Type == field.ErrorTypeTypeInvalid && node.Type != "":
		err.Detail = "must be of type " + node.Type
	case node.MaxItems != nil && err.Type == field.ErrorTypeTooMany:
		err.Detail = fmt.Sprintf("must have at most %d items", *node.MaxItems)
	case bounds(node) != "":
		err.Detail = bounds(node)
	default:
		err.Detail = strings.Replace(strings.TrimPrefix(err.Detail, err.Field+" in body "), "should ", "must ", 1)
	}
	if node.Example != nil {
		err.Detail += ", for instance " + strings.Trim(string(node.Example.Raw), `"`)
	}
}

// bounds of a number in words, empty if it has none.
func bounds(node extv1.JSONSchemaProps) string {
	switch {
	case node.Minimum == nil:
		return ""
	case node.Maximum == nil:
		return "must be at least " + number(*node.Minimum)
	case node.ExclusiveMaximum:
		return fmt.Sprintf("must be from %s to less than %s", number(*node.Minimum), number(*node.Maximum))
	default:
		return fmt.Sprintf("must be from %s to %s", number(*node.Minimum), number(*node.Maximum))
	}
}

// number as people write it, without an exponent.
func number(f float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%f", f), "0"), ".")
}

// alternatives of an enum in words.
func alternatives(enum []extv1.JSON) string {
	words := make([]string, len(enum))
	for i, v := range enum {
		words[i] = strings.Trim(string(v.Raw), `"`)
	}
	last := len(words) - 1
	if last <= 0 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// steps of a path such as spec.env[0].name.
func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// value at a path as far as a message repeats it: a scalar, a list, or the keys of a map. Of an object the message names fields.
func (d *Definition) value(object any, path string) any {
	for _, step := range steps(path) {
		switch o := object.(type) {
		case map[string]any:
			object = o[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(o) {
				return field.OmitValueType{}
			}
			object = o[i]
		}
	}
	m, ok := object.(map[string]any)
	switch {
	case ok && d.at(path).AdditionalProperties != nil:
		return slices.Sorted(maps.Keys(m))
	case ok || object == nil:
		return field.OmitValueType{}
	default:
		return object
	}
}

// at a path: the schema of the field, empty if there is none.
func (d *Definition) at(path string) extv1.JSONSchemaProps {
	node := d.written
	for _, step := range steps(path) {
		next, ok := node.Properties[step]
		switch {
		case ok:
			node = next
		case node.Items != nil && node.Items.Schema != nil:
			node = *node.Items.Schema
		case node.AdditionalProperties != nil && node.AdditionalProperties.Schema != nil:
			node = *node.AdditionalProperties.Schema
		default:
			return extv1.JSONSchemaProps{}
		}
	}
	return node
}
