// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime"
)

// The encoder that tests compare with. It goes by way of Kubernetes' and the standard library's own JSON.

// structOf anything that marshals to a JSON object. Nulls are left out, as API types write one for a time that is not set and
// server-side apply would own the field.
func structOf(v any) (*structpb.Struct, error) {
	if t := reflect.TypeOf(v); t != nil && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
		if err != nil {
			return nil, fmt.Errorf("cannot convert %T: %w", v, err)
		}
		return fields(m)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot marshal %T: %w", v, err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("cannot use %T: it must be a JSON object: %w", v, err)
	}
	return fields(m)
}

func fields(m map[string]any) (*structpb.Struct, error) {
	s := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(m))}

	// Sorted, so that the same one of two errors is always reported.
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if m[k] == nil {
			continue
		}
		v, err := value(m[k])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		s.Fields[k] = v
	}
	return s, nil
}

func value(v any) (*structpb.Value, error) {
	switch v := v.(type) {
	case string:
		return structpb.NewStringValue(v), nil
	case bool:
		return structpb.NewBoolValue(v), nil
	case json.Number:
		return number(v)
	case int64:
		return number(json.Number(strconv.FormatInt(v, 10)))
	case float64:
		return structpb.NewNumberValue(v), nil
	case map[string]any:
		s, err := fields(v)
		if err != nil {
			return nil, err
		}
		return structpb.NewStructValue(s), nil
	case []any:
		l := &structpb.ListValue{Values: make([]*structpb.Value, len(v))}
		for i := range v {
			e, err := value(v[i])
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			l.Values[i] = e
		}
		return structpb.NewListValue(l), nil
	default:
		return structpb.NewNullValue(), nil
	}
}

// number of the protocol, which knows only floating point. An integer that it would change is refused instead.
func number(n json.Number) (*structpb.Value, error) {
	f, err := n.Float64()
	if err != nil {
		return nil, fmt.Errorf("cannot represent number %s: %w", n, err)
	}
	integer := !strings.ContainsAny(n.String(), ".eE")
	if integer && strconv.FormatFloat(f, 'f', -1, 64) != n.String() {
		return nil, fmt.Errorf("cannot represent integer %s exactly", n)
	}
	return structpb.NewNumberValue(f), nil
}
