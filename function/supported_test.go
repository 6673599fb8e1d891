// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// fromCluster makes a request one for an object that the API server stores.
func fromCluster(req *fnv1.RunFunctionRequest) {
	meta := req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue()
	meta.Fields["managedFields"] = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{
		structpb.NewStructValue(structFrom(map[string]any{"manager": "kubectl", "operation": "Apply"})),
	}})
	req.Meta.Capabilities = []fnv1.Capability{
		fnv1.Capability_CAPABILITY_CAPABILITIES, fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES,
		fnv1.Capability_CAPABILITY_CREDENTIALS, fnv1.Capability_CAPABILITY_CONDITIONS, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS,
	}
}

// ofDatabase changes the composite resource into a small Database.
func ofDatabase(req *fnv1.RunFunctionRequest) {
	fields := req.GetObserved().GetComposite().GetResource().GetFields()
	fields["kind"] = structpb.NewStringValue("Database")
	fields["spec"] = structpb.NewStructValue(structFrom(map[string]any{"engine": "postgres", "version": "17", "replicas": 1, "storage": "1Gi"}))
}

// answered gives the answer to the question whether the cluster has the policies.
func answered(fields map[string]any) func(*fnv1.RunFunctionRequest) {
	return func(req *fnv1.RunFunctionRequest) {
		req.RequiredSchemas = map[string]*fnv1.Schema{requiredPolicy: {OpenapiV3: structFrom(fields)}}
	}
}

// withoutSchemas removes a capability, as with an earlier version of Crossplane.
func withoutSchemas(req *fnv1.RunFunctionRequest) {
	req.Meta.Capabilities = req.GetMeta().GetCapabilities()[:4]
}

// acceptedBefore is a status in which the spec was accepted.
func acceptedBefore(req *fnv1.RunFunctionRequest) {
	req.GetObserved().GetComposite().GetResource().GetFields()["status"] = structpb.NewStructValue(structFrom(map[string]any{
		"conditions": []any{map[string]any{"type": "Accepted", "status": "True", "reason": "Valid"}},
	}))
}

// running is a Deployment that an earlier run composed.
func running(req *fnv1.RunFunctionRequest) {
	req.Observed.Resources = map[string]*fnv1.Resource{"deployment-a": resourceOf(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "reco-a", "namespace": "shop"},
		"spec":     map[string]any{"replicas": 2.0},
	})}
}

func TestUnsupported(t *testing.T) {
	const (
		kubernetes = "the cluster does not serve ValidatingAdmissionPolicy in admissionregistration.k8s.io/v1, which protects data from " +
			"deletion: Capstan needs Kubernetes 1.30 or later, so upgrade the cluster"
		crossplane = "this version of Crossplane does not answer functions that ask which kinds the cluster has: Capstan needs Crossplane " +
			"v2.4 or later, so upgrade Crossplane"
	)
	type want struct {
		Accepted string
		Asks     bool
	}
	cases := map[string]struct {
		reason string
		mods   []func(*fnv1.RunFunctionRequest)
		want   want
	}{
		"FirstCall": {
			reason: "Crossplane has not answered yet: it is asked, and nothing is refused.",
			want:   want{Accepted: "True Valid: the spec is carried out", Asks: true},
		},
		"Served": {
			reason: "A cluster with the policies is new enough.",
			mods:   []func(*fnv1.RunFunctionRequest){answered(map[string]any{"type": "object"})},
			want:   want{Accepted: "True Valid: the spec is carried out", Asks: true},
		},
		"KubernetesTooOld": {
			reason: "One condition names the cause, the version and the remedy.",
			mods:   []func(*fnv1.RunFunctionRequest){answered(nil)},
			want:   want{Accepted: "False KubernetesTooOld: " + kubernetes, Asks: true},
		},
		"CrossplaneTooOld": {
			reason: "It never answers, so that waiting for an answer would last for ever.",
			mods:   []func(*fnv1.RunFunctionRequest){withoutSchemas},
			want:   want{Accepted: "False CrossplaneTooOld: " + crossplane, Asks: true},
		},
		"AcceptedBefore": {
			reason: "What runs is not refused later, and Crossplane is not asked on each run.",
			mods:   []func(*fnv1.RunFunctionRequest){answered(nil), withoutSchemas, acceptedBefore},
			want:   want{Accepted: "True Valid: the spec is carried out"},
		},
		"Preview": {
			reason: "A preview without a cluster shows what a supported cluster gets.",
			mods: []func(*fnv1.RunFunctionRequest){answered(nil), withoutSchemas, func(req *fnv1.RunFunctionRequest) {
				delete(req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields(), "managedFields")
			}},
			want: want{Accepted: "True Valid: the spec is carried out"},
		},
	}
	for name, tc := range cases {
		for kind, of := range map[string]func(*fnv1.RunFunctionRequest){"Algorithm": func(*fnv1.RunFunctionRequest) {}, "Database": ofDatabase} {
			t.Run(name+kind, func(t *testing.T) {
				fn := newFunction(kinds(), func() time.Time { return now })
				rsp := run(t, fn, request(append([]func(*fnv1.RunFunctionRequest){fromCluster, of}, tc.mods...)...))
				asked, asks := rsp.GetRequirements().GetSchemas()[requiredPolicy]
				got := want{Asks: asks}
				for _, c := range rsp.GetConditions() {
					if c.GetType() == "Accepted" {
						status := map[fnv1.Status]string{fnv1.Status_STATUS_CONDITION_TRUE: "True", fnv1.Status_STATUS_CONDITION_FALSE: "False"}
						got.Accepted = status[c.GetStatus()] + " " + c.GetReason() + ": " + c.GetMessage()
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
				selector := &fnv1.SchemaSelector{ApiVersion: policyAPIVersion, Kind: policyKind}
				if diff := cmp.Diff(selector, asked, protocmp.Transform()); asks && diff != "" {
					t.Errorf("asks for: -want, +got:\n%s", diff)
				}
			})
		}
	}
}

// TestUnsupportedKeeps shows that nothing is deleted and nothing is made where Capstan is not supported.
func TestUnsupportedKeeps(t *testing.T) {
	fn := newFunction(kinds(), func() time.Time { return now })
	rsp := run(t, fn, request(fromCluster, answered(nil), running))
	var got []string
	for name := range rsp.GetDesired().GetResources() {
		got = append(got, name)
	}
	if diff := cmp.Diff([]string{"deployment-a"}, got); diff != "" {
		t.Errorf("what is observed, and nothing else, should be desired: -want, +got:\n%s", diff)
	}
}

// TestOldestVersions holds together what the function, the packages and the docs say.
func TestOldestVersions(t *testing.T) {
	for _, file := range []string{"crossplane.yaml", "package/function/crossplane.yaml", "package/provider/crossplane.yaml"} {
		var meta struct {
			Spec struct{ Crossplane struct{ Version string } }
		}
		if err := yaml.Unmarshal(content(t, file), &meta); err != nil {
			t.Fatal(err)
		}

		// Crossplane marks a package unhealthy whose constraint it does not meet.
		if want := ">=" + oldestCrossplane + ".0-0"; meta.Spec.Crossplane.Version != want {
			t.Errorf("%s asks for Crossplane %q, want %q", file, meta.Spec.Crossplane.Version, want)
		}
	}
	docs := string(content(t, "docs/versions.md"))
	for _, row := range []string{"| Kubernetes | " + oldestKubernetes + " |", "| Crossplane | " + oldestCrossplane + " |"} {
		if !strings.Contains(docs, row) {
			t.Errorf("docs/versions.md does not have %q", row)
		}
	}
}

func content(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
