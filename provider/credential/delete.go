// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// Delete the Secret. It is called only when the management policies include Delete. The precondition keeps it from deleting
// another Secret that takes the place of the one that was read.
func (e *external) Delete(ctx context.Context, cr *v1alpha1.Credential) (managed.ExternalDelete, error) {
	s, err := e.secret(ctx, cr)
	if err != nil {
		if kerrors.IsNotFound(err) {
			return managed.ExternalDelete{}, nil
		}
		return managed.ExternalDelete{}, err
	}
	if !belongs(s, cr) {
		return managed.ExternalDelete{}, errStranger(s, cr)
	}
	uid, version := s.GetUID(), s.GetResourceVersion()
	err = e.kube.Delete(ctx, s, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if resource.IgnoreNotFound(err) != nil {
		return managed.ExternalDelete{}, errUnwritten("delete", s.GetName(), err)
	}
	return managed.ExternalDelete{}, nil
}
