// SPDX-License-Identifier: Apache-2.0

package database

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// ofPreview makes a Preview the controller of the Database of a world, as Crossplane does for what it composes.
func ofPreview(w *world) *world {
	compose.Map(w.request.Composite.Map(), "metadata")["ownerReferences"] = []any{
		map[string]any{"apiVersion": "capstan.dev/v1alpha1", "kind": "Preview", "name": "pr-1", "controller": true},
	}
	return w
}

// TestPreviewLeavesNothing: volumes and Secrets of a Preview's Database are marked, and go with it. Of any other they stay.
func TestPreviewLeavesNothing(t *testing.T) {
	type kept struct {
		WhenDeleted, WhenScaled, VolumeLabel, SecretLabel string
		Deletes, Authority                                bool
	}
	cases := map[string]struct {
		reason string
		of     func(*world) *world
		want   kept
	}{
		"Preview":  {"What a Preview made goes with it, and nothing when members stop.", ofPreview, kept{"Delete", "Retain", "pr-1", "pr-1", true, true}},
		"Ordinary": {"Data outlives a Database.", func(w *world) *world { return w }, kept{WhenDeleted: "Retain", WhenScaled: "Retain"}},
		"Labelled": {"A label that anybody can set changes nothing.", func(w *world) *world {
			compose.Map(w.request.Composite.Map(), "metadata")["labels"] = map[string]any{v1alpha1.LabelPreview: "pr-1"}
			return w
		}, kept{WhenDeleted: "Retain", WhenScaled: "Retain"}},
		"OfAnother": {"Nor does another owner.", func(w *world) *world {
			m := compose.Map(ofPreview(w).request.Composite.Map(), "metadata")
			m["ownerReferences"].([]any)[0].(map[string]any)["apiVersion"] = "example.org/v1"
			return w
		}, kept{WhenDeleted: "Retain", WhenScaled: "Retain"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := tc.of(newWorld(t, `{engine: postgres, version: "17", replicas: 1, storage: 10Gi}`))
			for range 6 {
				w.pass()
			}
			set, secret := w.request.Observed[names.MemberPrefix+"a"], w.request.Observed[names.AccessCredential]
			if set == nil || secret == nil {
				t.Fatal("want a member and a Credential")
			}
			claims := compose.List(set.Map(), "spec", "volumeClaimTemplates")
			got := kept{
				WhenDeleted: compose.TextOf(set, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"),
				WhenScaled:  compose.TextOf(set, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled"),
				VolumeLabel: compose.Text(claims[0].(map[string]any), "metadata", "labels", v1alpha1.LabelPreview),
				SecretLabel: compose.TextOf(secret, "metadata", "labels", v1alpha1.LabelPreview),
				Deletes:     slices.Contains(compose.List(secret.Map(), "spec", "managementPolicies"), any("Delete")),
				Authority:   slices.Contains(compose.List(w.request.Observed[names.Topology].Map(), "spec", "forProvider", "removeSecrets"), any("orders-db-ca")),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPreviewTakesNoVolumes of an earlier Database of its name: it would use that data, and delete it.
func TestPreviewTakesNoVolumes(t *testing.T) {
	w := ofPreview(newWorld(t, `{engine: postgres, version: "17", replicas: 1, storage: 10Gi}`))
	w.volumes = []string{"orders-db-a"}
	for range 6 {
		w.pass()
	}
	if w.request.Observed[names.MemberPrefix+"a"] != nil {
		t.Error("there should be no member")
	}
	c := compose.Condition(w.request.Composite.Map(), string(v1alpha1.TypeAvailable))
	if c["reason"] != string(v1alpha1.ReasonVolumesExist) || !strings.Contains(compose.Text(c, "message"), "orders-db-a") {
		t.Errorf("want the volumes named, got %v", c)
	}
	w.volumes = nil
	for range 6 {
		w.pass()
	}
	if w.request.Observed[names.MemberPrefix+"a"] == nil {
		t.Error("want a member once they are gone")
	}
}
