// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Retry is how long to wait after failures of mg by its config, nil when the config does not say. What is wrong with a config is
// for the reconcile itself to report.
func Retry(ctx context.Context, kube client.Client, mg resource.Managed) (*v1alpha1.Retry, error) {
	named, ok := mg.(resource.ModernManaged)
	if !ok || named.GetProviderConfigReference() == nil {
		return nil, nil //nolint:nilnil // No retry is the usual one.
	}
	c, err := (&Resolver{kube: kube}).config(ctx, *named.GetProviderConfigReference(), mg.GetNamespace())
	if f := (*Failure)(nil); errors.As(err, &f) {
		return nil, nil //nolint:nilnil // As above.
	}
	if err != nil {
		return nil, err
	}
	return c.retry, nil
}
