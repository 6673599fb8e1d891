// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/apis/optional"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/edge"
	"github.com/capstan-dev/capstan/function/planners"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// function with one planner, for Algorithms.
func function(p compose.Planner) *Function {
	ks := map[schema.GroupKind]planners.Planner{algorithmKind: {Plan: p, Optional: kinds()[algorithmKind].Optional}}
	return newFunction(ks, func() time.Time { return now })
}

// plan that is always the same.
func plan(p *compose.Plan) compose.Planner {
	return func(compose.Request) (*compose.Plan, error) { return p, nil }
}

// request for an Algorithm, with modifiers.
func request(mods ...func(*fnv1.RunFunctionRequest)) *fnv1.RunFunctionRequest {
	req := &fnv1.RunFunctionRequest{
		Meta: &fnv1.RequestMeta{Tag: "tag"},
		Observed: &fnv1.State{Composite: resourceOf(map[string]any{
			"apiVersion": "capstan.dev/v1alpha1",
			"kind":       "Algorithm",
			"metadata":   map[string]any{"namespace": "shop", "name": "reco"},
			"spec":       map[string]any{"image": "registry.example.org/algo/reco:2.1.4"},
		})},
	}
	for _, mod := range mods {
		mod(req)
	}
	return req
}

func inContext(key string, v any) func(*fnv1.RunFunctionRequest) {
	return func(req *fnv1.RunFunctionRequest) { req.Context = structFrom(map[string]any{key: v}) }
}

func resourceOf(m map[string]any) *fnv1.Resource {
	return &fnv1.Resource{Resource: structFrom(m)}
}

func structFrom(m map[string]any) *structpb.Struct {
	s, err := structpb.NewStruct(m)
	if err != nil {
		panic(err)
	}
	return s
}

