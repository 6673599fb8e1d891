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
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	apisv1alpha1 "github.com/capstan-dev/capstan/apis/v1alpha1"
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

// companionRepository is where the image of the companion is in public.
const companionRepository = "ghcr.io/capstan-dev/companion"

// Kinds of configs that say where outside services are.
const (
	kindConfig        = "ProviderConfig"
	kindClusterConfig = "ClusterProviderConfig"
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

	mistakes = append(mistakes, complete(s)...)

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

	return &v1alpha1.Settings{Algorithm: v1alpha1.AlgorithmSettings{
		CPU:               &cpu,
		Memory:            &memory,
		CompanionImage:    companionRepository + ":" + version,
		Prometheus:        &xpv2.ProviderConfigReference{Kind: kindClusterConfig, Name: "prometheus"},
		MetricsNamespaces: []string{"monitoring"},
		MLflow:            &xpv2.ProviderConfigReference{Kind: kindClusterConfig, Name: "mlflow"},
	}}
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

	if err := check(next.Algorithm); err != nil {
		return err
	}

	*s = *next

	return nil
}

// check settings of which one field is new, so that what is wrong is about it.
func check(a v1alpha1.AlgorithmSettings) error {
	if a.CPU.Sign() <= 0 || a.Memory.Sign() <= 0 {
		return errors.New("must be greater than zero")
	}

	if a.CompanionImage == "" || strings.ContainsFunc(a.CompanionImage, func(r rune) bool { return r <= ' ' }) {
		return errors.New("must name an image, without white space")
	}

	if err := checkGateway(a.Gateway); err != nil {
		return err
	}

	for _, name := range slices.Concat(a.GatewayNamespaces, a.MetricsNamespaces) {
		if errs := validation.IsDNS1123Label(name); name != "*" && len(errs) > 0 {
			return fmt.Errorf("%q is neither * nor the name of a namespace: %s", name, because(errs))
		}
	}

	for _, ref := range []*xpv2.ProviderConfigReference{a.Prometheus, a.MLflow} {
		if ref.Kind != kindClusterConfig && ref.Kind != kindConfig {
			return fmt.Errorf("must be %s or %s", kindClusterConfig, kindConfig)
		}

		if errs := validation.IsDNS1123Subdomain(ref.Name); len(errs) > 0 {
			return errors.New(because(errs))
		}
	}

	return nil
}

func checkGateway(g *apisv1alpha1.GatewayReference) error {
	if g == nil {
		return nil
	}

	for _, f := range []struct {
		name  string
		rules func(string) []string
	}{
		{g.Name, validation.IsDNS1123Subdomain},
		{g.Namespace, validation.IsDNS1123Label},
		{g.SectionName, validation.IsDNS1123Subdomain},
	} {
		if errs := f.rules(f.name); f.name != "" && len(errs) > 0 {
			return errors.New(because(errs))
		}
	}

	return nil
}

// because makes a sentence of what a validator of Kubernetes says.
func because(errs []string) string { return strings.Join(errs, ", and ") }

// complete tells of what only all sources together can say, and leaves it out
// when they do not. The companion is of our version, unless another is named.
func complete(s *v1alpha1.Settings) []string {
	if image := s.Algorithm.CompanionImage; !strings.ContainsAny(image[strings.LastIndex(image, "/")+1:], ":@") {
		s.Algorithm.CompanionImage = image + ":" + version
	}

	if g := s.Algorithm.Gateway; g == nil || g.Name != "" {
		return nil
	}

	s.Algorithm.Gateway = nil

	return []string{"algorithm.gateway.name: is missing beside the rest of algorithm.gateway: add it, or remove algorithm.gateway"}
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
