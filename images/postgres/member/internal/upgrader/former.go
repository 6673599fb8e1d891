// SPDX-License-Identifier: Apache-2.0

package upgrader

import (
	"context"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/dcs"
)

// former is the generation that an upgrade continues from.
type former struct {
	pods *pods.Client
	dcs  *dcs.Client
}

// leader returns the address of the pod that is the leader, or nothing.
func (f former) leader(ctx context.Context) (string, error) {
	list, err := f.pods.List(ctx)
	return leaderOf(list), err
}

// leaderOf pods returns the address of the one that is the leader, or nothing.
func leaderOf(list []pods.Pod) string {
	for _, p := range list {
		if p.Role == members.RoleLeader && !p.Stopping {
			return p.IP
		}
	}
	return ""
}

// stopped returns the address of the pod that is the leader, and where the leader stopped for a fence, once it has stopped and no
// other member is the leader.
func (f former) stopped(ctx context.Context, id string) (leader string, end *members.FenceReport, err error) {
	list, err := f.pods.List(ctx)
	if err != nil {
		return "", nil, err
	}
	leader = leaderOf(list)
	for _, p := range list {
		if p.Fenced == nil || p.Fenced.ID != id {
			continue
		}
		holder, err := f.dcs.Holder(ctx)
		if err != nil {
			return leader, nil, err
		}
		if p.Name == holder {
			return leader, p.Fenced, nil
		}
	}
	return leader, nil, nil
}
