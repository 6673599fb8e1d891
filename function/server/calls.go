// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/function/edge"
)

// Outcomes of a call.
const (
	outcomeOK    = "ok"
	outcomeFatal = "fatal"
	outcomePanic = "panic"
)

// Fatal answers a request with why it cannot be carried out. Crossplane ends its pass before it applies or deletes anything,
// shows the message on the composite resource, and tries again with growing pauses.
func Fatal(req *edge.Request, message string) *edge.Answer {
	return &edge.Answer{
		Rest: &fnv1.RunFunctionResponse{
			Meta: &fnv1.ResponseMeta{Tag: req.Meta.GetTag()},
			Results: []*fnv1.Result{{
				Severity: fnv1.Severity_SEVERITY_FATAL,
				Message:  message,
				Target:   fnv1.Target_TARGET_COMPOSITE.Enum(),
			}},
		},
		Desired: req.Desired,
		Context: req.Context,
	}
}

// A Runner is a composition function.
type Runner interface {
	// Run answers a request.
	Run(ctx context.Context, req *edge.Request) *edge.Answer
}

// calls are what all calls go through, so that each is logged and measured, and harms no other.
type calls struct {
	log     *slog.Logger
	metrics *metrics
}

// run a call of the function.
func (c *calls) run(ctx context.Context, fn Runner, req *edge.Request) *edge.Answer {
	start := time.Now()
	a, outcome := c.guard(ctx, fn, req)
	took := time.Since(start)
	composed := len(a.Composed) + len(a.Desired.GetResources())
	c.metrics.observe(req.XR.Text("kind"), outcome, composed, took)
	if outcome == outcomeFatal {
		c.log.WarnContext(ctx, "refused", append(subject(req), "message", fatal(a))...)
		return a
	}

	// Counts only: what is composed is never logged.
	c.log.DebugContext(ctx, "ran", append(subject(req),
		"outcome", outcome,
		"took", took.String(),
		"observed", len(req.Observed),
		"composed", composed,
		"ttl", a.Rest.GetMeta().GetTtl().AsDuration().String(),
	)...)
	return a
}

// guard turns a panic into the answer of the one call that it happened in.
func (c *calls) guard(ctx context.Context, fn Runner, req *edge.Request) (a *edge.Answer, outcome string) {
	defer func() {
		if cause := recover(); cause != nil {
			c.log.ErrorContext(ctx, "panic",
				append(subject(req), "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))...)
			a = Fatal(req, fmt.Sprintf("cannot compose %s %q: function-capstan has a bug. Nothing was changed. Please "+
				"report it with the stack that the function logged for tag %q", req.XR.Text("kind"), name(req), req.Meta.GetTag()))
			outcome = outcomePanic
		}
	}()
	a = fn.Run(ctx, req)
	if fatal(a) != "" {
		return a, outcomeFatal
	}
	return a, outcomeOK
}

// subject of a call, as log attributes.
func subject(req *edge.Request) []any {
	return []any{"tag", req.Meta.GetTag(), "kind", req.XR.Text("kind"), "name", name(req)}
}

func name(req *edge.Request) string {
	return req.XR.Text("metadata", "namespace") + "/" + req.XR.Text("metadata", "name")
}

// fatal message of an answer, if it has one.
func fatal(a *edge.Answer) string {
	for _, r := range a.Rest.GetResults() {
		if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			return r.GetMessage()
		}
	}
	return ""
}
