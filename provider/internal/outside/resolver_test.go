// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

type refusing struct{ err error }

func (r refusing) Track(context.Context, resource.ModernManaged) error { return r.err }

// TestTrackInALeavingNamespace deletes what is in a namespace that goes, although no usage can be recorded there any more: the
// namespace would else never go.
func TestTrackInALeavingNamespace(t *testing.T) {
	gr := schema.GroupResource{Group: "capstan.dev", Resource: "providerconfigusages"}
	leaving := kerrors.NewForbidden(gr, "u", errors.New("the namespace is being terminated"))
	leaving.ErrStatus.Details.Causes = append(leaving.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	cases := map[string]struct {
		reason  string
		err     error
		deleted bool
		// passes reports whether the config is looked for after that.
		passes bool
	}{
		"Deleted":   {"what goes needs no usage", leaving, true, true},
		"Alive":     {"what stays does", leaving, false, false},
		"Forbidden": {"another refusal is one", kerrors.NewForbidden(gr, "u", errors.New("no right")), true, false},
		"Recorded":  {"and usually it is recorded", nil, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			mg := &registryv1alpha1.ModelAlias{}
			mg.SetNamespace("shop")
			mg.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: KindClusterProviderConfig, Name: "mlflow"}
			if tc.deleted {
				mg.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
			}
			r := &Resolver{kube: fake.NewClientBuilder().WithScheme(scheme).Build(), track: refusing{tc.err}}
			_, err := r.resolve(t.Context(), mg, MLflow)
			f := (*Failure)(nil)
			if got := errors.As(err, &f) && f.Reason == v1alpha1.ReasonConfigNotFound; got != tc.passes {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}
