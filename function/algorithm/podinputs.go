// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/modeluri"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/definition"
	"github.com/capstan-dev/capstan/function/memo"
)

// managed fields of a spec do not reach the pods: they are about how many there are, their clients and how they are watched.
var managed = []string{
	"replicas", "scaling", "objectives", "metrics", "route", "access", "lifecycle", "rollout", "experiment", "slo", "revisionHistoryLimit",
	"availability.maxUnavailable", "model.cache",
	"model.liveAlias", "model.candidateAlias", "model.config",
}

// managedPaths are the managed fields, divided once.
var managedPaths = func() [][]string {
	paths := make([][]string, 0, len(managed))
	for _, path := range managed {
		paths = append(paths, strings.Split(path, "."))
	}
	return paths
}()

// usual values of fields mean the same as none: the defaults of the schema, so that a field that comes with a later version
// changes no revision. The number of GPUs has a default only where there is a GPU.
var usual = sync.OnceValue(func() map[string]any {
	values := theDefinition().Fields()
	values["resources.gpuCount"] = 1.0
	return values
})

// A podPart is what of a spec reaches the pods: fields of the spec as the user wrote them.
type podPart struct {
	fields map[string]any
	// revision of the fields alone.
	revision string
}

// podParts of specs that were seen, by their JSON. Most calls are about a spec that has not changed.
var podParts = memo.New[podPart](1 << 20)

// podPartOf a spec. By way of the type: fields that this version does not know, as during an upgrade, make no revision, and neither does
// another way to write the same.
func podPartOf(written *v1alpha1.AlgorithmSpec) (podPart, error) {
	raw, err := json.Marshal(written)
	if err != nil {
		return podPart{}, err
	}
	return podParts.Of(raw, func() (podPart, int, error) {
		spec, err := compose.AsMap(canonical(*written))
		if err != nil {
			return podPart{}, 0, err
		}
		for _, path := range managedPaths {
			unstructured.RemoveNestedField(spec, path...)
		}
		p := podPart{}
		p.fields, _ = definition.Significant(spec, usual()).(map[string]any)
		if p.fields == nil {
			p.fields = map[string]any{}
		}
		p.revision, err = revisionOf(p.fields)
		return p, len(raw), err
	})
}

// revisionOf what reaches the pods.
func revisionOf(inputs map[string]any) (string, error) {
	raw, err := json.Marshal(inputs)
	if err != nil {
		return "", err
	}
	return compose.Hash(raw), nil
}

// referred is what reaches the pods and a spec only refers to: the version of the model and the content of Secrets whose changes make
// revisions.
func (t target) referred() map[string]any {
	inputs := map[string]any{}
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

// name of the revision that a target is.
func (t target) name() (string, error) {
	part, err := podPartOf(t.written)
	if err != nil {
		return "", err
	}
	inputs := t.referred()
	if len(inputs) == 0 {
		return part.revision, nil
	}
	maps.Copy(inputs, part.fields)
	return revisionOf(inputs)
}

// canonical spec: one way to write what can be written in several.
func canonical(spec v1alpha1.AlgorithmSpec) v1alpha1.AlgorithmSpec {
	s := *spec.DeepCopy()
	slices.SortFunc(s.Secrets, func(a, b v1alpha1.MountedSecret) int { return strings.Compare(a.Name, b.Name) })
	if m := s.Model; m != nil {
		// The version or alias of a model of the registry is in modelVersion as the registry resolves it.
		m.URI = modeluri.Parse(m.URI).Canonical()
	}
	if r := s.Resources; r != nil {
		for _, q := range []*resource.Quantity{r.CPU, r.Memory, r.SharedMemory} {
			if q != nil {
				q.Add(resource.Quantity{}) // forgets how it was written
			}
		}
	}
	return s
}
