// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// respond to a request with a plan. What earlier steps of the pipeline desire passes through.
func respond(req *fnv1.RunFunctionRequest, p *compose.Plan) (*fnv1.RunFunctionResponse, error) {
	resources, err := composed(req, p)
	if err != nil {
		return nil, err
	}
	xr, err := composite(req, p)
	if err != nil {
		return nil, err
	}
	return &fnv1.RunFunctionResponse{
		Meta:       &fnv1.ResponseMeta{Tag: req.GetMeta().GetTag(), Ttl: durationpb.New(p.TTL)},
		Desired:    &fnv1.State{Composite: xr, Resources: resources},
		Context:    req.GetContext(),
		Conditions: conditions(p.Conditions),
		Results:    results(p.Events),
	}, nil
}

// composed objects of a plan beside the objects of earlier steps.
func composed(req *fnv1.RunFunctionRequest, p *compose.Plan) (map[string]*fnv1.Resource, error) {
	rs := make(map[string]*fnv1.Resource, len(p.Objects))
	maps.Copy(rs, req.GetDesired().GetResources())
	for _, name := range slices.Sorted(maps.Keys(p.Objects)) {
		o := p.Objects[name]
		s, err := encode(o.Object)
		if err != nil {
			return nil, fmt.Errorf("cannot encode composed object %q: %w", name, err)
		}
		rs[name] = &fnv1.Resource{Resource: s, Ready: ready(o.Ready)}
	}
	return rs, nil
}

// composite resource with nothing but its status, field by field over what earlier steps say of it. Its type is part of it
// because the function specification asks for objects that can be decoded.
func composite(req *fnv1.RunFunctionRequest, p *compose.Plan) (*fnv1.Resource, error) {
	status := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	before := req.GetDesired().GetComposite()
	maps.Copy(status.GetFields(), before.GetResource().GetFields()["status"].GetStructValue().GetFields())
	if p.Status != nil {
		s, err := structOf(p.Status)
		if err != nil {
			return nil, fmt.Errorf("cannot encode status: %w", err)
		}
		maps.Copy(status.GetFields(), s.GetFields())
	}
	observed := req.GetObserved().GetComposite().GetResource().GetFields()
	return &fnv1.Resource{
		Resource: &structpb.Struct{Fields: map[string]*structpb.Value{
			"apiVersion": observed["apiVersion"],
			"kind":       observed["kind"],
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
