// SPDX-License-Identifier: Apache-2.0

// Package definition evaluates the schema of a composite resource: its defaults, bounds and CEL rules. The API server does so
// when it stores an object. A preview has no API server, and an object may have been stored under an older schema.
package definition

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/memo"
)

// A Definition is the schema of a composite resource without its status.
type Definition struct {
	written    extv1.JSONSchemaProps
	structural *structural.Structural
	validators func() validators

	// specs that were evaluated.
	specs *memo.Memo[evaluated]
}

// validators are compiled at the first use.
type validators struct {
	bounds validation.SchemaValidator
	rules  *cel.Validator
}

// Once returns what reads the definition of a composite resource that is part of the program, when it is used first.
func Once(text []byte) func() *Definition {
	return sync.OnceValue(func() *Definition {
		d, err := Read(text)
		if err != nil {
			panic(err) // It is part of the program.
		}
		return d
	})
}

// Read the version of a CompositeResourceDefinition that is referenceable.
func Read(text []byte) (*Definition, error) {
	var xrd struct {
		Spec struct {
			Versions []struct {
				Referenceable bool                           `json:"referenceable"`
				Schema        extv1.CustomResourceValidation `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &xrd); err != nil {
		return nil, fmt.Errorf("cannot read a definition: %w", err)
	}
	d := &Definition{specs: memo.New[evaluated](maxBytes)}
	for _, v := range xrd.Spec.Versions {
		if v.Referenceable { // Crossplane passes objects of this version, whichever one they were written in.
			d.written = *v.Schema.OpenAPIV3Schema
		}
	}
	if d.written.Properties == nil {
		return nil, errors.New("cannot use a definition without a version that is referenceable")
	}
	delete(d.written.Properties, "status")
	// Crossplane adds it, and rules about the name refer to it.
	d.written.Properties["metadata"] = extv1.JSONSchemaProps{Type: "object", Properties: map[string]extv1.JSONSchemaProps{"name": {Type: "string"}}}
	var props apiextensions.JSONSchemaProps
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&d.written, &props, nil); err != nil {
		return nil, fmt.Errorf("cannot convert a schema: %w", err)
	}
	var err error
	if d.structural, err = structural.NewStructural(&props); err != nil {
		return nil, fmt.Errorf("cannot use a schema: %w", err)
	}
	bounds, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("cannot make a validator of a schema: %w", err)
	}
	d.validators = sync.OnceValue(func() validators {
		return validators{bounds: bounds, rules: cel.NewValidator(d.structural, true, celconfig.PerCallLimit)}
	})
	return d, nil
}

// Defaulted returns a copy of a spec with the defaults of the schema. Defaults of fields below an object hold only where the
// object is set: objects are the ones that every spec has.
func (d *Definition) Defaulted(spec map[string]any, objects ...string) map[string]any {
	out, _ := copied(spec).(map[string]any)
	for _, name := range objects {
		if out[name] == nil {
			out[name] = map[string]any{}
		}
	}
	s := d.structural.Properties["spec"]
	defaulting.PruneNonNullableNullsWithoutDefaults(out, &s)
	defaulting.Default(out, &s)
	return out
}

// copied JSON with whole numbers as integers, which the rules of a schema distinguish from others.
func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = copied(v[k])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copied(v[i])
		}
		return out
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	}
	return v
}

// Fields of a spec by their paths, such as env[].name, with their defaults: nil for a field that has none. Only fields without
// fields of their own are among them.
func (d *Definition) Fields() map[string]any {
	fields := map[string]any{}
	var walk func(path string, node extv1.JSONSchemaProps)
	walk = func(path string, node extv1.JSONSchemaProps) {
		switch {
		case len(node.Properties) > 0:
			for name, child := range node.Properties {
				walk(strings.TrimPrefix(path+"."+name, "."), child)
			}
		case node.Items != nil:
			walk(path+"[]", *node.Items.Schema)
		case node.AdditionalProperties != nil:
			walk(path+"{}", *node.AdditionalProperties.Schema)
		default:
			var value any
			if node.Default != nil {
				_ = json.Unmarshal(node.Default.Raw, &value) // The definition was read, so it is JSON.
			}
			fields[path] = value
		}
	}
	walk("", d.written.Properties["spec"])
	return fields
}

// Decode a spec with the defaults of the schema, and report the problems of it. It is false when nothing can be decoded.
func Decode[T any, P interface {
	*T
	DeepCopy() *T
}](d *Definition, name string, spec map[string]any, objects ...string) (T, []check.Problem, bool) {
	var none T
	e, err := d.evaluate(name, spec, objects, func(defaulted []byte) (any, error) {
		into := new(T)
		return P(into), kjson.Unmarshal(defaulted, into)
	})
	if err == nil {
		into, _ := e.decoded.(P) // One definition has one type.
		return *into.DeepCopy(), e.problems, true
	}
	if len(e.problems) == 0 {
		e.problems = check.Errors(field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{},
			fmt.Sprintf("cannot be read: %v: correct the type of that field", err))})
	}
	return none, e.problems, false
}

// evaluated is a spec with its defaults, decoded, and its problems.
type evaluated struct {
	decoded  any
	problems []check.Problem
}

// maxBytes of specs that are remembered, as JSON: several thousand of usual size. Decoded they take about three times as much.
const maxBytes = 4 << 20

// evaluate a spec once: the rules cost more than all the rest of a plan, and most calls are about a spec that has not changed.
// A spec that cannot be decoded is not remembered.
func (d *Definition) evaluate(name string, spec map[string]any, objects []string, decode func([]byte) (any, error)) (evaluated, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return evaluated{}, err
	}
	return d.specs.Of(fmt.Appendf(nil, "%q %q %s", name, objects, raw), func() (e evaluated, size int, err error) {
		whole := d.Defaulted(spec, objects...)
		defaulted, err := json.Marshal(whole)
		if err != nil {
			return e, 0, err
		}
		e.problems = check.Errors(d.Check(name, whole))
		e.decoded, err = decode(defaulted)
		return e, len(defaulted), err
	})
}

// Check an object whose spec has its defaults. Errors are sorted by field.
func (d *Definition) Check(name string, spec map[string]any) field.ErrorList {
	v := d.validators()
	object := map[string]any{"metadata": map[string]any{"name": name}, "spec": spec}
	errs := validation.ValidateCustomResource(nil, object, v.bounds)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	for _, err := range errs {
		d.explain(err, object)
	}
	if !slices.ContainsFunc(errs, stops) {
		found, _ := v.rules.Validate(context.Background(), nil, d.structural, object, nil, celconfig.RuntimeCELCostBudget)
		for _, err := range found {
			err.BadValue = d.value(object, err.Field)
		}
		// The words of a rule are better than the words of a bound of the same field.
		errs = slices.DeleteFunc(errs, func(err *field.Error) bool {
			return slices.ContainsFunc(found, func(rule *field.Error) bool { return rule.Field == err.Field })
		})
		errs = append(errs, found...)
	}
	// Alternatives (anyOf) and formats are reported without a field, beside an error of the field.
	if known := slices.DeleteFunc(slices.Clone(errs), func(err *field.Error) bool { return err.Field == "<nil>" }); len(known) > 0 {
		errs = known
	}
	slices.SortFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Detail, b.Detail))
	})
	return errs
}

// stops reports whether the API server evaluates no rules because of an error: they may rely on what it is about.
func stops(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	default:
		return false
	}
}
