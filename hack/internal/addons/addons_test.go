// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestStages(t *testing.T) {
	got := make([]string, 0, len(Stages()))
	for _, s := range Stages() {
		got = append(got, s.Name())
	}
	want := []string{
		"registry", "network policies", "coredns", "storage", "storage that grows", "metrics-server",
		"prometheus-operator", "prometheus", "prometheus-adapter", "outside", "s3", "mlflow", "cert-manager", "traefik", "crossplane",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("images come first, then policies, and Crossplane finds all it uses: -want, +got:\n%s", diff)
	}
}

func TestRender(t *testing.T) {
	values := map[string]any{
		"Image": "registry/image:1", "Helper": "registry/helper:1", "User": "capstan:kube-router",
		"Address": "198.19.128.10", "ControlPlane": "198.18.3.1", "Replicas": 2, "Volumes": "/volumes",
		"Driver": "xfs.capstan.dev", "Class": "capstan-xfs",
		"Authority": `"-----BEGIN"`, "TLS": map[string]string{"Authority": "YQ==", "Certificate": "Yg==", "Key": "Yw=="},
		"S3":       map[string]string{"AccessKeyID": "YQ==", "SecretAccessKey": "Yg=="},
		"MLflow":   map[string]string{"Username": "YQ==", "Password": "Yg=="},
		"Reloader": "registry/reloader:1", "Version": "3.15.0", "Config": `"externalRules: []\n"`, "Checksum": "00",
		"Serve": `"import uvicorn\n"`, "Environment": "/run/programs/mlflow", "System": []string{"/usr", "/lib"},
	}
	entries, err := manifests.ReadDir("manifests")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			out, err := render(entry.Name(), values)
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range splitDocuments(string(out)) {
				var object struct {
					APIVersion, Kind string
					Metadata         struct{ Name string }
				}
				if err := yaml.UnmarshalStrict([]byte(doc), &map[string]any{}); err != nil {
					t.Fatalf("not YAML: %v\n%s", err, doc)
				}
				if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
					t.Fatal(err)
				}
				if object.APIVersion == "" || object.Kind == "" || object.Metadata.Name == "" {
					t.Errorf("not an object: %s", doc)
				}
			}
		})
	}
	if _, err := render("coredns.yaml", map[string]any{}); err == nil {
		t.Error("a missing value renders as something")
	}
}

func splitDocuments(s string) []string { return strings.Split(s, "\n---\n") }
