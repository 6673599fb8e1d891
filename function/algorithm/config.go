// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// config files in an immutable ConfigMap named by its content. Pods of the
// revision before keep theirs until they are gone (see lingering).
func config(s *state) error {
	if s.spec.Config == nil {
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

func (s *state) configResource() string { return nameConfigPrefix + configHash(s.spec.Config) }

func (s *state) configName() string { return compose.Name(s.name, "config", configHash(s.spec.Config)) }

// configHash of names and contents. JSON sorts the names and tells where each
// ends.
func configHash(c *v1alpha1.Config) string {
	raw, _ := json.Marshal(c.Files) //nolint:errchkjson // A map of strings always marshals.
	return compose.Hash(raw)
}

// lingering objects are those that the spec no longer asks for and pods of the
// revision before may still use: a pod that is started again needs its config
// and its ServiceAccount.
func lingering(s *state) error {
	if s.rolledOut() {
		return nil
	}

	for _, resource := range slices.Sorted(maps.Keys(s.Observed)) {
		used := resource == nameServiceAccount || strings.HasPrefix(resource, nameConfigPrefix)
		if _, planned := s.plan.Objects[resource]; used && !planned {
			s.keep(resource)
		}
	}

	return nil
}

// observed objects are all kept as they are while the spec cannot be carried
// out.
func observed(s *state) error {
	for resource := range s.Observed {
		s.keep(resource)
	}

	return nil
}
