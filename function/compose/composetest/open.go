// SPDX-License-Identifier: Apache-2.0

package composetest

import "github.com/capstan-dev/capstan/function/compose"

// Open to a namespace are the ports that a NetworkPolicy lets its pods reach.
func Open(policy compose.Object, namespace string) []any {
	var ports []any
	for _, r := range compose.List(policy.Map(), "spec", "ingress") {
		rule, _ := r.(map[string]any)
		for _, p := range compose.List(rule, "from") {
			peer, _ := p.(map[string]any)
			if compose.Text(peer, "namespaceSelector", "matchLabels", "kubernetes.io/metadata.name") != namespace {
				continue
			}
			for _, o := range compose.List(rule, "ports") {
				port, _ := o.(map[string]any)
				ports = append(ports, port["port"])
			}
		}
	}
	return ports
}
