// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// BenchmarkRunFunction measures a call from its decoded request on, as Wire from
// bytes to bytes, and as Echo what no function on the stock codec can go below:
// decoding the request to return what it desires unchanged.
func BenchmarkRunFunction(b *testing.B) {
	algorithm := &Function{planners: planners(), clock: func() time.Time { return now }}
	fifty := function(deployments(50))

	cases := map[string]struct {
		f   *Function
		req *fnv1.RunFunctionRequest
	}{
		"Algorithm":     {f: algorithm, req: settled(b, algorithm, basic())},
		"50Deployments": {f: fifty, req: settled(b, fifty, basic())},
	}

	for name, tc := range cases {
		raw := deterministic(b, tc.req)

		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(len(raw)), "B/request")

			for b.Loop() {
				run(b, tc.f, tc.req)
			}
		})

		b.Run(name+"Wire", func(b *testing.B) {
			b.ReportAllocs()

			for b.Loop() {
				req := &fnv1.RunFunctionRequest{}
				if err := proto.Unmarshal(raw, req); err != nil {
					b.Fatal(err)
				}

				if _, err := proto.Marshal(run(b, tc.f, req)); err != nil {
					b.Fatal(err)
				}
			}
		})

		b.Run(name+"Echo", func(b *testing.B) {
			b.ReportAllocs()

			for b.Loop() {
				req := &fnv1.RunFunctionRequest{}
				if err := proto.Unmarshal(raw, req); err != nil {
					b.Fatal(err)
				}

				if _, err := proto.Marshal(&fnv1.RunFunctionResponse{Desired: req.GetDesired()}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// deployments plans n Deployments, and looks at each that is observed.
func deployments(n int) compose.Planner {
	return func(r compose.Request) (*compose.Plan, error) {
		p := &compose.Plan{Objects: map[string]compose.Desired{}, Ready: true}

		for i := range n {
			name := fmt.Sprintf("deployment-%02d", i)
			d := compose.Desired{Object: deployment(name)}

			if o, ok := r.Observed[name]; ok {
				status, ok := o.Map()["status"].(map[string]any)
				d.Ready = ok && status["readyReplicas"] == status["replicas"]
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
