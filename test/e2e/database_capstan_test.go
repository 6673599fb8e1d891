// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A renderedMember is what would change if a member were updated.
type renderedMember struct {
	Generation int64
	Grace      int64
	Pod        types.UID
	Restarts   int32
}

func renderedMembers(t *testing.T, d *v1alpha1.Database) map[string]renderedMember {
	t.Helper()
	sets := &appsv1.StatefulSetList{}
	if err := kube.List(t.Context(), sets, client.InNamespace(d.Namespace), client.MatchingLabels{observev1alpha1.LabelDatabase: d.Name}); err != nil {
		t.Fatalf("cannot list the StatefulSets: %v", err)
	}
	pods := members(t.Context(), t, d)
	out := map[string]renderedMember{}
	for _, s := range sets.Items {
		m := renderedMember{Generation: s.Generation, Grace: *s.Spec.Template.Spec.TerminationGracePeriodSeconds, Pod: pods[s.Name].UID}
		for _, c := range pods[s.Name].Status.ContainerStatuses {
			m.Restarts += c.RestartCount
		}
		out[s.Name] = m
	}

	return out
}

// outlivesCapstan: a version of Capstan that renders members differently changes none of them, not even during an
// unrelated edit.
func outlivesCapstan(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	before := renderedMembers(t, d)
	if len(before) != int(d.Spec.Replicas) {
		t.Fatalf("there are %d StatefulSets, want %d", len(before), d.Spec.Replicas)
	}
	t.Cleanup(func() { upgradeFunction(t, os.Getenv("CAPSTAN_VERSION")) })
	upgradeFunction(t, os.Getenv("CAPSTAN_NEXT_VERSION"))

	edited := d.DeepCopy()
	edited.Spec.Config = map[string]v1alpha1.ParameterValue{"work_mem": "6MB"}
	if err := apply(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	api := psql(t, d, "api")
	defer api.end(t)
	eventually(t, "the new version has carried out an edit", func(ctx context.Context) error {
		got, err := get(ctx, &v1alpha1.Database{}, d.Namespace, d.Name)
		if err != nil {
			return err
		}
		if c := got.Status.GetCondition(xpv2.TypeSynced); c.Status != corev1.ConditionTrue || c.ObservedGeneration != got.Generation {
			return fmt.Errorf("condition Synced is %s for generation %d of %d", c.Status, c.ObservedGeneration, got.Generation)
		}
		out, err := api.run(t, "show work_mem")
		if err == nil && strings.TrimSpace(out) != "6MB" {
			return fmt.Errorf("work_mem is %s", out)
		}

		return err
	})
	if diff := cmp.Diff(before, renderedMembers(t, d)); diff != "" {
		t.Errorf("a new version of Capstan must touch no member: -before, +after:\n%s", diff)
	}
}
