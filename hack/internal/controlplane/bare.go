// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"slices"

	"github.com/capstan-dev/capstan/hack/internal/machine"
)

// bareFlags are the components of a control plane for which no pod ever runs, with what they need beyond their usual flags. The later of two
// equal flags counts.
func bareFlags() map[string][]string {
	return map[string][]string{
		"etcd": nil,
		// All requests are counted, so that no file may be moved away meanwhile.
		"apiserver": {"--audit-log-maxsize=20000"},
		// Those that take objects away, and no others. They may send more than the usual 20 requests a second: they are not what is measured.
		"controller-manager": {
			"--controllers=garbage-collector-controller,namespace-controller,clusterrole-aggregation-controller",
			"--kube-api-qps=300", "--kube-api-burst=600", "--concurrent-gc-syncs=40", "--concurrent-namespace-syncs=20",
		},
	}
}

// PrepareBare is Prepare for a cluster without nodes: nothing makes pods, and the other components follow the API server.
func PrepareBare(c Config, others ...machine.Component) (machine.Spec, error) {
	spec, err := Prepare(c)
	if err != nil {
		return machine.Spec{}, err
	}
	flags := bareFlags()
	spec.Components = slices.DeleteFunc(spec.Components, func(m machine.Component) bool {
		_, bare := flags[m.Name]
		return !bare
	})
	for i := range spec.Components {
		m := &spec.Components[i]
		m.Args = slices.Concat(m.Args, flags[m.Name])
	}
	spec.Components = append(spec.Components, others...)
	return spec, nil
}
