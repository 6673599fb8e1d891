// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

func TestApply(t *testing.T) {
	own := corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}
	for name, tc := range map[string]struct {
		reason string
		block  *v1alpha1.Scheduling
		own    []corev1.Toleration
		want   *applycorev1.PodSpecApplyConfiguration
	}{
		"Nil": {
			reason: "A kind tolerates its own taints without a block.", own: []corev1.Toleration{own},
			want: applycorev1.PodSpec().WithTolerations(applycorev1.Toleration().WithKey("nvidia.com/gpu").WithOperator(corev1.TolerationOpExists)),
		},
		"Empty": {reason: "Fields that say nothing are not applied: each would be owned.", block: &v1alpha1.Scheduling{}, want: applycorev1.PodSpec()},
		"All": {
			reason: "The tolerations of the user stand before the ones of the kind.",
			block: &v1alpha1.Scheduling{
				NodeSelector:     map[string]v1alpha1.LabelValue{"example.org/pool": "databases"},
				Tolerations:      []corev1.Toleration{{Key: "dedicated", Value: "databases", Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(30))}},
				RuntimeClassName: "kata", PriorityClassName: "databases",
			},
			own: []corev1.Toleration{own},
			want: applycorev1.PodSpec().WithNodeSelector(map[string]string{"example.org/pool": "databases"}).
				WithRuntimeClassName("kata").WithPriorityClassName("databases").
				WithTolerations(
					applycorev1.Toleration().WithKey("dedicated").WithValue("databases").WithEffect(corev1.TaintEffectNoExecute).WithTolerationSeconds(30),
					applycorev1.Toleration().WithKey("nvidia.com/gpu").WithOperator(corev1.TolerationOpExists)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := applycorev1.PodSpec()
			Apply(got, tc.block, tc.own...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIsEmpty(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		block  *v1alpha1.Scheduling
		want   bool
	}{
		"Nil":      {reason: "Absent.", want: true},
		"Lists":    {reason: "Empty lists restrict nothing.", block: &v1alpha1.Scheduling{NodeSelector: map[string]v1alpha1.LabelValue{}, Tolerations: []corev1.Toleration{}}, want: true},
		"Selector": {reason: "It restricts.", block: &v1alpha1.Scheduling{NodeSelector: map[string]v1alpha1.LabelValue{"a": ""}}},
		"Taint":    {reason: "It admits.", block: &v1alpha1.Scheduling{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}},
		"Runtime":  {reason: "It restricts.", block: &v1alpha1.Scheduling{RuntimeClassName: "kata"}},
		"Priority": {reason: "It ranks.", block: &v1alpha1.Scheduling{PriorityClassName: "high"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsEmpty(tc.block); got != tc.want {
				t.Errorf("IsEmpty: %v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// TestChecks of blocks that the schema accepts.
func TestChecks(t *testing.T) {
	at := field.NewPath("spec", "pod")
	long := strings.Repeat("a", 254)
	for name, tc := range map[string]struct {
		reason string
		errs   field.ErrorList
		want   []string
	}{
		"NilBlock":    {reason: "Absent.", errs: Check(at, nil)},
		"NilMetadata": {reason: "Absent.", errs: CheckMetadata(at, nil)},
		"Good": {reason: "Lists are lists of Kubernetes.", errs: Check(at, &v1alpha1.Scheduling{
			NodeSelector: map[string]v1alpha1.LabelValue{"example.org/pool": "databases"},
			Tolerations:  []corev1.Toleration{{Key: "example.org/pool", Operator: corev1.TolerationOpEqual, Value: "databases"}, {Operator: corev1.TolerationOpExists}},
		})},
		"SelectorPrefix": {
			reason: "A prefix has 253 characters at most.", want: []string{"spec.pod.nodeSelector"},
			errs: Check(at, &v1alpha1.Scheduling{NodeSelector: map[string]v1alpha1.LabelValue{long + "/pool": "a"}}),
		},
		"Toleration": {
			reason: "The schema admits more operators, and leaves key and value open.",
			want:   []string{"spec.pod.tolerations[0].operator", "spec.pod.tolerations[0].key", "spec.pod.tolerations[0].value"},
			errs:   Check(at, &v1alpha1.Scheduling{Tolerations: []corev1.Toleration{{Key: "a b", Operator: "Lt", Value: "a b"}}}),
		},
		"Metadata": {reason: "Sound keys of both.", errs: CheckMetadata(at, &v1alpha1.PodMetadata{
			Labels: map[string]v1alpha1.LabelValue{"example.org/team": "orders"}, Annotations: map[string]v1alpha1.AnnotationValue{"example.org/contact": "Orders Team"},
		})},
		"MetadataPrefix": {reason: "As for selectors.", want: []string{"spec.pod.labels", "spec.pod.annotations"}, errs: CheckMetadata(at, &v1alpha1.PodMetadata{
			Labels: map[string]v1alpha1.LabelValue{long + "/team": "a"}, Annotations: map[string]v1alpha1.AnnotationValue{long + "/team": "a"},
		})},
		"AnnotationsSize": {reason: "All together have 256 KiB at most.", want: []string{"spec.pod.annotations"}, errs: CheckMetadata(at, &v1alpha1.PodMetadata{
			Annotations: map[string]v1alpha1.AnnotationValue{"a": v1alpha1.AnnotationValue(strings.Repeat("a", 256<<10))},
		})},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, fields(tc.errs)); diff != "" {
				t.Errorf("%s -want, +got:\n%s\n%v", tc.reason, diff, tc.errs.ToAggregate())
			}
		})
	}
}

func TestAllowed(t *testing.T) {
	lists := Lists{
		Setting: "database.allowed", Namespace: "orders",
		PriorityClasses: []inputv1alpha1.Allowed{{Name: "databases"}},
		Tolerations:     []inputv1alpha1.Allowed{{Name: "dedicated"}},
	}
	at := field.NewPath("spec", "pod")
	for name, tc := range map[string]struct {
		reason string
		lists  Lists
		block  *v1alpha1.Scheduling
		want   []string
	}{
		"Nil":   {reason: "Nothing is named.", lists: lists},
		"Named": {reason: "Both lists have it.", lists: lists, block: &v1alpha1.Scheduling{PriorityClassName: "databases", Tolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}}},
		"Other": {
			reason: "Neither list has it.", lists: lists, want: []string{"spec.pod.priorityClassName", "spec.pod.tolerations[1]"},
			block: &v1alpha1.Scheduling{PriorityClassName: "system-node-critical", Tolerations: []corev1.Toleration{
				{Key: "dedicated", Operator: corev1.TolerationOpExists}, {Key: "control-plane", Operator: corev1.TolerationOpExists},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			errs := tc.lists.Allowed(at, tc.block)
			if diff := cmp.Diff(tc.want, fields(errs)); diff != "" {
				t.Errorf("%s -want, +got:\n%s\n%v", tc.reason, diff, errs.ToAggregate())
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	m := &v1alpha1.PodMetadata{
		Labels: map[string]v1alpha1.LabelValue{"a": "b"}, Annotations: map[string]v1alpha1.AnnotationValue{"c": "d"},
	}
	if diff := cmp.Diff(map[string]string{"a": "b"}, Labels(m)); diff != "" {
		t.Errorf("Labels: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"c": "d"}, Annotations(m)); diff != "" {
		t.Errorf("Annotations: -want, +got:\n%s", diff)
	}
	if Labels(nil) == nil || Annotations(nil) == nil {
		t.Error("Labels and Annotations of nothing: nil, want maps that can be written to")
	}
	Labels(m)["a"] = "changed"
	if m.Labels["a"] != "b" {
		t.Error("Labels: the map is the spec's own, want a copy")
	}
}

func fields(errs field.ErrorList) []string {
	var at []string
	for _, err := range errs {
		at = append(at, err.Field)
	}
	return at
}
