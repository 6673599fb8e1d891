// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
	"github.com/capstan-dev/capstan/function/edge"
)

// BenchmarkRun measures a call from bytes to bytes, and as Echo what no function on the stock codec can go below: decoding the request
// to return what it desires unchanged. Beside the time on the clock it reports that of the processors, of the garbage collector's
// work, too.
func BenchmarkRun(b *testing.B) {
	capstan := newFunction(kinds(), func() time.Time { return now })
	fifty := function(deployments(50))
	cases := map[string]struct {
		f   *Function
		req *fnv1.RunFunctionRequest
	}{
		"Algorithm":     {f: capstan, req: settled(b, capstan, basic())},
		"Database":      {f: capstan, req: threeMembers(b, capstan)},
		"50Deployments": {f: fifty, req: settled(b, fifty, basic())},
	}
	for name, tc := range cases {
		raw := deterministic(b, tc.req)
		b.Run(name, func(b *testing.B) {
			b.ReportMetric(float64(len(raw)), "B/request")
			measure(b, func() error {
				req, err := edge.Receive(mem.BufferSlice{mem.SliceBuffer(raw)})
				if err != nil {
					return err
				}
				_, err = tc.f.Run(b.Context(), req).Wire()
				return err
			})
		})
		b.Run(name+"Echo", func(b *testing.B) {
			measure(b, func() error {
				req := &fnv1.RunFunctionRequest{}
				if err := proto.Unmarshal(raw, req); err != nil {
					return err
				}
				_, err := proto.Marshal(&fnv1.RunFunctionResponse{Desired: req.GetDesired()})
				return err
			})
		})
	}
}

// BenchmarkMany measures first calls for so many Algorithms in turns, as Crossplane makes them after a restart. Each has a spec of its own. Where
// more are not remembered, a call costs far more.
func BenchmarkMany(b *testing.B) {
	for _, n := range []int{1, 1000, 3000, 5000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			f, all := newFunction(kinds(), func() time.Time { return now }), make([][]byte, n)
			for i := range all {
				req := basic()
				env := req.GetObserved().GetComposite().GetResource().GetFields()["spec"].GetStructValue()
				env.Fields["config"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
					"settings": structpb.NewStringValue("server: " + strconv.Itoa(i)),
				}})
				all[i] = deterministic(b, req)
			}
			i := 0
			call := func() error {
				req, err := edge.Receive(mem.BufferSlice{mem.SliceBuffer(all[i%n])})
				if err != nil {
					return err
				}
				i++
				_, err = f.Run(b.Context(), req).Wire()
				return err
			}
			for range n {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
			measure(b, call)
		})
	}
}

// measure calls and what processors do meanwhile.
func measure(b *testing.B, call func() error) {
	b.Helper()
	b.ReportAllocs()
	before := processors(b)
	for b.Loop() {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(processors(b)-before)/float64(b.N), "cpu-ns/op")
}

// processors is the time that they have worked for this process.
func processors(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// threeMembers of the Database of examples/database/basic, with what the example has observed.
func threeMembers(tb testing.TB, f *Function) *fnv1.RunFunctionRequest {
	tb.Helper()
	all, err := composetest.Examples("../examples/database")
	if err != nil {
		tb.Fatal(err)
	}
	example := all["basic"]
	example.XR["metadata"].(map[string]any)["uid"] = "5d0c1f8e-8a3f-4d51-9d4f-0d6f1f0f7c12"
	req := requestOf(example)
	seen := req.GetObserved().GetResources()
	next := applied(tb, f, req)
	for name, o := range seen {
		next.Observed.Resources[name].Resource.Fields["status"] = o.GetResource().GetFields()["status"]
	}
	if n := len(run(tb, f, next).GetDesired().GetResources()); n < 15 {
		tb.Fatalf("want all that three members are made of, got %d objects", n)
	}
	return next
}

// deployments plans n Deployments, and looks at each that is observed.
func deployments(n int) compose.Planner {
	planned := map[string]map[string]any{}
	for i := range n {
		name := fmt.Sprintf("deployment-%02d", i)
		planned[name] = deployment(name)
	}
	return func(r compose.Request) (*compose.Plan, error) {
		p := &compose.Plan{Objects: map[string]compose.Desired{}, Ready: true}
		for name, o := range planned {
			d := compose.Desired{Object: o}
			if o, ok := r.Observed[name]; ok {
				d.Ready = compose.NumberOf(o, 0, "status", "readyReplicas") == compose.NumberOf(o, 0, "status", "replicas")
			}
			p.Objects[name] = d
		}
		return p, nil
	}
}

func deployment(name string) map[string]any {
	labels := map[string]any{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "recommendation-engine"}
	env := make([]any, 12)
	for i := range env {
		env[i] = map[string]any{"name": fmt.Sprintf("SETTING_%d", i), "value": "a value of some length"}
	}
	probe := map[string]any{
		"httpGet":       map[string]any{"path": "/healthz", "port": 8080},
		"periodSeconds": 5, "failureThreshold": 3, "timeoutSeconds": 2,
	}
	return map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   map[string]any{"labels": labels},
		"spec": map[string]any{
			"replicas": 2,
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{
					"securityContext": map[string]any{
						"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
					},
					"containers": []any{map[string]any{
						"name": "main", "image": "registry.example.org/algo/reco:2.1.4", "env": env,
						"ports":         []any{map[string]any{"name": "http", "containerPort": 8080}},
						"livenessProbe": probe, "readinessProbe": probe, "startupProbe": probe,
						"resources":       map[string]any{"requests": map[string]any{"cpu": "500m", "memory": "512Mi"}},
						"securityContext": map[string]any{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true},
					}},
				},
			},
		},
	}
}

// TestAllocations holds what a call may allocate, because time is too uneven to be held by a test. Each bound is a quarter above what
// it takes. What raises one far is mostly an object that is decoded whole, or twice.
func TestAllocations(t *testing.T) {
	capstan := newFunction(kinds(), func() time.Time { return now })
	fifty := function(deployments(50))
	cases := map[string]struct {
		f    *Function
		req  *fnv1.RunFunctionRequest
		most float64
	}{
		"Algorithm":     {f: capstan, req: settled(t, capstan, basic()), most: 2400},
		"Database":      {f: capstan, req: threeMembers(t, capstan), most: 8000},
		"50Deployments": {f: fifty, req: settled(t, fifty, basic()), most: 1100},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw := deterministic(t, tc.req)
			got := testing.AllocsPerRun(20, func() {
				req, err := edge.Receive(mem.BufferSlice{mem.SliceBuffer(raw)})
				if err == nil {
					_, err = tc.f.Run(t.Context(), req).Wire()
				}
				if err != nil {
					t.Error(err)
				}
			})
			if got > tc.most {
				t.Errorf("a call allocates %v times, and may %v times: see BenchmarkRun with -memprofile", got, tc.most)
			}
		})
	}
}
