// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/edge"
)

// respond to a request with a plan. What earlier steps of the pipeline desire passes through.
func respond(req *edge.Request, p *compose.Plan) (*edge.Answer, error) {
	resources, err := composed(p)
	if err != nil {
		return nil, err
	}
	xr, err := composite(req, p)
	if err != nil {
		return nil, err
	}
	return &edge.Answer{
		Rest: &fnv1.RunFunctionResponse{
			Meta:       &fnv1.ResponseMeta{Tag: req.Meta.GetTag(), Ttl: durationpb.New(notBefore(p.TTL))},
			Conditions: conditions(p.Conditions),
			Results:    results(p.Events),
		},
		Desired:  &fnv1.State{Composite: xr, Resources: req.Desired.GetResources()},
		Context:  req.Context,
		Composed: resources,
	}, nil
}

// mostLate is the most that notBefore adds to a time.
const mostLate = 10 * time.Second

// notBefore is the TTL for which Crossplane calls the function again after a time, and not before. Crossplane varies each TTL by up to
// a tenth in either direction. A call before a deadline applies every composed object, decides nothing, and comes again. So the time is
// made longer, but not by much: beyond a minute and a half one call too many costs less than a deadline that is minutes late. For a
// deadline of a minute that saves 0.7 calls on average, for one of half an hour 0.35.
func notBefore(d time.Duration) time.Duration { return d + min(d/9+1, mostLate) }

// composed objects of a plan.
func composed(p *compose.Plan) (map[string]edge.Resource, error) {
	rs, encoder := make(map[string]edge.Resource, len(p.Objects)), &edge.Encoder{}
	for _, name := range slices.Sorted(maps.Keys(p.Objects)) {
		o := p.Objects[name]
		raw, err := encoder.EncodeComposed(o.Object)
		if err != nil {
			return nil, fmt.Errorf("cannot encode composed object %q: %w", name, err)
		}
		rs[name] = edge.Resource{Object: raw, Ready: ready(o.Ready)}
	}
	return rs, nil
}

// composite resource with nothing but its status, field by field over what earlier steps say of it. Its type is part of it
// because the function specification asks for objects that can be decoded.
func composite(req *edge.Request, p *compose.Plan) (*fnv1.Resource, error) {
	raw, err := (&edge.Encoder{}).Encode(p.Status)
	if err != nil {
		return nil, fmt.Errorf("cannot encode status: %w", err)
	}
	ours, status := &structpb.Struct{}, &structpb.Struct{Fields: map[string]*structpb.Value{}}
	if err := proto.Unmarshal([]byte(raw), ours); err != nil {
		return nil, fmt.Errorf("cannot encode status: %w", err)
	}
	before := req.Desired.GetComposite()
	maps.Copy(status.GetFields(), before.GetResource().GetFields()["status"].GetStructValue().GetFields())
	maps.Copy(status.GetFields(), ours.GetFields())
	return &fnv1.Resource{
		Resource: &structpb.Struct{Fields: map[string]*structpb.Value{
			"apiVersion": structpb.NewStringValue(req.XR.Text("apiVersion")),
			"kind":       structpb.NewStringValue(req.XR.Text("kind")),
			"status":     structpb.NewStructValue(status),
		}},
		ConnectionDetails: before.GetConnectionDetails(),
		Ready:             ready(p.Ready),
	}, nil
}

func ready(r bool) fnv1.Ready {
	if r {
		return fnv1.Ready_READY_TRUE
	}
	return fnv1.Ready_READY_FALSE
}

// results become events of the composite resource.
func results(es []compose.Event) []*fnv1.Result {
	out := make([]*fnv1.Result, 0, len(es))
	for _, e := range es {
		severity := fnv1.Severity_SEVERITY_NORMAL
		if e.Warning {
			severity = fnv1.Severity_SEVERITY_WARNING
		}
		out = append(out, &fnv1.Result{
			Severity: severity, Reason: &e.Reason, Message: e.Message, Target: fnv1.Target_TARGET_COMPOSITE.Enum(),
		})
	}
	return out
}

func conditions(cs []xpv2.Condition) []*fnv1.Condition {
	out := make([]*fnv1.Condition, len(cs))
	for i, c := range cs {
		out[i] = &fnv1.Condition{
			Type:    string(c.Type),
			Status:  status(c.Status),
			Reason:  string(c.Reason),
			Message: &c.Message,
			Target:  fnv1.Target_TARGET_COMPOSITE.Enum(),
		}
	}
	return out
}

func status(s corev1.ConditionStatus) fnv1.Status {
	switch s {
	case corev1.ConditionTrue:
		return fnv1.Status_STATUS_CONDITION_TRUE
	case corev1.ConditionFalse:
		return fnv1.Status_STATUS_CONDITION_FALSE
	default:
		return fnv1.Status_STATUS_CONDITION_UNKNOWN
	}
}
