// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// Outcomes of a call.
const (
	outcomeOK    = "ok"
	outcomeFatal = "fatal"
	outcomePanic = "panic"
)

// Fatal answers a request with why it cannot be carried out. Crossplane ends its pass before it applies or deletes anything,
// shows the message on the composite resource, and tries again with growing pauses.
func Fatal(req *fnv1.RunFunctionRequest, message string) *fnv1.RunFunctionResponse {
	return &fnv1.RunFunctionResponse{
		Meta:    &fnv1.ResponseMeta{Tag: req.GetMeta().GetTag()},
		Desired: req.GetDesired(),
		Context: req.GetContext(),
		Results: []*fnv1.Result{{
			Severity: fnv1.Severity_SEVERITY_FATAL,
			Message:  message,
			Target:   fnv1.Target_TARGET_COMPOSITE.Enum(),
		}},
	}
}

// calls are what all calls go through, so that each is logged and measured, and harms no other.
type calls struct {
	log     *slog.Logger
	metrics *metrics
}

// intercept a call of the function. Other services pass.
func (c *calls) intercept(ctx context.Context, msg any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	req, ok := msg.(*fnv1.RunFunctionRequest)
	if !ok {
		return next(ctx, msg)
	}
	start := time.Now()
	rsp, outcome, err := c.guard(ctx, req, next)
	took := time.Since(start)
	if err != nil {
		return nil, err
	}
	c.metrics.observe(kind(req), outcome, len(rsp.GetDesired().GetResources()), took)
	if outcome == outcomeFatal {
		c.log.WarnContext(ctx, "refused", append(subject(req), "message", fatal(rsp))...)
		return rsp, nil
	}

	// Counts only: what is composed is never logged.
	c.log.DebugContext(ctx, "ran", append(subject(req),
		"outcome", outcome,
		"took", took.String(),
		"observed", len(req.GetObserved().GetResources()),
		"composed", len(rsp.GetDesired().GetResources()),
		"ttl", rsp.GetMeta().GetTtl().AsDuration().String(),
	)...)
	return rsp, nil
}

// guard turns a panic into the answer of the one call that it happened in.
func (c *calls) guard(ctx context.Context, req *fnv1.RunFunctionRequest, next grpc.UnaryHandler) (
	rsp *fnv1.RunFunctionResponse, outcome string, err error,
) {
	defer func() {
		if cause := recover(); cause != nil {
			c.log.ErrorContext(ctx, "panic",
				append(subject(req), "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))...)
			rsp = Fatal(req, fmt.Sprintf("cannot compose %s %q: function-capstan has a bug. Nothing was changed. Please "+
				"report it with the stack that the function logged for tag %q", kind(req), name(req), req.GetMeta().GetTag()))
			outcome, err = outcomePanic, nil
		}
	}()
	out, err := next(ctx, req)
	if err != nil {
		return nil, "", err
	}
	rsp, ok := out.(*fnv1.RunFunctionResponse)
	if !ok {
		return nil, "", fmt.Errorf("cannot answer a call with %T", out)
	}
	if fatal(rsp) != "" {
		return rsp, outcomeFatal, nil
	}
	return rsp, outcomeOK, nil
}

// subject of a call, as log attributes.
func subject(req *fnv1.RunFunctionRequest) []any {
	return []any{"tag", req.GetMeta().GetTag(), "kind", kind(req), "name", name(req)}
}

func kind(req *fnv1.RunFunctionRequest) string {
	return req.GetObserved().GetComposite().GetResource().GetFields()["kind"].GetStringValue()
}

func name(req *fnv1.RunFunctionRequest) string {
	m := req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields()
	return m["namespace"].GetStringValue() + "/" + m["name"].GetStringValue()
}

// fatal message of a response, if it has one.
func fatal(rsp *fnv1.RunFunctionResponse) string {
	for _, r := range rsp.GetResults() {
		if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			return r.GetMessage()
		}
	}
	return ""
}
