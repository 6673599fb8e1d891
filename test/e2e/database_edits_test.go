// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A badEdit of a Database, with what the condition Accepted then says.
type badEdit struct {
	name   string
	modify func(*v1alpha1.Database)
	reason xpv2.ConditionReason
	texts  []string
}

// badEdits of each engine.
var badEdits = map[v1alpha1.Engine][]badEdit{
	v1alpha1.EnginePostgres: {
		{"UnknownVersion", func(d *v1alpha1.Database) { d.Spec.Version = "99" }, v1alpha1.ReasonVersionUnavailable, []string{"99", "17"}},
		{"UnknownParameter", func(d *v1alpha1.Database) {
			d.Spec.Config = map[string]v1alpha1.ParameterValue{"archive_command": "rm -rf /"}
		}, v1alpha1.ReasonInvalidSpec, []string{"archive_command"}},
		{"UnknownExtension", func(d *v1alpha1.Database) { d.Spec.Extensions = []string{"nonesuch"} }, v1alpha1.ReasonExtensionUnavailable, []string{"nonesuch"}},
	},
	v1alpha1.EngineMySQL: {
		{"UnknownVersion", func(d *v1alpha1.Database) { d.Spec.Version = "8.0" }, v1alpha1.ReasonVersionUnavailable, []string{"8.0", "9.7"}},
		{"UnknownParameter", func(d *v1alpha1.Database) {
			d.Spec.Config = map[string]v1alpha1.ParameterValue{"group_replication_group_name": "mine"}
		}, v1alpha1.ReasonInvalidSpec, []string{"group_replication_group_name"}},
		{"Extensions", func(d *v1alpha1.Database) { d.Spec.Extensions = []string{"pg_trgm"} }, v1alpha1.ReasonUnsupportedByEngine, []string{"spec.extensions"}},
	},
}

// refused edits, by the API server.
var refused = map[string]func(*v1alpha1.Database){
	"Smaller":  func(d *v1alpha1.Database) { d.Spec.Storage = resource.MustParse("1Gi") },
	"Reserved": func(d *v1alpha1.Database) { d.Spec.Consumers = []v1alpha1.Consumer{{Name: "postgres"}} },
	"Engine": func(d *v1alpha1.Database) {
		d.Spec.Engine = map[v1alpha1.Engine]v1alpha1.Engine{
			v1alpha1.EnginePostgres: v1alpha1.EngineMySQL, v1alpha1.EngineMySQL: v1alpha1.EnginePostgres,
		}[d.Spec.Engine]
	},
}

// badEditTouchesNothing: an invalid edit, and one to what the engine does not have, is reported with a remedy, and no pod changes.
func badEditTouchesNothing(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	before := statefulSets(t, d)
	for _, tc := range badEdits[d.Spec.Engine] {
		t.Run(tc.name, func(t *testing.T) {
			edit := d.DeepCopy()
			tc.modify(edit)
			if err := apply(t.Context(), edit); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the condition reports it", databaseCondition(edit, v1alpha1.TypeAccepted, corev1.ConditionFalse, tc.reason, tc.texts...))
			if err := running(d)(t.Context()); err != nil {
				t.Errorf("the database does not run any more: %v", err)
			}
		})
	}
	for name, modify := range refused {
		edit := d.DeepCopy()
		modify(edit)
		if err := apply(t.Context(), edit); !apierrors.IsInvalid(err) {
			t.Errorf("%s: an edit that must be refused gave %v", name, err)
		}
	}
	if err := apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the good spec is accepted again", databaseCondition(d, v1alpha1.TypeAccepted, corev1.ConditionTrue, v1alpha1.ReasonValid))
	after := statefulSets(t, d)
	for name, generation := range before {
		if after[name] != generation {
			t.Errorf("StatefulSet %s changed from generation %d to %d", name, generation, after[name])
		}
	}
}
