// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// databaseFields are what a Database copies from its original as it is. All others are set below or left out: consumers, backups, requests
// such as a restore, replication, windows, alerts and what is reachable from outside belong to the original alone. TestFields has every
// field in one list.
var databaseFields = []string{
	"engine", "version", "plan", "resources", "pod", "podMetadata", "databases", "config", "extensions", "network", "tls", "pooler", "logs", "imagePullSecrets",
	"workloadIdentity",
}

// defaultConsumer is the consumer of a Database whose spec names none, and of a copy that no Algorithm uses.
const defaultConsumer = "app"

// database that is the copy of one with a spec. What cannot change once it exists stays as it is, also when the original changes it.
func (f *facts) database(v verdict) *compose.Manifest[map[string]any] {
	base := v.base
	p, spec := f.spec.Database, chosen(base, databaseFields)
	spec["replicas"] = int64(1)
	if p.Replicas != nil {
		spec["replicas"] = int64(*p.Replicas)
	}
	spec["storage"] = compose.Text(base, "storage")
	if p.Storage != nil {
		spec["storage"] = p.Storage.String()
	}
	if compose.List(spec, "databases") == nil {
		spec["databases"] = []any{map[string]any{"name": strings.ReplaceAll(p.Of, "-", "_")}}
	}
	if pooler, ok := spec["pooler"].(map[string]any); ok {
		pooler["replicas"] = int64(1)
		if spec["replicas"] == int64(1) {
			delete(pooler, "readOnly") // There is no standby.
		}
	}
	spec["consumers"] = f.consumers(base)
	spec["monitoring"] = map[string]any{"enabled": false}
	spec["deletionProtection"] = false
	if p.Data != v1alpha1.PreviewEmpty {
		source := f.source(base)
		if len(v.mask) > 0 {
			source["mask"] = statements(v.mask)
		}
		spec["from"] = source
	}
	if live := f.Observed[Database]; live != nil {
		was := compose.Map(live.Map(), "spec")
		for _, field := range []string{"engine", "version", "from"} {
			if v, ok := was[field]; ok {
				spec[field] = cloned(v)
			} else {
				delete(spec, field)
			}
		}
		spec["storage"] = larger(compose.Text(was, "storage"), compose.Text(spec, "storage"))
	}
	apiVersion, kind := v1alpha1.DatabaseGroupVersionKind.ToAPIVersionAndKind()
	return compose.NewManifest(apiVersion, kind, f.metadata(f.name+suffixDatabase), spec)
}

// larger of two sizes: volumes do not shrink.
func larger(a, b string) string {
	was, errA := resource.ParseQuantity(a)
	now, errB := resource.ParseQuantity(b)
	if errA == nil && (errB != nil || was.Cmp(now) > 0) {
		return a
	}
	return b
}

// source of the data: the backups of the original, which are only read. A Database that names a bucket of its own is copied by the name of
// the bucket's Secret.
func (f *facts) source(base map[string]any) map[string]any {
	p := f.spec.Database
	kind, source := "database", map[string]any{"name": p.Of}
	if secret := compose.Map(base, "backup", "to", "connectionSecretRef"); secret != nil {
		kind, source = "backup", map[string]any{"connectionSecretRef": cloned(secret), "database": p.Of}
	}
	if p.Data == v1alpha1.PreviewMoment {
		source["at"] = string(p.At)
	}
	if key := compose.Map(base, "backup", "encryption"); key != nil {
		source["encryption"] = cloned(key)
	}
	return map[string]any{kind: source}
}

// statements as decoded JSON.
func statements(mask []v1alpha1.MaskStatement) []any {
	all := make([]any, 0, len(mask))
	for _, s := range mask {
		all = append(all, map[string]any{"database": s.Database, "sql": s.SQL})
	}
	return all
}

// consumers of the copy: those whose Secrets the Algorithm of the Preview uses, with passwords of their own.
func (f *facts) consumers(base map[string]any) []any {
	all := compose.List(base, "consumers")
	if all == nil {
		all = []any{map[string]any{"name": defaultConsumer}}
	}
	used := f.usedSecrets()
	var out []any
	for _, v := range all {
		c := asMap(v)
		if name := compose.Text(c, "name"); slices.Contains(used, secretOf(f.spec.Database.Of, name)) {
			out = append(out, chosen(c, []string{"name", "database", "access"}))
		}
	}
	if len(out) == 0 {
		out = append(out, map[string]any{"name": defaultConsumer, "access": string(v1alpha1.ConsumerReadWrite)})
	}
	slices.SortFunc(out, func(a, b any) int { return cmp.Compare(compose.Text(asMap(a), "name"), compose.Text(asMap(b), "name")) })
	return out
}

// secretOf a consumer of a Database.
func secretOf(database, consumer string) string { return database + "-" + consumer }

// usedSecrets are the names of the Secrets that the Algorithm of the Preview refers to, as its original and the Preview write them.
func (f *facts) usedSecrets() []string {
	if f.spec.Algorithm == nil {
		return nil
	}
	o := f.Required[basePrefix+Algorithm]
	if o == nil {
		// Its consumers stay as they are while the original of the Algorithm is not known.
		return f.usedBefore()
	}
	spec := chosen(compose.Map(o.Map(), "spec"), algorithmFields)
	spec["env"] = overridden(compose.List(spec, "env"), f.spec.Algorithm.Env)
	var names []string
	secrets(spec, func(name string) string {
		names = append(names, name)
		return name
	})
	return names
}

// usedBefore are the Secrets of the original that stand for the consumers that the copy has.
func (f *facts) usedBefore() []string {
	live := f.Observed[Database]
	if live == nil {
		return nil
	}
	var names []string
	for _, v := range compose.List(live.Map(), "spec", "consumers") {
		names = append(names, secretOf(f.spec.Database.Of, compose.Text(asMap(v), "name")))
	}
	return names
}

// refer to the Secrets of the Preview's own Database in place of its original's.
func (f *facts) refer(spec map[string]any) {
	d := f.spec.Database
	if d == nil {
		return
	}
	own := map[string]string{}
	if o := f.Required[basePrefix+Database]; o != nil {
		for _, v := range f.consumers(compose.Map(o.Map(), "spec")) {
			name := compose.Text(asMap(v), "name")
			own[secretOf(d.Of, name)] = secretOf(f.name+suffixDatabase, name)
		}
	} else {
		for _, name := range f.usedBefore() {
			own[name] = f.name + suffixDatabase + strings.TrimPrefix(name, d.Of)
		}
	}
	secrets(spec, func(name string) string { return cmp.Or(own[name], name) })
}

// secrets that a spec refers to by their names, each replaced by what a function makes of it. References have the names that core/v1 gives
// them, and spec.secrets and spec.model are of Capstan.
func secrets(spec map[string]any, with func(name string) string) {
	replace := func(m map[string]any, key string) {
		if name := compose.Text(m, key); name != "" {
			m[key] = with(name)
		}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, below := range v {
				switch m := asMap(below); key {
				case "secretKeyRef", "secretRef":
					replace(m, "name")
				case "secret":
					replace(m, "secretName") // a volume
					replace(m, "name")       // a part of a projected volume
				}
				walk(below)
			}
		case []any:
			for _, below := range v {
				walk(below)
			}
		}
	}
	for _, v := range compose.List(spec, "secrets") {
		replace(asMap(v), "name")
	}
	replace(compose.Map(spec, "model"), "credentials")
	walk(spec)
}
