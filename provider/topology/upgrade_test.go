// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// upgrading is the pod of a member that tells how far it is, as it is cached.
func upgrading(t *testing.T, name, said string) corev1.Pod {
	t.Helper()
	o, err := twice(slimPod, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name + "-0", Labels: map[string]string{v1alpha1.LabelMember: name},
		Annotations: map[string]string{members.AnnotationUpgrade: said},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return *o.(*corev1.Pod)
}

func TestUpgrade(t *testing.T) {
	ready := &v1alpha1.UpgradeReport{ID: "upgrade-15-17", Phase: "Ready", GapSeconds: 6}
	long := strings.Repeat("x", 2*maxFindings)
	for name, tc := range map[string]struct {
		reason string
		was    *v1alpha1.UpgradeReport
		said   []string
		want   *v1alpha1.UpgradeReport
	}{
		"None":     {"Most never upgrade.", nil, []string{"", ""}, nil},
		"Ready":    {"What one of the members says.", nil, []string{"", `{"id":"upgrade-15-17","phase":"Ready","gapSeconds":6,"checked":"2026-11-22T16:00:00Z"}`}, ready},
		"Gone":     {"While there is no pod, what it said last.", ready, []string{""}, ready},
		"Nonsense": {"Who may annotate a pod could write anything.", ready, []string{`[]`}, ready},
		"Incompatible": {
			"What is measured again in each try is left out.", nil,
			[]string{`{"id":"u","phase":"Incompatible","findings":"a\nb","gapSeconds":6,"checked":"2026-11-22T16:00:00Z"}`},
			&v1alpha1.UpgradeReport{ID: "u", Phase: "Incompatible", Findings: "a b"},
		},
		"Long": {
			"It is bounded.", nil,
			[]string{`{"id":"u","phase":"Failed","message":"` + long + `","gapSeconds":-1}`},
			&v1alpha1.UpgradeReport{ID: "u", Phase: "Failed", Message: strings.Repeat("x", maxMessage-3) + "…"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := &view{was: v1alpha1.TopologyObservation{Upgrade: tc.was}}
			for i, said := range tc.said {
				v.pods = append(v.pods, upgrading(t, string(rune('a'+i)), said))
			}
			if diff := cmp.Diff(tc.want, v.upgrade()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUpgradeQuiet: a try that comes to the same wakes nobody.
func TestUpgradeQuiet(t *testing.T) {
	said := func(checked, gap string) *corev1.Pod {
		p := upgrading(t, "a", `{"id":"u","phase":"Incompatible","findings":"a view","checked":"`+checked+`","gapSeconds":`+gap+`}`)
		return &p
	}
	if differ(said("2026-11-22T16:00:00Z", "6"), said("2026-11-22T16:01:00Z", "7")) {
		t.Error("a try that comes to the same is told")
	}
	done := upgrading(t, "a", `{"id":"u","phase":"Ready"}`)
	if !differ(said("2026-11-22T16:00:00Z", "6"), &done) {
		t.Error("a phase is not told")
	}
}
