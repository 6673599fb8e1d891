// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"
)

func TestAutoscaler(t *testing.T) {
	a := newAdmission(t, readCRD(t, "package/provider/crds/observe.capstan.dev_autoscalers.yaml"))
	cases := map[string]struct{ reason, parameters, want string }{
		"Full":    {reason: "As an Algorithm asks.", parameters: `{autoscaler: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: reco-a}, minReplicas: 2, maxReplicas: 9}}`},
		"Nothing": {reason: "Something is wanted.", parameters: `{}`, want: "autoscaler: Required value"},
		"Text":    {reason: "It is an object.", parameters: `{autoscaler: x}`, want: "must be of type object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, withParameters(t, "observe.capstan.dev/v1alpha1", "Autoscaler", tc.parameters))
			if all := strings.Join(errs, "\n"); tc.want == "" && all != "" || !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want an error with %q, got %q", tc.reason, tc.want, all)
			}
		})
	}
	o := withParameters(t, "observe.capstan.dev/v1alpha1", "Autoscaler", `{autoscaler: {maxReplicas: 9}}`)
	o["spec"].(map[string]any)["managementPolicies"] = []any{"*"}
	if _, errs := a.create(t, o); !strings.Contains(strings.Join(errs, "\n"), "must be Observe, Update or nothing") {
		t.Errorf("Kubernetes deletes what an Autoscaler keeps, got %q", errs)
	}
}
