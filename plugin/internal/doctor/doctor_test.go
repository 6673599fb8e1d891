// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	kubetesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/plugin/internal/cluster"
)

// healthy is the part of a cluster that decides most.
const healthy = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: crossplane, namespace: crossplane-system, labels: {app: crossplane}}
spec: {template: {spec: {containers: [{name: crossplane, image: "xpkg.example.org/crossplane/crossplane:v2.4.1", args: [core, start, --enable-signature-verification]}]}}}
---
apiVersion: pkg.crossplane.io/v1
kind: Configuration
metadata: {name: capstan-dev-capstan, labels: {app.kubernetes.io/version: v0.2.0}}
spec: {package: "ghcr.io/capstan-dev/capstan@sha256:00"}
status: {conditions: [{type: Installed, status: "True"}, {type: Healthy, status: "True"}]}
---
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata: {name: capstan-dev-function-capstan}
spec: {package: "registry.example.org:5000/capstan-dev/function-capstan:v0.2.0"}
status: {conditions: [{type: Installed, status: "True"}, {type: Healthy, status: "True"}]}
---
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata: {name: capstan-dev-provider-capstan}
spec: {package: "ghcr.io/capstan-dev/provider-capstan:v0.2.0"}
status: {conditions: [{type: Installed, status: "True"}, {type: Healthy, status: "True"}]}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
allowVolumeExpansion: true
---
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: databases.capstan.dev}
status: {conditions: [{type: Established, status: "False", message: "waiting"}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert-manager.io}
`

func TestExamine(t *testing.T) {
	cases := map[string]struct {
		reason  string
		objects func(string) string
		version string
		forbid  bool
		want    []string // as LEVEL SUBJECT: FOUND
		remedy  string
	}{
		"Healthy": {
			reason: "What is there is told with its version.", version: "v1.36.1",
			want: []string{
				"ok Kubernetes: v1.36.1", "ok Crossplane: v2.4.1", "ok Crossplane flags: --enable-signature-verification", "ok package capstan-dev-capstan: healthy v0.2.0",
				"ok package capstan-dev-function-capstan: healthy v0.2.0", "ok StorageClass: fast, volumes can grow", "ok cert-manager: its kinds are there",
			},
		},
		"Definition": {
			reason: "A definition that is not in force yet is told with its message.", version: "v1.36.1",
			want: []string{"MISSING definition databases.capstan.dev: Established is not True: waiting", "MISSING definition algorithms.capstan.dev: it is not there"},
		},
		"Old": {
			reason: "Versions are compared.", version: "v1.29.4-gke.100", objects: func(s string) string { return strings.Replace(s, "v2.4.1", "v2.3.9", 1) },
			want: []string{"MISSING Kubernetes: v1.29.4-gke.100 is older than 1.30.0", "MISSING Crossplane: v2.3.9 is older than 2.4.0"},
		},
		"Different": {
			reason: "Packages belong together.", version: "v1.36.1", objects: func(s string) string {
				return strings.Replace(s, "/provider-capstan:v0.2.0", "/provider-capstan:v0.1.0", 1)
			},
			want: []string{"MISSING versions of packages: they differ: v0.1.0, v0.2.0"},
		},
		"Unhealthy": {
			reason: "The message of Crossplane says why.", version: "v1.36.1", objects: func(s string) string {
				return strings.Replace(s, `{type: Healthy, status: "True"}`, `{type: Healthy, status: "False", message: "cannot pull"}`, 1)
			},
			want: []string{"MISSING package capstan-dev-capstan: Healthy is not True: cannot pull"},
		},
		"Empty": {
			reason: "All that is missing is told at once.", version: "v1.36.1", objects: func(string) string { return "" },
			want: []string{
				"MISSING Crossplane: there is no Deployment of it in namespace crossplane-system", "MISSING package capstan-dev-capstan: it is not installed",
				"MISSING platform.yaml: clusterroles capstan:compose is not there", "note settings: there is no EnvironmentConfig capstan: the defaults are in force",
				"note cert-manager: it is not installed, and no Database starts without it", "note Gateway API: it is not installed; needed for spec.route, and to split traffic by weight",
				"note metrics API: it is not there; needed for scaling on CPU", "note StorageClass: none of 0 is the default",
			},
		},
		"Database": {
			reason: "A Database waits for certificates.", version: "v1.36.1",
			objects: func(string) string {
				return "apiVersion: capstan.dev/v1alpha1\nkind: Database\nmetadata: {name: orders, namespace: demo}"
			},
			want: []string{"MISSING cert-manager: it is not installed, and no Database starts without it"},
		},
		"Forbidden": {
			reason: "What one may not read is not called missing.", version: "v1.36.1", forbid: true,
			want:   []string{`unknown clusterroles capstan:compose: it cannot be read: clusterroles.rbac.authorization.k8s.io "capstan:compose" is forbidden: no`},
			remedy: "ask for the right to get clusterroles.rbac.authorization.k8s.io",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := healthy
			if tc.objects != nil {
				text = tc.objects(text)
			}
			findings := Examine(t.Context(), clusterOf(t, text, tc.version, tc.forbid))
			told := map[string]bool{}
			var all []string
			for _, f := range findings {
				line := fmt.Sprintf("%s %s: %s", f.Level, f.Subject, f.Found)
				told[line], all = true, append(all, line)
				if f.Level != OK && f.Remedy == "" {
					t.Errorf("%s\nno remedy: %s", tc.reason, line)
				}
				if tc.forbid && f.Level == Missing && strings.Contains(f.Found, "clusterroles") {
					t.Errorf("%s\ngot %s", tc.reason, line)
				}
			}
			for _, want := range tc.want {
				if !told[want] {
					t.Errorf("%s\nwant %q among:\n%s", tc.reason, want, strings.Join(all, "\n"))
				}
			}
			if tc.remedy != "" && !strings.Contains(fmt.Sprint(findings), tc.remedy) {
				t.Errorf("%s\nwant the remedy %q", tc.reason, tc.remedy)
			}
		})
	}
}

// clusterOf objects, with a version.
func clusterOf(t *testing.T, text, version string, forbid bool) *cluster.Cluster {
	t.Helper()
	kinds := map[schema.GroupVersionResource]string{
		crds: "CustomResourceDefinitionList", xrds: "CompositeResourceDefinitionList", settings: "EnvironmentConfigList", roles: "ClusterRoleList",
		policies: "ValidatingAdmissionPolicyList", classes: "StorageClassList", apiServices: "APIServiceList", gatewayClass: "GatewayClassList",
		connections: "ClusterProviderConfigList", cluster.Deployments: "DeploymentList", cluster.Databases: "DatabaseList",
	}
	var all []runtime.Object
	for doc := range strings.SplitSeq(text, "\n---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		u := &unstructured.Unstructured{}
		data, err := yaml.YAMLToJSON([]byte(doc))
		if err := errors.Join(err, u.UnmarshalJSON(data)); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, all...)
	if forbid {
		client.PrependReactor("get", "clusterroles", func(a kubetesting.Action) (bool, runtime.Object, error) {
			name := a.(kubetesting.GetAction).GetName()

			return true, nil, apierrors.NewForbidden(roles.GroupResource(), name, errors.New("no"))
		})
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintf(w, `{"gitVersion": %q}`, version) }))
	t.Cleanup(srv.Close)
	base, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}

	return &cluster.Cluster{Dynamic: client, HTTP: srv.Client(), Base: base}
}

func TestTag(t *testing.T) {
	got := []string{tag("a:5000/b/c:v1"), tag("a:5000/b/c"), tag("a/b@sha256:00"), tag("a/b:v1@sha256:00")}
	if diff := cmp.Diff([]string{"v1", "", "", "v1"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
