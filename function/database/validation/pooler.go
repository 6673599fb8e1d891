// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/pooler"
)

func checkPooler(s *facts.Cluster) []check.Problem {
	p := s.Spec.Pooler
	if p == nil {
		return nil
	}
	if room := pooler.PoolRoom(s); room > 0 && pooler.PoolSize(s)*pooler.Pools(s) > room {
		return []check.Problem{check.Invalid("spec.pooler.poolSize", pooler.PoolSize(s), fmt.Sprintf(
			"%d poolers open that many connections for each of %d consumers, together more than %d, which is four fifths of the connections of a member: "+
				"lower spec.pooler.poolSize, raise spec.config.max_connections, or choose a larger spec.plan", *p.Replicas, max(1, len(s.Spec.Consumers)), room))}
	}
	return nil
}
