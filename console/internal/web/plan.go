// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-dev/capstan/console/internal/draft"
	"github.com/capstan-dev/capstan/console/internal/kube"
	"github.com/capstan-dev/capstan/internal/plan"
	"github.com/capstan-dev/capstan/internal/steady"
)

// Bounds of plans: they take processor and memory of the console.
const (
	// mostPlans are wanted at the same time, and plansAtOnce of them are under way.
	mostPlans, plansAtOnce = 20, 2
	// planTimeout is how long a browser waits for a plan, with the time in which others are made.
	planTimeout = 20 * time.Second
	// mostStages of a plan are shown.
	mostStages = 6
)

// Problems of plans. The draft can be applied in spite of them.
var (
	errPlansBusy = &kube.Problem{
		Title: "There is no plan now", Detail: "Too many plans are being made. Check again in a minute, or apply without a plan.", Status: http.StatusServiceUnavailable,
	}
	errPlanLate = &kube.Problem{
		Title: "There is no plan now", Detail: fmt.Sprintf("It was not ready within %s, and was ended. Check again later, or apply without a plan.", planTimeout), Status: http.StatusServiceUnavailable,
	}
	errPlanOther = &kube.Problem{Title: "There is no plan", Detail: "The draft is no longer what was checked: check it again.", Status: http.StatusConflict}
)

func newPlans() *turns { return newTurns(mostPlans, plansAtOnce, planTimeout, errPlansBusy) }

// What is foreseen of a draft, as a page shows it.
type foreseen struct {
	Problem *kube.Problem

	// Accepted by the planner, and Ready in the end.
	Accepted, Ready bool
	// Sum of all stages, and the first of them. More is how many others there are.
	Sum    steady.Stage
	Stages []steady.Stage
	More   int
	// Effects of an edit, the expected Pause of writes, what it Waits for in the end, and what the plan Assumes.
	Effects        []string
	Pause          string
	Waits, Assumes []string
}

// Nothing comes, changes or goes.
func (p foreseen) Nothing() bool { return len(p.Stages) == 0 }

// plan what the API server would make of a draft, with the rights of the user. The result is of this request alone.
func (s *Server) plan(c *call, accepted *unstructured.Unstructured) (*foreseen, error) {
	ctx, cancel := context.WithTimeout(c.r.Context(), s.plans.timeout)
	defer cancel()
	p, err := s.planWith(ctx, c, draft.Clean(accepted).Object)
	switch {
	case kube.Ended(err):
		return nil, err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &foreseen{Problem: errPlanLate}, nil
	case err != nil:
		problem := problemOf(err)
		if p := (*kube.Problem)(nil); !errors.As(err, &p) {
			problem.Title = "There is no plan"
		}

		return &foreseen{Problem: problem}, nil
	default:
		return p, nil
	}
}

func (s *Server) planWith(ctx context.Context, c *call, manifest map[string]any) (*foreseen, error) {
	free, err := s.plans.take(ctx, c.session.User)
	if err != nil {
		return nil, err
	}
	defer free()
	got, err := plan.Surroundings{Version: s.Version, Now: c.now, Get: c.lookAt, StandIn: true, Most: mostRead}.Of(ctx, manifest)
	if err != nil {
		return nil, err //nolint:wrapcheck // It is for people already.
	}
	p := &foreseen{
		Accepted: got.Accepted(), Ready: got.Ready, Sum: got.Sum(), Stages: got.Stages, Effects: got.Effects, Pause: got.Pause, Waits: got.Waits, Assumes: got.Assumptions,
	}
	if n := len(p.Stages) - mostStages; n > 0 {
		p.Stages, p.More = p.Stages[:mostStages], n
	}
	p.Assumes = append(p.Assumes, "The function on the cluster has version "+s.Version+", as this console.")

	return p, nil
}

// lookAt an object for a plan, with the rights of the user.
func (c *call) lookAt(ctx context.Context, of plan.Requirement) (map[string]any, error) {
	resource := kube.ResourceOf(of.Kind.GroupVersion().String(), of.Kind.Kind)
	if resource.Empty() {
		return nil, nil //nolint:nilnil // No kind has such a name.
	}
	u, err := c.client.Get(ctx, resource, of.Namespace, of.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // There is none.
	case err != nil:
		return nil, err //nolint:wrapcheck // It is for people already.
	default:
		return u.Object, nil
	}
}
