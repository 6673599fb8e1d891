// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEncode(t *testing.T) {
	type want struct {
		m   map[string]any
		err error
	}
	cases := map[string]struct {
		reason string
		v      any
		want   want
	}{
		"Typed": {
			reason: "Of an API type the status and the time that is not set should be left out, and empty objects kept.",
			v: &appsv1.Deployment{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
				ObjectMeta: metav1.ObjectMeta{Name: "reco"},
				Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Containers: []corev1.Container{},
					Volumes: []corev1.Volume{{
						Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
					}},
				}}},
			},
			want: want{m: map[string]any{
				"apiVersion": "apps/v1",
				"kind":       "Deployment",
				"metadata":   map[string]any{"name": "reco"},
				"spec": map[string]any{
					"strategy": map[string]any{},
					"template": map[string]any{
						"metadata": map[string]any{},
						"spec": map[string]any{
							"containers": []any{},
							"volumes":    []any{map[string]any{"name": "tmp", "emptyDir": map[string]any{}}},
						},
					},
				},
			}},
		},
		"Map": {
			reason: "Of a map nulls should be left out and everything else kept, integers exactly.",
			v: map[string]any{
				"a": nil, "b": []any{nil, true, "x", 1.5, json.Number("3")}, "c": map[string]any{"d": nil},
				"e": int64(1) << 53, "f": []string{"<&>"},
			},
			want: want{m: map[string]any{
				"b": []any{nil, true, "x", 1.5, 3.0}, "c": map[string]any{}, "e": float64(1 << 53), "f": []any{"<&>"},
			}},
		},
		"TooGreat": {
			reason: "An integer that would change should be refused.",
			v:      map[string]any{"a": uint64(math.MaxUint64)},
			want:   want{err: cmpopts.AnyError},
		},
		"NotFinite": {
			reason: "What JSON cannot say should be refused.",
			v:      map[string]any{"a": math.NaN()},
			want:   want{err: cmpopts.AnyError},
		},
		"NoObject": {
			reason: "What is not an object should be refused.",
			v:      []string{"a"},
			want:   want{err: cmpopts.AnyError},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := encode(tc.v)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Fatalf("%s\nencode(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want.m, s.AsMap()); diff != "" {
				t.Errorf("%s\nencode(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzCodec looks for objects that come back changed.
func FuzzCodec(f *testing.F) {
	f.Add([]byte(`{"a":[1,-0,1e21,9007199254740992,{"b":null,"c":"\u0000\ud800"}],"d":{},"":true}`))
	f.Add([]byte(`{"metadata":{"creationTimestamp":null},"spec":{"replicas":3}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			return
		}
		s, err := structOf(m)
		if err != nil {
			t.Fatalf("structOf(%s): unexpected error: %v", raw, err)
		}
		got := (&object{resource: s}).Map()
		if diff := cmp.Diff(withoutNulls(m), got); diff != "" {
			t.Errorf("structOf(%s): -want, +got:\n%s", raw, diff)
		}
		again, err := structOf(got)
		if err != nil {
			t.Fatalf("structOf(Map()): unexpected error: %v", err)
		}
		if diff := cmp.Diff(got, again.AsMap()); diff != "" {
			t.Errorf("structOf(Map()): -first, +second:\n%s", diff)
		}
	})
}

// withoutNulls in maps, however deep.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if e != nil {
				out[k] = withoutNulls(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutNulls(v[i])
		}
		return out
	default:
		return v
	}
}
