// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// ConfigHash of names and contents. JSON sorts the names and marks where each ends.
func ConfigHash(c v1alpha1.Config) string {
	raw, _ := json.Marshal(c) //nolint:errchkjson // A map of strings always marshals.
	return compose.Hash(raw)
}

// ConfigMap of configuration files. It is immutable, so its name should have the ConfigHash.
func ConfigMap(name, namespace string, labels map[string]string, c v1alpha1.Config) *applycorev1.ConfigMapApplyConfiguration {
	data := make(map[string]string, len(c))
	for file, content := range c {
		data[file] = string(content)
	}
	return applycorev1.ConfigMap(name, namespace).WithLabels(labels).WithImmutable(true).WithData(data)
}
