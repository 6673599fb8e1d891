// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"testing"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

func TestReady(t *testing.T) {
	deployment := func(replicas any, available float64) composetest.Object {
		return composetest.Object{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"spec":   map[string]any{"replicas": replicas},
			"status": map[string]any{"availableReplicas": available},
		}
	}
	cases := map[string]struct {
		reason string
		object compose.Object
		want   bool
	}{
		"NotObserved":        {"what does not exist does nothing", nil, false},
		"NoCheck":            {"a Service is ready as soon as it exists", composetest.Object{"apiVersion": "v1", "kind": "Service"}, true},
		"OtherGroup":         {"a kind of another group is another kind", composetest.Object{"apiVersion": "example.org/v1", "kind": "Deployment"}, true},
		"DeploymentServes":   {"as many serve as are asked for", deployment(2.0, 2), true},
		"DeploymentShort":    {"one is missing", deployment(2.0, 1), false},
		"DeploymentStopped":  {"none are asked for", deployment(0.0, 0), true},
		"DeploymentDefault":  {"a size that is not there is one", deployment(nil, 0), false},
		"DeploymentNoStatus": {"its controller has not seen it", composetest.Object{"apiVersion": "apps/v1", "kind": "Deployment"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := compose.Ready(tc.object); got != tc.want {
				t.Errorf("%s\nReady: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
