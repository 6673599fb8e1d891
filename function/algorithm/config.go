// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"strings"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// config files in an immutable ConfigMap named by its content. Pods of the
// revision before keep theirs until they are gone (see lingering).
func config(s *state) error {
	if !s.hasFiles() {
		return nil
	}

	data := make(map[string]string, len(s.spec.Config.Files))
	for name, content := range s.spec.Config.Files {
		data[name] = string(content)
	}

	s.ask(s.configResource(), applycorev1.ConfigMap(s.configName(), s.namespace).
		WithLabels(s.labels()).
		WithImmutable(true).
		WithData(data))

	return nil
}

// hasFiles tells whether the spec has config files. Its variables reach the pods
// without a ConfigMap.
func (s *state) hasFiles() bool { return s.spec.Config != nil && len(s.spec.Config.Files) > 0 }

func (s *state) configResource() string { return nameConfigPrefix + configHash(s.spec.Config) }

func (s *state) configName() string { return compose.Name(s.name, "config", configHash(s.spec.Config)) }

// configHash of names and contents. JSON sorts the names and tells where each
// ends.
func configHash(c *v1alpha1.Config) string {
	raw, _ := json.Marshal(c.Files) //nolint:errchkjson // A map of strings always marshals.
	return compose.Hash(raw)
}

// lingering objects are those that the spec no longer asks for and revisions that
// are kept still use: a pod that is started again needs its config, its
// ServiceAccount and its cache.
func lingering(s *state) error {
	used := map[string]bool{}

	for _, hash := range append([]string{s.decision.live.revision, s.decision.beside.revision}, s.history...) {
		if r, ok := s.record(hash); ok {
			uses(r.Template, used)
		}
	}

	for resource, o := range s.Observed {
		lingers := resource == nameServiceAccount || resource == nameModelCache || strings.HasPrefix(resource, nameConfigPrefix)
		key := compose.Text(o.Map(), "kind") + "/" + compose.Text(o.Map(), "metadata", "name")

		if _, planned := s.plan.Objects[resource]; lingers && !planned && used[key] {
			s.keep(resource)
		}
	}

	return nil
}

// uses adds the objects that a pod template names, as kind/name.
func uses(template map[string]any, into map[string]bool) {
	spec := compose.Map(template, "spec")
	into["ServiceAccount/"+compose.Text(spec, "serviceAccountName")] = true

	for _, v := range compose.List(spec, "volumes") {
		volume, _ := v.(map[string]any)
		into["ConfigMap/"+compose.Text(volume, "configMap", "name")] = true
		into["PersistentVolumeClaim/"+compose.Text(volume, "persistentVolumeClaim", "claimName")] = true
	}
}

// observed objects are all kept as they are while the spec cannot be carried
// out.
func observed(s *state) error {
	for resource := range s.Observed {
		s.keep(resource)
	}

	return nil
}
