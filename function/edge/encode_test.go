// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// stockStruct is what the stock codec makes of a Struct.
func stockStruct(tb testing.TB, raw string) *structpb.Struct {
	tb.Helper()
	s := &structpb.Struct{}
	if err := proto.Unmarshal([]byte(raw), s); err != nil {
		tb.Fatalf("the stock codec cannot read what was encoded: %v", err)
	}
	return s
}

type inner struct {
	Name string `json:"name"`
	Kept string `json:"kept"`
}

type absent struct {
	Absent string `json:"absent"`
}

type outer struct {
	inner   `json:",inline"`
	*absent `json:",inline"`

	Name    string            `json:"name"`
	Bytes   []byte            `json:"bytes"`
	Hidden  string            `json:"-"`
	Empty   map[string]string `json:"empty,omitempty"`
	Nothing *string           `json:"nothing"`
}

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
		"NotUTF8": {
			reason: "What is no text should become one, byte by byte, as JSON does it: half a letter fails no pass.",
			v:      map[string]any{"a": "\xe2\x82x", "b": []string{"\xff"}},
			want:   want{m: map[string]any{"a": "\ufffd\ufffdx", "b": []any{"\ufffd"}}},
		},
		"Embedded": {
			reason: "Fields of what is embedded should be the outer one's, the outer ones win, and nothing come of what is not there.",
			v:      &outer{inner: inner{Name: "inner", Kept: "inner"}, Name: "outer", Bytes: []byte("abc"), Hidden: "x"},
			want:   want{m: map[string]any{"name": "outer", "kept": "inner", "bytes": "YWJj"}},
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
			raw, err := (&Encoder{}).EncodeComposed(tc.v)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Fatalf("%s\nEncodeComposed(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want.m, stockStruct(t, raw).AsMap()); diff != "" {
				t.Errorf("%s\nEncodeComposed(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// examples whose golden files are seeds.
func examples(tb testing.TB) []composetest.Example {
	tb.Helper()
	var all []composetest.Example
	for _, kind := range []string{"algorithm", "database", "experiment"} {
		es, err := composetest.Examples("../../examples/" + kind)
		if err != nil {
			tb.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(es)) {
			all = append(all, es[name])
		}
	}
	return all
}

// FuzzEncode looks for objects that the encoder writes differently from the one that goes by way of JSON, as they are and as objects
// of types with numbers, times, quantities and embedded structs.
func FuzzEncode(f *testing.F) {
	for _, raw := range []string{
		`{"a":[1,-0,1e21,9007199254740992,{"b":null,"c":"\u0000\ud800"}],"d":{},"":true,"status":{"e":[[]]}}`,
		`{"metadata":{"creationTimestamp":"2026-03-01T12:00:00Z","labels":{"a":"<b>"},"annotations":{}},"spec":{"replicas":3,"selector":null,
			"template":{"metadata":{"name":"x"},"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"500m","memory":1e3}},
			"ports":[{"containerPort":80}],"livenessProbe":{"httpGet":{"port":"http"}},"readinessProbe":{"httpGet":{"port":8080}}}],
			"volumes":[{"name":"tmp","emptyDir":{"sizeLimit":"1Gi"}}]}},"metrics":[{"type":"Resource","resource":{"name":"cpu",
			"target":{"type":"Utilization","averageUtilization":70}}}],"ingress":[{"ports":[{"port":80},{"port":"web"}]}]},
			"status":{"conditions":[{"lastTransitionTime":null}]},"data":{"a":"b"},"binaryData":{"c":"AA=="}}`,
		`{"spec":{"image":"a","replicas":2,"config":{"a":"b"},"scaling":{"minReplicas":0,"metrics":[{"type":"cpu","target":80}]},
			"rollout":{"steps":[{"weight":5,"duration":"10m"}]},"resources":{"cpu":"0.5","memory":"1Gi"}}}`,
	} {
		f.Add([]byte(raw))
	}
	for _, e := range examples(f) {
		for _, o := range slices.Concat([]map[string]any{e.XR}, e.Observed, e.Want) {
			raw, err := json.Marshal(o)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(raw)
		}
	}
	e := &Encoder{}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, v := range []any{
			&map[string]any{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &corev1.ConfigMap{}, &corev1.Service{}, &batchv1.CronJob{},
			&autoscalingv2.HorizontalPodAutoscaler{}, &networkingv1.NetworkPolicy{}, &v1alpha1.Algorithm{}, &v1alpha1.Database{},
			&applyappsv1.DeploymentApplyConfiguration{}, &applybatchv1.JobApplyConfiguration{},
			&applynetworkingv1.NetworkPolicyApplyConfiguration{},
		} {
			if err := json.Unmarshal(raw, v); err != nil {
				continue
			}
			want, wantErr := structOf(v)
			got, err := e.Encode(v)
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("Encode(%T): want error %v, got %v", v, wantErr, err)
			}
			if err != nil {
				continue
			}
			if have := stockStruct(t, got); !proto.Equal(want, have) {
				t.Errorf("Encode(%T): -want, +got:\n%s", v, cmp.Diff(want, have, protocmp.Transform()))
			}
		}
	})
}
