// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/hack/internal/build"
)

func TestStages(t *testing.T) {
	names := func(stages []Stage) []string {
		var got []string
		for _, s := range stages {
			got = append(got, s.Name())
		}
		return got
	}
	if diff := cmp.Diff([]string{"registry", "coredns", "crossplane"}, names(Core())); diff != "" {
		t.Errorf("what a first Algorithm needs, images first: -want, +got:\n%s", diff)
	}
	want := []string{
		"network policies", "storage", "storage that grows", "metrics-server", "prometheus-operator", "prometheus",
		"prometheus-adapter", "traefik", "outside", "s3", "mlflow", "cert-manager",
	}
	if diff := cmp.Diff(want, names(Rest())); diff != "" {
		t.Errorf("what rollouts need comes before what databases need: -want, +got:\n%s", diff)
	}
}

// TestNamed shows that an add-on which no cluster has as a rule is found by its name, and that a wrong name is no add-on.
func TestNamed(t *testing.T) {
	found, err := Named("kueue")
	if err != nil || len(found) != 1 || found[0].Name() != "kueue" {
		t.Errorf("want the add-on kueue, got %v, %v", found, err)
	}
	if found, err := Named("snapshots"); err != nil || len(found) != 1 {
		t.Errorf("want the add-on snapshots, got %v, %v", found, err)
	}
	if found, err := Named("kueue", "queue"); err == nil {
		t.Errorf("want no add-on of a wrong name, got %v", found)
	}
}

// TestKueueRole shows that the rights of the module get a name of ours.
func TestKueueRole(t *testing.T) {
	got := string(kueueRole([]byte("kind: ClusterRole\nmetadata:\n  name: manager-role\nrules: []\n")))
	if diff := cmp.Diff("kind: ClusterRole\nmetadata:\n  name: capstan:kueue\nrules: []\n", got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestToolsAreKnown(t *testing.T) {
	b := &build.Builder{Source: "../.."}
	for _, name := range Tools(slices.Concat(Core(), Rest(), Optional())) {
		if _, err := b.Dir(name); err != nil {
			t.Errorf("a stage waits for a tool that nobody builds: %v", err)
		}
	}
}

// TestCharts compares the versions that hack/charts rendered with those that run.
func TestCharts(t *testing.T) {
	b := &build.Builder{Source: "../.."}
	for _, tool := range []string{"crossplane", "cert-manager"} {
		version, err := b.Version(tool)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := manifests.ReadFile("manifests/" + tool + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(manifest), "\n")
		if want := "# Rendered by hack/charts from chart " + tool + " " + version + "."; first != want {
			t.Errorf("run hack/charts: the manifest of %s begins with %q, want %q", tool, first, want)
		}
	}
}

func TestRender(t *testing.T) {
	values := map[string]any{
		"core": "registry/crossplane:1", "controller": "registry/controller:1", "webhook": "registry/webhook:1",
		"Image": "registry/image:1", "Helper": "registry/helper:1", "User": "capstan:kube-router",
		"Address": "198.19.128.10", "ControlPlane": "198.18.3.1", "Replicas": 2, "Volumes": "/volumes",
		"Driver": "xfs.capstan.dev", "Class": "capstan-xfs",
		"Authority": `"-----BEGIN"`, "TLS": map[string]string{"Authority": "YQ==", "Certificate": "Yg==", "Key": "Yw=="},
		"S3":       map[string]string{"AccessKeyID": "YQ==", "SecretAccessKey": "Yg=="},
		"MLflow":   map[string]string{"Username": "YQ==", "Password": "Yg=="},
		"Reloader": "registry/reloader:1", "Version": "3.15.0", "Config": `"externalRules: []\n"`, "Checksum": "00",
		"Controller": "registry/snapshot-controller:1", "Sidecar": "registry/csi-snapshotter:1", "Socket": "/run/xfs/csi.sock", "Folder": "/run/xfs",
		"Webhooks": kueueWebhooks(), "Configurations": kueueConfigurations(),
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
