// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// managed fields of a spec do not reach the pods: they are about how many there are, their clients and how they are watched.
var managed = []string{
	"replicas", "scaling", "metrics", "route", "access", "lifecycle", "experiment", "slo", "revisionHistoryLimit",
	"availability.maxUnavailable", "model.cache",
	"model.registry.version", "model.registry.alias", "model.registry.liveAlias", "model.registry.candidateAlias", "model.registry.providerConfigRef",
}

// usual values of fields mean the same as none: the defaults of the schema, so that a field that comes with a later version
// changes no revision. The number of GPUs has a default only where there is a GPU.
var usual = sync.OnceValue(func() map[string]any {
	values := theDefinition().Fields()
	values["resources.gpuCount"] = 1.0
	return values
})

// podInputs are what reaches the pods: fields of the spec as the user wrote them, and what the spec only refers to, which is the
// version of the model and the content of Secrets whose changes make revisions.
func (t target) podInputs() map[string]any {
	// By way of the type: fields that this version does not know, as during an upgrade, make no revision, and neither does
	// another way to write the same.
	spec, err := compose.AsMap(canonical(*t.written))
	if err != nil {
		return nil
	}
	for _, path := range managed {
		spec = removed(spec, strings.Split(path, "."))
	}
	inputs, _ := significant("", spec).(map[string]any)
	if inputs == nil {
		inputs = map[string]any{}
	}
	if m := t.spec.Model; m != nil && m.Cache != nil {
		inputs["modelCached"] = true
	}
	if t.resolved != nil {
		inputs["modelVersion"] = map[string]any{"version": t.resolved.Version, "source": t.resolved.Source}
	}
	if len(t.fingerprints) > 0 {
		inputs["fingerprints"] = t.fingerprints
	}
	return inputs
}

// canonical spec: one way to write what can be written in several.
func canonical(spec v1alpha1.AlgorithmSpec) v1alpha1.AlgorithmSpec {
	s := *spec.DeepCopy()
	slices.SortFunc(s.Secrets, func(a, b v1alpha1.MountedSecret) int { return strings.Compare(a.Name, b.Name) })
	if r := s.Resources; r != nil {
		for _, q := range []*resource.Quantity{r.CPU, r.Memory, r.SharedMemory} {
			if q != nil {
				q.Add(resource.Quantity{}) // forgets how it was written
			}
		}
	}
	return s
}

// removed is a map without the field at a path.
func removed(m map[string]any, path []string) map[string]any {
	if _, ok := m[path[0]]; !ok {
		return m
	}
	out := maps.Clone(m)
	if below, ok := out[path[0]].(map[string]any); ok && len(path) > 1 {
		out[path[0]] = removed(below, path[1:])
	} else if len(path) == 1 {
		delete(out, path[0])
	}
	return out
}

// significant part of a value: without what is usual, and what is empty by then.
func significant(path string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, below := range v {
			at := k
			if path != "" {
				at = path + "." + k
			}
			if b := significant(at, below); b != nil {
				out[k] = b
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, 0, len(v))
		for _, item := range v {
			out = append(out, significant(path+"[]", item))
		}
		return out
	default:
		if u := usual()[path]; u != nil && u == value {
			return nil
		}
		return value
	}
}
