// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// A Stopper decides whether this member can stop when a person requests it.
type Stopper struct {
	pod    string
	pods   *pods.Client
	server *mysql.Server
}

// decide a request, by what the server and the API server say now.
func (s *Stopper) decide(ctx context.Context) (outcome, message string, err error) {
	var now decision.Still
	// One that does not answer can be stopped, too, if another one is the leader.
	now.Look, _ = s.server.Look(ctx)
	list, err := s.pods.List(ctx)
	if err != nil {
		return "", "", err
	}
	for _, p := range list {
		switch {
		case p.Name == s.pod:
		case p.Role == members.RoleLeader && !p.Stopping:
			now.OtherLeads = true
		case p.Reason == members.ReasonStopped && p.Started && !p.Stopping:
			now.Stopped = p.Member
		}
	}
	outcome, message = decision.Stop(now)
	return outcome, message, nil
}

// requestedStop is the request to keep a member stopped that there is now; nil without one.
func requestedStop() (*members.MemberFence, error) {
	config, err := layout.ReadConfig()
	return config.Fence, err
}