func TestRun(t *testing.T) {
	service := map[string]any{"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"type": "ClusterIP"}}
	cases := map[string]struct {
		reason  string
		planner compose.Planner
		req     *fnv1.RunFunctionRequest
		want    *fnv1.RunFunctionResponse
	}{
		"Plan": {
			reason: "Everything that a plan says should reach the response, and what earlier steps desire should pass.",
			planner: plan(&compose.Plan{
				Objects: map[string]compose.Desired{"service": {Object: service, Ready: true}},
				Ready:   true,
				Status:  map[string]any{"phase": "Ready", "replicas": 3},
				Conditions: []xpv2.Condition{{
					Type: "PodsHealthy", Status: corev1.ConditionTrue, Reason: "Serving", Message: "all is well",
				}},
				TTL: 30 * time.Minute,
			}),
			req: request(func(req *fnv1.RunFunctionRequest) {
				req.Context = structFrom(map[string]any{"example.org/thing": "kept"})
				req.Desired = &fnv1.State{
					Composite: resourceOf(map[string]any{"status": map[string]any{"phase": "Unknown", "other": "kept"}}),
					Resources: map[string]*fnv1.Resource{"other": resourceOf(map[string]any{"kind": "ConfigMap"})},
				}
			}),
			want: &fnv1.RunFunctionResponse{
				Meta:    &fnv1.ResponseMeta{Tag: "tag", Ttl: durationpb.New(30*time.Minute + mostLate)},
				Context: structFrom(map[string]any{"example.org/thing": "kept"}),
				Desired: &fnv1.State{
					Composite: &fnv1.Resource{
						Resource: structFrom(map[string]any{
							"apiVersion": "capstan.dev/v1alpha1",
							"kind":       "Algorithm",
							"status":     map[string]any{"phase": "Ready", "replicas": 3, "other": "kept"},
						}),
						Ready: fnv1.Ready_READY_TRUE,
					},
					Resources: map[string]*fnv1.Resource{
						"service": {Resource: structFrom(service), Ready: fnv1.Ready_READY_TRUE},
						"other":   resourceOf(map[string]any{"kind": "ConfigMap"}),
					},
				},
				Conditions: []*fnv1.Condition{{
					Type: "PodsHealthy", Status: fnv1.Status_STATUS_CONDITION_TRUE, Reason: "Serving",
					Message: new("all is well"), Target: fnv1.Target_TARGET_COMPOSITE.Enum(),
				}},
				Requirements: requirements(&edge.Request{}, kinds()[algorithmKind].Optional, nil),
			},
		},
		"NotReady": {
			reason:  "What is not ready should be said not to be, as unspecified leaves the verdict to later steps.",
			planner: plan(&compose.Plan{Objects: map[string]compose.Desired{"service": {Object: service}}, TTL: time.Second}),
			req:     request(),
			want: &fnv1.RunFunctionResponse{
				Meta: &fnv1.ResponseMeta{Tag: "tag", Ttl: durationpb.New(notBefore(time.Second))},
				Desired: &fnv1.State{
					Composite: &fnv1.Resource{
						Resource: structFrom(map[string]any{
							"apiVersion": "capstan.dev/v1alpha1", "kind": "Algorithm", "status": map[string]any{},
						}),
						Ready: fnv1.Ready_READY_FALSE,
					},
					Resources: map[string]*fnv1.Resource{
						"service": {Resource: structFrom(service), Ready: fnv1.Ready_READY_FALSE},
					},
				},
				Requirements: requirements(&edge.Request{}, kinds()[algorithmKind].Optional, nil),
			},
		},
		"Operation": {
			reason:  "A run without a composite resource should be told what the function is for.",
			planner: plan(&compose.Plan{}),
			req:     &fnv1.RunFunctionRequest{},
			want: ofNoKind(refused("", "function-capstan is for Compositions only: there is no composite resource to compose for, "+
				"as in an Operation. Use it in the pipeline of a Composition")),
		},
		"UnknownKind": {
			reason:  "A kind without planner should be named, and those that have one.",
			planner: plan(&compose.Plan{}),
			req: request(func(req *fnv1.RunFunctionRequest) {
				req.Observed.Composite = resourceOf(map[string]any{"apiVersion": "example.org/v1", "kind": "Queue"})
			}),
			want: ofNoKind(refused("tag", `cannot compose for "Queue.example.org": function-capstan composes for `+
				`Algorithm.capstan.dev only`)),
		},
		"PlannerError": {
			reason:  "A planner's error should end the pass, and name the object.",
			planner: func(compose.Request) (*compose.Plan, error) { return nil, errors.New("boom") },
			req:     request(),
			want:    refused("tag", `cannot plan Algorithm "shop/reco": boom`),
		},
		"InexactInteger": {
			reason: "An integer that the protocol would change should end the pass, and say where it is.",
			planner: plan(&compose.Plan{Objects: map[string]compose.Desired{
				"service": {Object: map[string]any{"spec": map[string]any{"ports": []any{int64(1)<<53 + 1}}}},
			}}),
			req: request(),
			want: refused("tag", `cannot answer for Algorithm "shop/reco": cannot encode composed object "service": `+
				`spec: ports: [0]: cannot represent integer 9007199254740993 exactly`),
		},
		"BadNow": {
			reason:  "A clock that cannot be read should be named.",
			planner: plan(&compose.Plan{}),
			req:     request(inContext(contextKeyNow, "noon")),
			want: withContext(structFrom(map[string]any{contextKeyNow: "noon"}), refused("tag",
				`cannot use context key "capstan.dev/now": parsing time "noon" as "2006-01-02T15:04:05Z07:00": `+
					`cannot parse "noon" as "2006"`)),
		},
		"NowIsNoString": {
			reason:  "A clock of the wrong type should be named.",
			planner: plan(&compose.Plan{}),
			req:     request(inContext(contextKeyNow, 12)),
			want: withContext(structFrom(map[string]any{contextKeyNow: 12}), refused("tag",
				`cannot use context key "capstan.dev/now": it must be a string`)),
		},
		"TooManyObjects": {
			reason:  "More objects than Crossplane should be given should be refused with the figures and what to do.",
			planner: plan(&compose.Plan{Objects: many(maxObjects+1, service)}),
			req:     request(),
			want: refused("tag", `cannot compose Algorithm "shop/reco": it takes 81 objects, and the limit is 80. Ask for less `+
				`in its spec, or divide it into several of kind Algorithm`),
		},
		"TooLarge": {
			reason: "An answer that nears the limit of gRPC should be refused with the figures and what is large.",
			planner: plan(&compose.Plan{Objects: map[string]compose.Desired{
				"service": {Object: service},
				"config":  {Object: map[string]any{"data": strings.Repeat("x", maxBytes)}},
			}}),
			req: request(),
			want: refused("tag", `cannot compose Algorithm "shop/reco": its objects take 2048 KiB, and the limit is 2048 KiB. The `+
				`largest is "config" with 2048 KiB: make what it holds smaller in the spec`),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, function(tc.planner), tc.req)
			if diff := cmp.Diff(tc.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%s\nRun(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

var algorithmKind = v1alpha1.AlgorithmGroupVersionKind.GroupKind()

func refused(tag, message string) *fnv1.RunFunctionResponse {
	return &fnv1.RunFunctionResponse{
		Meta: &fnv1.ResponseMeta{Tag: tag},
		Results: []*fnv1.Result{{
			Severity: fnv1.Severity_SEVERITY_FATAL, Message: message, Target: fnv1.Target_TARGET_COMPOSITE.Enum(),
		}},
		Requirements: requirements(&edge.Request{}, kinds()[algorithmKind].Optional, nil),
	}
}

// ofNoKind requires nothing that a planner asks for.
func ofNoKind(rsp *fnv1.RunFunctionResponse) *fnv1.RunFunctionResponse {
	rsp.Requirements = requirements(&edge.Request{}, nil, nil)
	return rsp
}

func withContext(c *structpb.Struct, rsp *fnv1.RunFunctionResponse) *fnv1.RunFunctionResponse {
	rsp.Context = c
	return rsp
}

func many(n int, o any) map[string]compose.Desired {
	ds := make(map[string]compose.Desired, n)
	for i := range n {
		ds[fmt.Sprintf("object-%02d", i)] = compose.Desired{Object: o}
	}
	return ds
}

// What a planner gets to see.
func TestRequest(t *testing.T) {
	analysis := kinds()[algorithmKind].Optional[requiredAnalysis]
	type want struct {
		Now      time.Time
		Analysis compose.Availability
		Image    any
		Observed []string
	}
	cases := map[string]struct {
		reason string
		req    *fnv1.RunFunctionRequest
		want   want
	}{
		"FirstCall": {
			reason: "A kind should be unknown until Crossplane tells, and time be that of the clock.",
			req:    request(),
			want:   want{Now: now, Image: "registry.example.org/algo/reco:2.1.4"},
		},
		"SchemaMissing": {
			reason: "A kind should be unavailable when Crossplane looked and found none.",
			req: request(func(req *fnv1.RunFunctionRequest) {
				req.RequiredSchemas = map[string]*fnv1.Schema{requiredAnalysis: {}}
			}),
			want: want{Now: now, Analysis: compose.Unavailable, Image: "registry.example.org/algo/reco:2.1.4"},
		},
		"SchemaFound": {
			reason: "A kind should be available when Crossplane found its schema, and observed objects be there.",
			req: request(func(req *fnv1.RunFunctionRequest) {
				req.RequiredSchemas = map[string]*fnv1.Schema{
					requiredAnalysis: {OpenapiV3: structFrom(map[string]any{"type": "object"})},
				}
				req.Observed.Resources = map[string]*fnv1.Resource{"service": resourceOf(map[string]any{"kind": "Service"})}
			}),
			want: want{
				Now: now, Analysis: compose.Available, Image: "registry.example.org/algo/reco:2.1.4",
				Observed: []string{"service=Service"},
			},
		},
		"Reported": {
			reason: "A kind that the provider reports should be what it reports, and no schema be asked for.",
			req: request(func(req *fnv1.RunFunctionRequest) {
				req.RequiredSchemas = map[string]*fnv1.Schema{requiredAnalysis: {}}
				req.RequiredResources = map[string]*fnv1.Resources{requiredKinds: reported(map[string]any{optional.Key(analysis): true})}
			}),
			want: want{Now: now, Analysis: compose.Available, Image: "registry.example.org/algo/reco:2.1.4"},
		},
		"ReportedMissing": {
			reason: "A kind that the cluster does not serve is no available one, whatever an old schema says.",
			req: request(func(req *fnv1.RunFunctionRequest) {
				req.RequiredSchemas = map[string]*fnv1.Schema{
					requiredAnalysis: {OpenapiV3: structFrom(map[string]any{"type": "object"})},
				}
				req.RequiredResources = map[string]*fnv1.Resources{requiredKinds: reported(map[string]any{optional.Key(analysis): false})}
			}),
			want: want{Now: now, Analysis: compose.Unavailable, Image: "registry.example.org/algo/reco:2.1.4"},
		},
		"NotReported": {
			reason: "A provider of an earlier version does not know a kind: Crossplane tells by its schema.",
			req: request(func(req *fnv1.RunFunctionRequest) {
				req.RequiredSchemas = map[string]*fnv1.Schema{
					requiredAnalysis: {OpenapiV3: structFrom(map[string]any{"type": "object"})},
				}
				req.RequiredResources = map[string]*fnv1.Resources{requiredKinds: reported(map[string]any{"example.org/v1/Other": true})}
			}),
			want: want{Now: now, Analysis: compose.Available, Image: "registry.example.org/algo/reco:2.1.4"},
		},
		"OwnClock": {
			reason: "The context's time should win over the clock, in UTC.",
			req:    request(inContext(contextKeyNow, "2027-01-01T01:00:00+01:00")),
			want: want{
				Now:   time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC),
				Image: "registry.example.org/algo/reco:2.1.4",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			f := function(func(r compose.Request) (*compose.Plan, error) {
				got = want{
					Now:      r.Now,
					Analysis: r.Kinds[analysis],
					Image:    r.Composite.Map()["spec"].(map[string]any)["image"],
				}
				for name, o := range r.Observed {
					got.Observed = append(got.Observed, fmt.Sprintf("%s=%s", name, o.Map()["kind"]))
				}
				return &compose.Plan{}, nil
			})
			run(t, f, tc.req)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nrequest: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// reported kinds, as the provider keeps them.
func reported(kinds map[string]any) *fnv1.Resources {
	return &fnv1.Resources{Items: []*fnv1.Resource{resourceOf(map[string]any{"data": map[string]any{"kinds": kinds}})}}
}

// TestRequiredObjects shows that an object is required by its name, or by a label where its name is not known.
func TestRequiredObjects(t *testing.T) {
	ns := "shop"
	got := requirements(&edge.Request{}, nil, map[string]compose.Requirement{
		"named":    {Kind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, Namespace: ns, Name: "fraud-r1"},
		"labelled": {Kind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, Namespace: ns, Label: compose.Label{Key: "a", Value: "b"}},
	}).GetResources()
	want := map[string]*fnv1.ResourceSelector{
		"named": {ApiVersion: "batch/v1", Kind: "Job", Namespace: &ns, Match: &fnv1.ResourceSelector_MatchName{MatchName: "fraud-r1"}},
		"labelled": {
			ApiVersion: "batch/v1", Kind: "Job", Namespace: &ns,
			Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"a": "b"}}},
		},
	}
	for name, o := range want {
		if diff := cmp.Diff(o, got[name], protocmp.Transform()); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
}

// TestSchemas are asked for only of kinds that the provider does not report.
func TestSchemas(t *testing.T) {
	all := kinds()[algorithmKind].Optional
	known := map[string]any{}
	for name, gvk := range all {
		if name != requiredAnalysis {
			known[optional.Key(gvk)] = name == "httproute"
		}
	}
	req := request(func(req *fnv1.RunFunctionRequest) {
		req.RequiredResources = map[string]*fnv1.Resources{requiredKinds: reported(known)}
	})
	got := slices.Collect(maps.Keys(requirements(received(t, req), all, nil).GetSchemas()))
	if diff := cmp.Diff([]string{requiredAnalysis}, got); diff != "" {
		t.Errorf("-want, +asked for:\n%s", diff)
	}
}

// TestBootstrap compares what the function requires with what the Compositions name beforehand, so that Crossplane need not call
// twice.
func TestBootstrap(t *testing.T) {
	for _, folder := range []string{"algorithm", "database"} {
		data, err := os.ReadFile(filepath.Join("..", "apis", folder, "composition.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Spec struct {
				Pipeline []struct {
					Requirements struct {
						RequiredResources []struct{ RequirementName, APIVersion, Kind, Name string }
					}
				}
			}
		}
		if err := yaml.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		named := map[string]*fnv1.ResourceSelector{}
		for _, r := range c.Spec.Pipeline[0].Requirements.RequiredResources {
			named[r.RequirementName] = &fnv1.ResourceSelector{
				ApiVersion: r.APIVersion, Kind: r.Kind, Match: &fnv1.ResourceSelector_MatchName{MatchName: r.Name},
			}
		}
		if diff := cmp.Diff(named, requirements(received(t, request()), nil, nil).GetResources(), protocmp.Transform()); diff != "" {
			t.Errorf("%s: -named by the Composition, +asked for:\n%s", folder, diff)
		}
	}
}

// TestKinds compares the kinds that the provider reports with those that the function asks about.
func TestKinds(t *testing.T) {
	asked := map[string]bool{}
	for _, k := range kinds() {
		for _, gvk := range k.Optional {
			asked[optional.Key(gvk)] = true
		}
	}
	reported := map[string]bool{}
	for _, gvk := range optional.Kinds() {
		reported[optional.Key(gvk)] = true
	}
	if diff := cmp.Diff(asked, reported); diff != "" {
		t.Errorf("-asked about, +reported by the provider:\n%s", diff)
	}
}

func TestDeterminism(t *testing.T) {
	f := newFunction(kinds(), func() time.Time { return now })
	req := settled(t, f, basic())
	first := deterministic(t, run(t, f, req))
	for range 20 {
		if !bytes.Equal(first, deterministic(t, run(t, f, proto.CloneOf(req)))) {
			t.Fatal("two answers to one request differ")
		}
	}
}

// requestOf an example: what it has observed.
func requestOf(e composetest.Example) *fnv1.RunFunctionRequest {
	req := basic()
	req.Observed.Composite, req.Observed.Resources = resourceOf(e.XR), map[string]*fnv1.Resource{}
	for _, o := range e.Observed {
		req.Observed.Resources[compose.Text(o, "metadata", "annotations", "crossplane.io/composition-resource-name")] = resourceOf(o)
	}
	return req
}

// FuzzRun looks for requests that make the function panic, or give two answers: bytes as they come from the wire, and over them
// objects that are JSON. Its seeds have the examples, whose answers are golden files. Objects that the stock codec decoded whole are to give the same answer.
func FuzzRun(f *testing.F) {
	fn := newFunction(kinds(), func() time.Time { return now })
	for _, req := range []*fnv1.RunFunctionRequest{{}, request(), basic(), settled(f, fn, basic())} {
		f.Add(deterministic(f, req), "", "", "", "")
	}
	for _, kind := range []string{"algorithm", "database", "experiment"} {
		examples, err := composetest.Examples("../examples/" + kind)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range examples {
			f.Add(deterministic(f, requestOf(e)), "", "", "", "")
		}
	}
	f.Add(deterministic(f, basic()), `{"apiVersion":"capstan.dev/v1alpha1","kind":"Algorithm","spec":{"image":3}}`,
		"deployment", `{"kind":"Deployment","status":{"replicas":1e99}}`, `{"algorithm":{"cpu":{"a":[]}}}`)
	f.Fuzz(func(t *testing.T, raw []byte, xr, name, observed, settings string) {
		req := &fnv1.RunFunctionRequest{}
		if err := proto.Unmarshal(raw, req); err != nil {
			return
		}
		overlay(req, xr, name, observed, settings)
		a := deterministic(t, run(t, fn, req))
		b := deterministic(t, run(t, fn, proto.CloneOf(req)))
		if !bytes.Equal(a, b) {
			t.Error("two answers to one request differ")
		}
		if diff := cmp.Diff(run(t, fn, req), answer(t, fn.Run(t.Context(), decoded(t, req))), protocmp.Transform()); diff != "" {
			t.Errorf("-answer to what is decoded where it is read, +to what was decoded whole:\n%s", diff)
		}
	})
}

// overlay a request with objects in JSON. What is not JSON changes nothing.
func overlay(req *fnv1.RunFunctionRequest, xr, name, observed, settings string) {
	if req.GetObserved() == nil {
		req.Observed = &fnv1.State{}
	}
	if s := (&structpb.Struct{}); s.UnmarshalJSON([]byte(xr)) == nil {
		req.Observed.Composite = &fnv1.Resource{Resource: s}
	}
	if s := (&structpb.Struct{}); s.UnmarshalJSON([]byte(observed)) == nil {
		if req.Observed.Resources == nil {
			req.Observed.Resources = map[string]*fnv1.Resource{}
		}
		req.Observed.Resources[strings.ToValidUTF8(name, "")] = &fnv1.Resource{Resource: s}
	}
	if s := (&structpb.Struct{}); s.UnmarshalJSON([]byte(settings)) == nil {
		data := &structpb.Struct{Fields: map[string]*structpb.Value{"data": structpb.NewStructValue(s)}}
		req.RequiredResources = map[string]*fnv1.Resources{
			requiredSettings: {Items: []*fnv1.Resource{{Resource: data}}},
		}
	}
}

func run(tb testing.TB, f *Function, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	tb.Helper()
	return answer(tb, f.Run(context.Background(), received(tb, req)))
}

// answer as Crossplane gets it.
func answer(tb testing.TB, a *edge.Answer) *fnv1.RunFunctionResponse {
	tb.Helper()
	raw, err := a.Wire()
	if err != nil {
		tb.Fatalf("cannot encode the answer: %v", err)
	}
	rsp := &fnv1.RunFunctionResponse{}
	if err := proto.Unmarshal(raw, rsp); err != nil {
		tb.Fatalf("cannot decode the answer: %v", err)
	}
	return rsp
}

// decoded is a request whose objects the stock codec decoded.
func decoded(tb testing.TB, req *fnv1.RunFunctionRequest) *edge.Request {
	tb.Helper()
	r := received(tb, req)
	for name, o := range req.GetObserved().GetResources() {
		r.Observed[name] = composetest.Object(o.GetResource().AsMap())
	}
	return r
}

// received is a request as the function gets it.
func received(tb testing.TB, req *fnv1.RunFunctionRequest) *edge.Request {
	tb.Helper()
	r, err := edge.Read(req)
	if err != nil {
		tb.Fatalf("cannot read the request: %v", err)
	}
	return r
}

func deterministic(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		tb.Fatalf("cannot marshal: %v", err)
	}
	return b
}

// TestNotBefore has Crossplane vary a TTL by a tenth.
func TestNotBefore(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 20 * time.Second, time.Minute, 90 * time.Second} {
		if early := notBefore(d) - notBefore(d)/10; early < d {
			t.Errorf("a deadline in %s: Crossplane may call after %s", d, early)
		}
	}
	if got, want := notBefore(time.Hour), time.Hour+mostLate; got != want {
		t.Errorf("a deadline in an hour: want a TTL of %s, got %s", want, got)
	}
}
