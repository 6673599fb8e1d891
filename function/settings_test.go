// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

func TestSettingsOf(t *testing.T) {
	type want struct {
		cpu, memory string
		mistakes    string
	}

	input := func(fields map[string]any) func(*fnv1.RunFunctionRequest) {
		return func(req *fnv1.RunFunctionRequest) {
			m := map[string]any{"apiVersion": inputAPIVersion, "kind": inputKind, "metadata": map[string]any{"name": "x"}}
			maps.Copy(m, fields)

			req.Input = structFrom(m)
		}
	}

	environment := func(data map[string]any) func(*fnv1.RunFunctionRequest) {
		return func(req *fnv1.RunFunctionRequest) {
			req.RequiredResources = map[string]*fnv1.Resources{requiredSettings: {Items: []*fnv1.Resource{
				resourceOf(map[string]any{"metadata": map[string]any{"name": settingsName}, "data": data}),
			}}}
		}
	}

	algorithm := func(fields map[string]any) map[string]any { return map[string]any{"algorithm": fields} }

	cases := map[string]struct {
		reason string
		req    *fnv1.RunFunctionRequest
		want   want
	}{
		"Defaults": {
			reason: "Without input and EnvironmentConfig the defaults should hold.",
			req:    request(),
			want:   want{cpu: "250m", memory: "256Mi"},
		},
		"NotFound": {
			reason: "An EnvironmentConfig that Crossplane did not find should change nothing.",
			req: request(func(req *fnv1.RunFunctionRequest) {
				req.RequiredResources = map[string]*fnv1.Resources{requiredSettings: nil}
			}),
			want: want{cpu: "250m", memory: "256Mi"},
		},
		"FieldByField": {
			reason: "The EnvironmentConfig should win over the input and it over the defaults, field by field.",
			req: request(
				input(algorithm(map[string]any{"cpu": "1", "memory": "1Gi"})),
				environment(algorithm(map[string]any{"cpu": "2", "memory": nil})),
			),
			want: want{cpu: "2", memory: "1Gi"},
		},
		"Number": {
			reason: "A quantity may be a number.",
			req:    request(environment(algorithm(map[string]any{"cpu": 2}))),
			want:   want{cpu: "2", memory: "256Mi"},
		},
		"UnknownField": {
			reason: "A field that does not exist should be named, and cost nothing but itself.",
			req:    request(input(algorithm(map[string]any{"cup": "1", "memory": "1Gi"}))),
			want: want{
				cpu: "250m", memory: "1Gi",
				mistakes: `input of function-capstan: algorithm.cup: cannot use "1": unknown field "algorithm.cup"`,
			},
		},
		"EmptyUnknownField": {
			reason: "Also a field without content that does not exist should be named.",
			req:    request(environment(map[string]any{"database": map[string]any{}})),
			want: want{
				cpu: "250m", memory: "256Mi",
				mistakes: `EnvironmentConfig "capstan": database: cannot use "map[]": unknown field "database"`,
			},
		},
		"NoQuantity": {
			reason: "A value that is no quantity should be told with its path, and the value from before stand.",
			req: request(
				input(algorithm(map[string]any{"cpu": "1"})),
				environment(algorithm(map[string]any{"cpu": "fast", "memory": "1Gi"})),
			),
			want: want{
				cpu: "1", memory: "1Gi",
				mistakes: `EnvironmentConfig "capstan": algorithm.cpu: cannot use "fast": quantities must match the regular ` +
					`expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
			},
		},
		"NotPositive": {
			reason: "Nothing should be run with no memory.",
			req:    request(environment(algorithm(map[string]any{"memory": "-1Gi"}))),
			want: want{
				cpu: "250m", memory: "256Mi",
				mistakes: `EnvironmentConfig "capstan": algorithm.memory: cannot use "-1Gi": must be greater than zero`,
			},
		},
		"WrongKind": {
			reason: "An input of another type should be told.",
			req: request(func(req *fnv1.RunFunctionRequest) {
				req.Input = structFrom(map[string]any{"apiVersion": "example.org/v1", "kind": "Resources"})
			}),
			want: want{
				cpu: "250m", memory: "256Mi",
				mistakes: `input of function-capstan: cannot use apiVersion "example.org/v1" and kind "Resources": must be ` +
					`capstan.dev/v1alpha1 Settings`,
			},
		},
		"ManyMistakes": {
			reason: "Only so many mistakes should be told as a person reads.",
			req:    request(environment(map[string]any{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5})),
			want: want{
				cpu: "250m", memory: "256Mi",
				mistakes: `EnvironmentConfig "capstan": a: cannot use "1": unknown field "a"; ` +
					`EnvironmentConfig "capstan": b: cannot use "2": unknown field "b"; ` +
					`EnvironmentConfig "capstan": c: cannot use "3": unknown field "c"; 2 more`,
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := settingsOf(tc.req)

			got := want{cpu: s.Algorithm.CPU.String(), memory: s.Algorithm.Memory.String()}
			if err != nil {
				got.mistakes = err.Error()
			}

			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\nsettingsOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
