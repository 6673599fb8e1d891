// SPDX-License-Identifier: Apache-2.0

package quiet

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestStatusUpdate(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*corev1.Pod)
		writes int
		failed func(error) bool
	}{
		"Unchanged": {
			reason: "What the API server has already is not written.",
			change: func(*corev1.Pod) {},
		},
		"UnchangedButForm": {
			reason: "Managed fields, the type and empty lists are no change.",
			change: func(p *corev1.Pod) {
				p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
				p.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
				p.Status.Conditions = []corev1.PodCondition{}
			},
		},
		"Changed": {
			reason: "A change of status is written.",
			change: func(p *corev1.Pod) { p.Status.Message = "changed" },
			writes: 1,
		},
		"OtherVersion": {
			reason: "An object that is not of the known version is left to the API server, which tells of the conflict.",
			change: func(p *corev1.Pod) { p.ResourceVersion = "1" },
			writes: 1,
			failed: kerrors.IsConflict,
		},
		"Unknown": {
			reason: "An object that cannot be read is left to the API server.",
			change: func(p *corev1.Pod) { p.Name = "other" },
			writes: 1,
			failed: kerrors.IsNotFound,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			writes := 0
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reco"}}
			kube := Wrap(fake.NewClientBuilder().
				WithScheme(scheme.Scheme).
				WithObjects(pod).
				WithStatusSubresource(&corev1.Pod{}).
				WithInterceptorFuncs(interceptor.Funcs{SubResourceUpdate: func(
					ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
				) error {
					writes++
					return c.SubResource(sub).Update(ctx, o, opts...)
				}}).
				Build())
			p := &corev1.Pod{}
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(pod), p); err != nil {
				t.Fatal(err)
			}
			tc.change(p)
			err := kube.Status().Update(t.Context(), p)
			if tc.failed == nil && err != nil || tc.failed != nil && !tc.failed(err) {
				t.Errorf("\n%s\nUpdate(...): unexpected error: %v", tc.reason, err)
			}
			if writes != tc.writes {
				t.Errorf("\n%s\nUpdate(...): want %d writes, got %d", tc.reason, tc.writes, writes)
			}
		})
	}
}
