// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"slices"

	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// metadata of a copy.
func (f *facts) metadata(name string) *applymetav1.ObjectMetaApplyConfiguration {
	return applymetav1.ObjectMeta().WithName(name).WithNamespace(f.namespace).WithLabels(map[string]string{v1alpha1.LabelPreview: f.name})
}

// algorithmFields are what an Algorithm copies from its original as it is. All others are set below or left out: what is about rollouts,
// error budgets, objectives, aliases of the registry and alerts belongs to the original alone. TestFields has every field in one list.
var algorithmFields = []string{
	"image", "port", "protocol", "command", "args", "env", "config", "secrets", "model", "resources", "metrics", "probes", "access",
	"volumeMounts", "pod", "podMetadata",
}

// algorithm that is the copy of one with a spec.
func (f *facts) algorithm(base map[string]any) *compose.Manifest[map[string]any] {
	a, spec := f.spec.Algorithm, chosen(base, algorithmFields)
	replicas := int64(1)
	if a.Replicas != nil {
		replicas = int64(*a.Replicas)
	}
	spec["replicas"], spec["revisionHistoryLimit"] = replicas, int64(0)
	if a.Image != "" {
		spec["image"] = a.Image
	}
	if a.Args != nil {
		spec["args"] = a.Args
	}
	if len(a.Env) > 0 {
		spec["env"] = overridden(compose.List(spec, "env"), a.Env)
	}
	if m, ok := spec["model"].(map[string]any); ok {
		// Only one Algorithm can keep an alias.
		delete(m, "liveAlias")
		delete(m, "candidateAlias")
	}
	if m, ok := spec["metrics"].(map[string]any); ok {
		m["queries"] = slices.DeleteFunc(compose.List(m, "queries"), isCheck)
		if len(compose.List(m, "queries")) == 0 {
			delete(m, "queries")
		}
	}
	if f.spec.IdleAfter != nil {
		spec["scaling"] = map[string]any{
			"minReplicas": int64(0), "maxReplicas": replicas, "idleAfterSeconds": int64(f.spec.IdleAfter.Seconds()),
		}
	}
	if host := f.host(); host != "" {
		route := chosen(compose.Map(base, "route"), []string{"path", "timeout", "gateway"})
		route["host"] = host
		spec["route"] = route
	}
	for _, v := range compose.List(spec, "pod", "volumes") {
		// What is on a volume belongs to the original.
		if claim := compose.Map(asMap(v), "persistentVolumeClaim"); claim != nil {
			claim["readOnly"] = true
		}
	}
	f.refer(spec)
	apiVersion, kind := v1alpha1.AlgorithmGroupVersionKind.ToAPIVersionAndKind()
	return compose.NewManifest(apiVersion, kind, f.metadata(f.name).WithAnnotations(f.NoteSettings(nil)), spec)
}

// host of the Preview outside of the cluster, or empty.
func (f *facts) host() string {
	switch {
	case f.spec.Algorithm.Host != "":
		return f.spec.Algorithm.Host
	case f.Settings.Preview.Domain != "":
		// Of namespace and name together no other Preview has the hash. NAME-NAMESPACE would be the same for two of them.
		return compose.Name(f.name, compose.Hash([]byte(f.namespace+"/"+f.name))) + "." + f.Settings.Preview.Domain
	default:
		return ""
	}
}

// isCheck reports whether a query is one that an alert or a rollout would act on, or the load that only an autoscaler needs.
func isCheck(v any) bool {
	return !slices.Contains([]string{"requests", "failures", "in-flight"}, compose.Text(asMap(v), "name"))
}

// overridden variables: variables of the Preview replace others of the same name.
func overridden(env []any, by []v1alpha1.EnvVar) []any {
	out := slices.DeleteFunc(slices.Clone(env), func(v any) bool {
		return slices.ContainsFunc(by, func(e v1alpha1.EnvVar) bool { return e.Name == compose.Text(asMap(v), "name") })
	})
	for _, e := range by {
		if m, err := compose.AsMap(e); err == nil { // It was decoded from JSON.
			out = append(out, m)
		}
	}
	return out
}

// chosen fields of a spec, as a copy that may be changed.
func chosen(spec map[string]any, fields []string) map[string]any {
	out := map[string]any{}
	for _, name := range fields {
		if v, ok := spec[name]; ok {
			out[name] = cloned(v)
		}
	}
	return out
}

// cloned JSON.
func cloned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, below := range v {
			out[k] = cloned(below)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, below := range v {
			out[i] = cloned(below)
		}
		return out
	default:
		return v
	}
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}
