// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// An annotator keeps the condition Connected that Create has set. The runtime stores annotations after Create, and the object in
// the API server's answer has the status from before.
type annotator struct {
	managed.CriticalAnnotationUpdater
}

// UpdateCriticalAnnotations of o, and nothing else.
func (a *annotator) UpdateCriticalAnnotations(ctx context.Context, o client.Object) error {
	mg, ok := o.(resource.Managed)
	if !ok {
		return a.CriticalAnnotationUpdater.UpdateCriticalAnnotations(ctx, o)
	}
	told := mg.GetCondition(v1alpha1.TypeConnected)
	err := a.CriticalAnnotationUpdater.UpdateCriticalAnnotations(ctx, o)
	if told.Reason != "" {
		mg.SetConditions(told)
	}
	return err
}
