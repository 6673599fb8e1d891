// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"
)

func TestVolumeClaim(t *testing.T) {
	a := newAdmission(t, readCRD(t, "package/provider/crds/storage.capstan.dev_volumeclaims.yaml"))
	cases := map[string]struct{ reason, parameters, want string }{
		"Smallest": {reason: "A name and a size are enough.", parameters: `{database: orders-db, size: 50Gi}`},
		"Full":     {reason: "As a Database asks.", parameters: `{database: orders-db, identity: 3f2a9c1b, members: [orders-db-a], size: 50Gi}`},
		"NoSize":   {reason: "Something is wanted.", parameters: `{database: orders-db}`, want: "size: Required value"},
		"Nothing":  {reason: "A volume has a size.", parameters: `{database: orders-db, size: "0"}`, want: "must be a quantity above 0"},
		"NoName":   {reason: "Volumes of some Database are looked at.", parameters: `{size: 50Gi}`, want: "database: Required value"},
		"Twice":    {reason: "A member is named once.", parameters: `{database: orders-db, size: 50Gi, members: [a, a]}`, want: "Duplicate value"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, withParameters(t, "storage.capstan.dev/v1alpha1", "VolumeClaim", tc.parameters))
			if all := strings.Join(errs, "\n"); tc.want == "" && all != "" || !strings.Contains(all, tc.want) {
				t.Errorf("\n%s\ncreate(...): want an error with %q, got %q", tc.reason, tc.want, all)
			}
		})
	}
	o := withParameters(t, "storage.capstan.dev/v1alpha1", "VolumeClaim", `{database: orders-db, size: 50Gi}`)
	o["spec"].(map[string]any)["managementPolicies"] = []any{"*"}
	if _, errs := a.create(t, o); !strings.Contains(strings.Join(errs, "\n"), "must be Observe, Update or nothing") {
		t.Errorf("A VolumeClaim makes and deletes nothing, got %q", errs)
	}
}
