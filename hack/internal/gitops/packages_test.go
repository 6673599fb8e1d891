// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHealthOfPackages checks what Crossplane says of a package, above all while it is being installed.
func TestHealthOfPackages(t *testing.T) {
	conditions := func(conditions ...string) string {
		return "status: {conditions: [" + strings.Join(conditions, ", ") + "]}\n"
	}
	const installed = `{type: Installed, status: "True", reason: ActivePackageRevision}`
	unhealthy := func(message string) string {
		return fmt.Sprintf(`{type: Healthy, status: "False", reason: UnhealthyPackageRevision, message: %q}`, message)
	}
	cases := map[string]struct{ reason, status, want, message string }{
		"New":     {"Crossplane has not seen it.", "", "Progressing", "waits for Crossplane"},
		"Unpacks": {"One condition is there before the other.", conditions(installed), "Progressing", "waits for Crossplane"},
		"Starts": {
			"Crossplane calls what starts unhealthy.",
			conditions(installed, unhealthy(`Package runtime health is "False" with message: Package revision is not healthy yet`)),
			"Progressing", "is not healthy yet",
		},
		"Healthy": {"It is there.", conditions(installed, `{type: Healthy, status: "True", reason: HealthyPackageRevision}`), "Healthy", ""},
		"Inactive": {
			"Somebody turned it off.",
			conditions(`{type: Installed, status: "False", reason: InactivePackageRevision, message: switched off}`, `{type: Healthy, status: "True"}`),
			"Progressing", "switched off",
		},
		"CrossplaneTooOld": {
			"It waits for a person, and the message names the version.",
			conditions(installed, unhealthy(`Package revision health is "False" with message: incompatible Crossplane version: package is not compatible with Crossplane version (v2.3.1)`)),
			"Degraded", "package is not compatible with Crossplane version (v2.3.1)",
		},
		"Dependency": {
			"It waits for a person.",
			conditions(installed, unhealthy(`cannot resolve package dependencies: incompatible dependencies: [function]`)),
			"Degraded", "incompatible dependencies",
		},
	}
	for _, kind := range []string{"Configuration", "Function", "Provider"} {
		for name, tc := range cases {
			t.Run(kind+name, func(t *testing.T) {
				o := object(t, "apiVersion: pkg.crossplane.io/v1\nkind: "+kind+"\nmetadata: {name: a}\n"+tc.status)
				open := data(t)["resource.customizations.useOpenLibs.pkg.crossplane.io_"+kind] == "true"
				got := argo(t, scripts(t)["pkg.crossplane.io_"+kind], open, o)
				if got.Status != tc.want || !strings.Contains(got.Message, tc.message) {
					t.Errorf("%s\nArgo CD: want %s with %q, got %+v", tc.reason, tc.want, tc.message, got)
				}
				if got := flux(t, kustomization(t, kind), o); got != asFlux[tc.want] {
					t.Errorf("%s\nFlux: want %s, got %s", tc.reason, asFlux[tc.want], got)
				}
			})
		}
	}
}

// TestHealthOfManaged checks the managed resources that people write.
func TestHealthOfManaged(t *testing.T) {
	with := func(conditions ...string) string {
		return status("Bucket", "", conditions...)
	}
	cases := map[string]struct{ reason, object, want, message string }{
		"New":     {"The provider has not seen it.", "{metadata: {name: a}}", "Progressing", "waits for the provider"},
		"Creates": {"It is being made.", with(synced, "Ready=False/Creating: soon"), "Progressing", "soon"},
		"Ready":   {"It is there.", with(synced, ready), "Healthy", ""},
		"Fails":   {"The server refuses it.", with("Synced=False/ReconcileError: forbidden", ready), "Degraded", "forbidden"},
		"Paused":  {"A person has paused it.", with("Synced=False/ReconcilePaused: paused", ready), "Suspended", "paused"},
		"Edited":  {"The status is of the spec before.", strings.ReplaceAll(with(synced, ready), "observedGeneration: 3", "observedGeneration: 2"), "Progressing", "latest spec"},
		"Deleted": {"It is on its way out.", "{metadata: {name: a, deletionTimestamp: now}}", "Progressing", "deleted"},
	}
	for kind, script := range scripts(t) {
		if !strings.Contains(kind, ".capstan.dev_") {
			continue
		}
		for name, tc := range cases {
			t.Run(kind+name, func(t *testing.T) {
				if got := argo(t, script, false, object(t, tc.object)); got.Status != tc.want || !strings.Contains(got.Message, tc.message) {
					t.Errorf("%s\nwant %s with %q, got %+v", tc.reason, tc.want, tc.message, got)
				}
			})
		}
	}
}

// TestHealthChecksComplete shows that every kind that people write has a check.
func TestHealthChecksComplete(t *testing.T) {
	want := []string{
		"capstan.dev_Algorithm", "capstan.dev_Database", "capstan.dev_Experiment", "capstan.dev_Pipeline", "capstan.dev_Training", "credentials.capstan.dev_Credential",
		"pkg.crossplane.io_Configuration", "pkg.crossplane.io_Function", "pkg.crossplane.io_Provider",
		"registry.capstan.dev_ModelAlias", "registry.capstan.dev_ModelVersion", "registry.capstan.dev_RegisteredModel",
		"storage.capstan.dev_Bucket",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(scripts(t)))); diff != "" {
		t.Errorf("kinds with a health check: -want, +got:\n%s", diff)
	}
}
