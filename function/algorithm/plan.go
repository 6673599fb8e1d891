// SPDX-License-Identifier: Apache-2.0

// Package algorithm plans one Algorithm: from its spec and the objects that
// exist, what should exist and what is to be told. It is pure, and knows nothing
// of gRPC or protobuf. Start reading at the steps in this file.
package algorithm

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/compose"
)

// A step of a plan. It adds objects or words, and takes none away.
type step struct {
	name string
	do   func(*state) error
}

// composing is what an accepted spec becomes, in order.
var composing = []step{
	{"ModelVersion", modelVersion},
	{"Secrets", secrets},
	{"Model", modelSource},
	{"Revision", revision},
	{"Experiment", experiment},
	{"GatewayFeatures", gatewayFeatures},
	{"Decision", decide},
	{"ServiceAccount", serviceAccount},
	{"Config", config},
	{"ModelCache", modelCache},
	{"Revisions", revisions},
	{"Slots", slots},
	{"DisruptionBudget", disruptionBudget},
	{"Service", service},
	{"Route", route},
	{"NetworkPolicy", networkPolicy},
	{"Analysis", analysis},
	{"Monitor", monitor},
	{"Rules", rules},
	{"ModelAlias", modelAlias},
	{"Lingering", lingering},
	{"ModelsKept", modelsKept},
}

// keeping is all that happens to a spec that cannot be carried out.
var keeping = []step{
	{"Observed", observed},
	{"Rescue", rescue},
}

// telling is what people and Crossplane learn of either.
var telling = []step{
	{"Accepted", accepted},
	{"Composed", composed},
	{"Healthy", healthy},
	{"Updated", updated},
	{"Particular", particular},
	{"Status", status},
	{"Readiness", readiness},
	{"TTL", ttl},
	{"Announce", announce},
	{"Settle", settle},
}

// Plan one Algorithm. It errs only for a composite resource that has no name or
// namespace; whatever a user can write becomes a condition.
func Plan(r compose.Request) (*compose.Plan, error) {
	s, err := gather(r)
	if err != nil {
		return nil, err
	}

	doing := composing
	if len(s.problems) > 0 {
		doing = keeping
	}

	for _, steps := range [][]step{doing, telling} {
		for _, st := range steps {
			if err := st.do(s); err != nil {
				return nil, fmt.Errorf("cannot plan %s: %w", st.name, err)
			}
		}
	}

	return s.plan, nil
}
