// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/input/v1alpha1"
)

// Type of the function's input.
const (
	inputAPIVersion = "capstan.dev/v1alpha1"
	inputKind       = "Settings"
)

// Sources of settings, as messages call them.
const (
	sourceInput       = "input of function-capstan"
	sourceEnvironment = `EnvironmentConfig "` + settingsName + `"`
)

// maxMistakes is how many mistakes in settings are told of. A condition's
// message is for people.
const maxMistakes = 3

// settingsOf the platform: built-in defaults, over them the function's input
// in the Composition, over it the EnvironmentConfig, field by field. A field that
// cannot be used is left out and told of in the error, which names its source,
// path and value; the settings are usable nevertheless.
func settingsOf(req *fnv1.RunFunctionRequest) (v1alpha1.Settings, error) {
	s := defaults()

	mistakes := checkInput(req)
	mistakes = append(mistakes, override(s, sourceInput, inputFields(req))...)

	for _, item := range req.GetRequiredResources()[requiredSettings].GetItems() {
		data := item.GetResource().GetFields()["data"].GetStructValue().AsMap()
		mistakes = append(mistakes, override(s, sourceEnvironment, data)...)
	}

	if len(mistakes) == 0 {
		return *s, nil
	}

	if n := len(mistakes) - maxMistakes; n > 0 {
		mistakes = append(mistakes[:maxMistakes], fmt.Sprintf("%d more", n))
	}

	return *s, errors.New(strings.Join(mistakes, "; "))
}

func defaults() *v1alpha1.Settings {
	cpu, memory := resource.MustParse("250m"), resource.MustParse("256Mi")

	return &v1alpha1.Settings{Algorithm: v1alpha1.AlgorithmSettings{CPU: &cpu, Memory: &memory}}
}

// checkInput tells whether the function's input is of our type.
func checkInput(req *fnv1.RunFunctionRequest) []string {
	in := &object{resource: req.GetInput()}
	if in.resource == nil {
		return nil
	}

	if v, k := in.str("apiVersion"), in.str("kind"); v != inputAPIVersion || k != inputKind {
		return []string{fmt.Sprintf("%s: cannot use apiVersion %q and kind %q: must be %s %s",
			sourceInput, v, k, inputAPIVersion, inputKind)}
	}

	return nil
}

// inputFields are the settings in the function's input.
func inputFields(req *fnv1.RunFunctionRequest) map[string]any {
	m := req.GetInput().AsMap()
	maps.DeleteFunc(m, func(k string, _ any) bool {
		return k == "apiVersion" || k == "kind" || k == "metadata"
	})

	return m
}

// override settings by those of a source, leaf by leaf, so that a mistake costs
// one field and can be told where it is.
func override(s *v1alpha1.Settings, source string, m map[string]any) []string {
	var mistakes []string

	for _, l := range leaves(m) {
		if err := set(s, l); err != nil {
			mistakes = append(mistakes, fmt.Sprintf("%s: %s: cannot use %.60q: %v",
				source, strings.Join(l.path, "."), fmt.Sprint(l.value), err))
		}
	}

	return mistakes
}

// set one field of the settings, or leave them as they are.
func set(s *v1alpha1.Settings, l leaf) error {
	v := l.value
	for _, k := range slices.Backward(l.path) {
		v = map[string]any{k: v}
	}

	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}

	next := s.DeepCopy()

	unknown, err := kjson.UnmarshalStrict(raw, next, kjson.DisallowUnknownFields)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return err
	}

	if next.Algorithm.CPU.Sign() <= 0 || next.Algorithm.Memory.Sign() <= 0 {
		return errors.New("must be greater than zero")
	}

	*s = *next

	return nil
}

// A leaf is one field with its path.
type leaf struct {
	path  []string
	value any
}

// leaves of a map in the order of their paths. What is null is not set, and so
// not among them.
func leaves(m map[string]any, at ...string) []leaf {
	var ls []leaf

	for _, k := range slices.Sorted(maps.Keys(m)) {
		path := append(slices.Clone(at), k)

		if v, ok := m[k].(map[string]any); ok && len(v) > 0 {
			ls = append(ls, leaves(v, path...)...)
			continue
		}

		if m[k] != nil {
			ls = append(ls, leaf{path: path, value: m[k]})
		}
	}

	return ls
}
