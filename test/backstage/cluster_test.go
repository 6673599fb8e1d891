// SPDX-License-Identifier: Apache-2.0

//go:build backstage

package backstage

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xpextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"

	"github.com/capstan-dev/capstan/apis"
	"github.com/capstan-dev/capstan/test/outside"
)

// A cluster is an API server with the kinds and the definitions of Capstan, and with a namespace demo that a team owns. No controller
// runs: nothing is composed.
type cluster struct {
	client client.Client
	// What a portal needs, with the rights of integrations/backstage/rights.yaml.
	url, authority, token string
}

func newCluster(t *testing.T) cluster {
	t.Helper()
	config := outside.APIServer(t)
	crds := []*extv1.CustomResourceDefinition{definitions("compositeresourcedefinitions", "CompositeResourceDefinition"), definitions("compositions", "Composition")}
	kinds := [][]byte{apis.Algorithm, apis.Database, apis.Pipeline, apis.Training}
	for _, text := range kinds {
		xrd := &xpextv1.CompositeResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, xrd); err != nil {
			t.Fatal(err)
		}
		crd, err := xcrd.ForCompositeResource(xrd)
		if err != nil {
			t.Fatal(err)
		}
		crd.OwnerReferences = nil // the definition, which has no UID here
		crds = append(crds, crd)
	}
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: crds}); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	made := cluster{client: c, url: config.Host, authority: base64.StdEncoding.EncodeToString(config.CAData)}
	for _, text := range kinds {
		o := object(t, string(text))
		// What Crossplane reports once it serves the kind. Portals look for it.
		served := map[string]any{"kind": dig(o, "spec", "names", "kind"), "apiVersion": "capstan.dev/v1alpha1"}
		o["status"] = map[string]any{"controllers": map[string]any{"compositeResourceType": served}}
		made.create(t, o)
	}
	made.create(t, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": "demo", "annotations": map[string]any{"terasky.backstage.io/owner": "team-reco"},
	}})
	for _, file := range []string{"package/roles.yaml", "integrations/backstage/rights.yaml"} {
		data, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(data), "\n---\n") {
			made.create(t, object(t, document))
		}
	}
	accounts, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	got, err := accounts.CoreV1().ServiceAccounts("capstan-portal").CreateToken(t.Context(), "backstage", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.token = got.Status.Token
	return made
}

func (c cluster) create(t *testing.T, o map[string]any) {
	t.Helper()
	if err := c.client.Create(t.Context(), &unstructured.Unstructured{Object: o}); err != nil {
		t.Fatalf("the API server refuses %v: %v", o, err)
	}
}

// definitions is a kind of Crossplane in both of its versions, with any content.
func definitions(plural, kind string) *extv1.CustomResourceDefinition {
	version := func(name string, stored bool) extv1.CustomResourceDefinitionVersion {
		return extv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: stored, Schema: &extv1.CustomResourceValidation{
			OpenAPIV3Schema: &extv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
		}}
	}
	crd := &extv1.CustomResourceDefinition{Spec: extv1.CustomResourceDefinitionSpec{
		Group: "apiextensions.crossplane.io", Scope: extv1.ClusterScoped,
		Names:    extv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
		Versions: []extv1.CustomResourceDefinitionVersion{version("v1", true), version("v2", false)},
	}}
	crd.Name = plural + ".apiextensions.crossplane.io"
	return crd
}

func dig(o map[string]any, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(o, path...)
	return v
}
