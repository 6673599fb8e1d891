// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"errors"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A Checker asks a service something that changes nothing and that everybody who is let in may ask.
type Checker interface {
	// Backend that it asks.
	Backend() Backend

	// check that the service of a config answers.
	check(ctx context.Context, c *config) error

	// explain what the service said.
	explain(err error) *Failure
}

// Backend of the pool's clients.
func (p *Pool[C]) Backend() Backend { return p.backend }

func (p *Pool[C]) explain(err error) *Failure { return p.service.Explain(err) }

func (p *Pool[C]) check(ctx context.Context, c *config) error {
	cl, err := p.client(ctx, c)
	if err != nil {
		return err
	}
	return p.service.Ask(ctx, cl)
}

// Check whether the service that pc is about answers, as a condition. The condition is empty, and the error set, when the API
// server failed.
func Check(ctx context.Context, pc resource.ProviderConfig, all ...Checker) (xpv2.Condition, error) {
	c, err := configOf(pc)
	explain := Explain
	if err == nil {
		for _, one := range all {
			if one.Backend() == c.backend {
				explain, err = one.explain, one.check(ctx, c)
			}
		}
	}
	told, err := conclude(explain, err)
	if f := (*Failure)(nil); errors.As(err, &f) {
		err = nil
	}
	return told, err
}

func configOf(pc resource.ProviderConfig) (*config, error) {
	switch pc := pc.(type) {
	case *v1alpha1.ProviderConfig:
		return newConfig(pc)
	case *v1alpha1.ClusterProviderConfig:
		return newSharedConfig(pc)
	default:
		return nil, &Failure{Reason: v1alpha1.ReasonInvalidConfig, Message: "this is no config"}
	}
}
