// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	configuration "github.com/crossplane/upjet/v2/apis/configuration/v1alpha1"
)

// RetryPolicy is how long to wait after failures of mg, as its config says, or
// nil. It is a source for upjet's reconciliation policies.
func RetryPolicy(ctx context.Context, kube client.Client, mg resource.Managed) (*configuration.ReconciliationPolicy, error) {
	named, ok := mg.(resource.ModernManaged)
	if !ok || named.GetProviderConfigReference() == nil {
		return nil, nil //nolint:nilnil // No policy is what the runtime takes nil for.
	}

	r := &Resolver{kube: kube}

	c, err := r.config(ctx, *named.GetProviderConfigReference(), mg.GetNamespace())
	if f := (*Failure)(nil); errors.As(err, &f) {
		return nil, nil //nolint:nilnil // The reconcile itself tells what is wrong with the config.
	}

	if err != nil || c.retry == nil {
		return nil, err
	}

	return &configuration.ReconciliationPolicy{
		ExponentialFailureRateLimiter: &configuration.ExponentialFailureRateLimiter{
			BaseDelay: c.retry.BaseDelay,
			MaxDelay:  c.retry.MaxDelay,
		},
	}, nil
}
