// SPDX-License-Identifier: Apache-2.0

//go:build integration

package registry_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
)

// registered returns a model as the registry has it, or nil.
func (b *bench) registered(name string) *mlflow.Model {
	b.t.Helper()
	status, body := b.server.Call(http.MethodGet, "registered-models/get?name="+url.QueryEscape(name), nil)
	if status == http.StatusNotFound {
		return nil
	}
	var answer struct {
		Model *mlflow.Model `json:"registered_model"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Model == nil {
		b.t.Fatalf("cannot read model %q: %d: %s", name, status, body)
	}
	return answer.Model
}

// versions of a model that the registry has, the newest first.
func (b *bench) versions(model string) []mlflow.Version {
	b.t.Helper()
	var answer struct {
		Versions []mlflow.Version `json:"model_versions"`
	}
	body := b.must(http.MethodGet, "model-versions/search?filter="+url.QueryEscape("name = '"+model+"'"), nil)
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		b.t.Fatal(err)
	}
	return answer.Versions
}

// make an entry as somebody who knows nothing of us.
func (b *bench) make(model string, versions ...string) {
	b.t.Helper()
	b.must(http.MethodPost, "registered-models/create", fields{"name": model})
	for _, source := range versions {
		b.must(http.MethodPost, "model-versions/create", fields{"name": model, "source": source})
	}
}

func (b *bench) alias(model, alias, version string) {
	b.t.Helper()
	b.must(http.MethodPost, "registered-models/alias", fields{"name": model, "alias": alias, "version": version})
}

// TestModelLife shows what becomes of a model from its creation to its end, and that what others put there stays.
func TestModelLife(t *testing.T) {
	b, name := newBench(t), unique(t)
	owner := cluster + "/shop/" + name
	cr := add(b, &v1alpha1.RegisteredModel{}, "shop", name, policies("*"))
	change(b, cr, func(cr *v1alpha1.RegisteredModel) {
		cr.Spec.ForProvider = v1alpha1.RegisteredModelParameters{
			Description: new("Recommends."), Tags: map[string]string{"team": "shop", "path/to x": "1"},
		}
	})
	b.settle(cr)
	want := &mlflow.Model{
		Name: name, Description: "Recommends.",
		Tags: mlflow.Tags{v1alpha1.TagOwner: owner, "team": "shop", "path/to x": "1"},
	}
	if diff := cmp.Diff(want, b.registered(name)); diff != "" {
		t.Errorf("After creation: -want, +got:\n%s", diff)
	}

	// Others set tags and aliases, too.
	b.must(http.MethodPost, "model-versions/create", fields{"name": name, "source": "s3://x/1"})
	b.alias(name, "zeta", "1")
	b.alias(name, "alpha", "1")
	b.must(http.MethodPost, "registered-models/set-tag", fields{"name": name, "key": "theirs", "value": "1"})
	b.must(http.MethodPost, "registered-models/set-tag", fields{"name": name, "key": "team", "value": "stolen"})
	change(b, cr, func(cr *v1alpha1.RegisteredModel) {
		cr.Spec.ForProvider.Description = nil
		cr.Spec.ForProvider.Tags = map[string]string{"team": "shop", "new": ""}
	})
	b.settle(cr)
	want.Tags = mlflow.Tags{v1alpha1.TagOwner: owner, "team": "shop", "new": "", "theirs": "1"}
	want.Aliases = []mlflow.Alias{{Alias: "alpha", Version: "1"}, {Alias: "zeta", Version: "1"}}
	if diff := cmp.Diff(want, b.registered(name), cmpopts.SortSlices(func(a, b mlflow.Alias) bool { return a.Alias < b.Alias })); diff != "" {
		t.Errorf("After changes: -want, +got:\n%s", diff)
	}
	seen := v1alpha1.RegisteredModelObservation{
		Name: name, Description: "Recommends.", TagKeys: []string{"new", "team"},
		Aliases: []v1alpha1.AliasObservation{{Alias: "alpha", Version: "1"}, {Alias: "zeta", Version: "1"}},
	}
	if diff := cmp.Diff(seen, cr.Status.AtProvider); diff != "" {
		t.Errorf("Status: -want, +got:\n%s", diff)
	}
	b.gone(cr)
	if m := b.registered(name); m != nil {
		t.Errorf("With policy Delete the model must go, got %v", m)
	}
}

// TestStays shows that without the policy Delete everything stays in the registry, and is found again by a managed resource of
// the same name.
func TestStays(t *testing.T) {
	b, name := newBench(t), unique(t)
	model := func() *v1alpha1.RegisteredModel { return add(b, &v1alpha1.RegisteredModel{}, "shop", name) }
	version := func() *v1alpha1.ModelVersion { return b.version("shop", name, name, "s3://models/1") }
	alias := func() *v1alpha1.ModelAlias { return b.aliased("shop", name, name, "champion", "1") }
	m, v, a := model(), version(), alias()
	b.settle(m, v, a)
	b.gone(a)
	b.gone(v)
	b.gone(m)
	before := b.registered(name)
	b.proxy.Reset()
	m, v, a = model(), version(), alias()
	b.settle(m, v, a)
	if got := b.writes(); len(got) > 0 {
		t.Errorf("What is there is found and not made again, got %v", got)
	}
	if diff := cmp.Diff(before, b.registered(name)); diff != "" {
		t.Errorf("-before, +after:\n%s", diff)
	}
	if got := meta.GetExternalName(v); got != "1" {
		t.Errorf("The version's number must be known again, got %q", got)
	}
}

// version is a ModelVersion.
func (b *bench) version(namespace, name, model, source string, edits ...edit) *v1alpha1.ModelVersion {
	b.t.Helper()
	mg := &v1alpha1.ModelVersion{}
	mg.Spec.ForProvider = v1alpha1.ModelVersionParameters{Model: model}
	if source != "" {
		mg.Spec.ForProvider.Source = new(source)
	}
	return add(b, mg, namespace, name, edits...)
}

// aliased is a ModelAlias.
func (b *bench) aliased(namespace, name, model, alias, version string, edits ...edit) *v1alpha1.ModelAlias {
	b.t.Helper()
	mg := &v1alpha1.ModelAlias{}
	mg.Spec.ForProvider = v1alpha1.ModelAliasParameters{Model: model, Alias: alias, Version: version}
	return add(b, mg, namespace, name, edits...)
}

// TestVersionLife shows what becomes of a version.
func TestVersionLife(t *testing.T) {
	b, name := newBench(t), unique(t)
	owner := cluster + "/shop/" + name + "-a"
	b.settle(add(b, &v1alpha1.RegisteredModel{}, "shop", name))
	cr := b.version("shop", name+"-a", name, "s3://models/reco/a", policies("*"))
	change(b, cr, func(cr *v1alpha1.ModelVersion) {
		cr.Spec.ForProvider.RunID = new("5c3a2f6d8b1e4f0a9c7d6e5f4a3b2c1d")
		cr.Spec.ForProvider.Description = new("October.")
		cr.Spec.ForProvider.Tags = map[string]string{"dataset": "10", "old": "1"}
	})
	b.settle(cr)
	b.alias(name, "z", "1")
	b.alias(name, "a", "1")
	change(b, cr, func(cr *v1alpha1.ModelVersion) {
		cr.Spec.ForProvider.Description = new("November.")
		cr.Spec.ForProvider.Tags = map[string]string{"dataset": "11", "digest": "sha256:" + strings.Repeat("0a", 32)}
	})
	b.settle(cr)
	want := v1alpha1.ModelVersionObservation{
		Model: name, Version: "1", Source: "s3://models/reco/a", ArtifactURI: "s3://models/reco/a",
		RunID: "5c3a2f6d8b1e4f0a9c7d6e5f4a3b2c1d", Status: "READY", Aliases: []string{"a", "z"}, TagKeys: []string{"dataset", "digest"},
		Digest: "sha256:" + strings.Repeat("0a", 32),
	}
	if diff := cmp.Diff(want, cr.Status.AtProvider); diff != "" {
		t.Errorf("Status: -want, +got:\n%s", diff)
	}
	v := b.versions(name)[0]
	if diff := cmp.Diff(mlflow.Tags{v1alpha1.TagOwner: owner, "dataset": "11", "digest": want.Digest}, v.Tags); diff != "" || v.Description != "November." {
		t.Errorf("In the registry: %q, tags -want, +got:\n%s", v.Description, diff)
	}

	// An alias keeps it from going.
	if err := b.Delete(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	b.reconcile(cr)
	if got := told(cr, apis.TypeConnected); got != string(apis.ReasonNotEmpty) || len(b.versions(name)) != 1 {
		t.Errorf("A version with aliases must stay and say why, got %s: %s", got, cr.GetCondition(apis.TypeConnected).Message)
	}
	for _, a := range []string{"a", "z"} {
		b.must(http.MethodDelete, "registered-models/alias", fields{"name": name, "alias": a})
	}
	for range 3 {
		b.reconcile(cr)
	}
	if b.read(cr) || len(b.versions(name)) != 0 {
		t.Errorf("Without aliases it must go, got %v", b.versions(name))
	}
}

// TestVersionIsImmutable shows that a version that was made stays what it is.
func TestVersionIsImmutable(t *testing.T) {
	b, name := newBench(t), unique(t)
	b.settle(add(b, &v1alpha1.RegisteredModel{}, "shop", name))
	first := b.version("shop", name, name, "s3://models/1")
	b.settle(first)
	b.gone(first)
	b.proxy.Reset()
	again := b.version("shop", name, name, "s3://models/2")
	b.reconcile(again)
	if got := told(again, apis.TypeConnected); got != string(apis.ReasonNameTaken) || len(b.writes()) > 0 {
		t.Errorf("Another source under the same name must be refused, got %s, %v", got, b.writes())
	}
}

// TestVersionGone shows that a version that somebody deleted is not made again behind everybody's back.
func TestVersionGone(t *testing.T) {
	b, name := newBench(t), unique(t)
	b.settle(add(b, &v1alpha1.RegisteredModel{}, "shop", name))
	cr := b.version("shop", name, name, "s3://models/1")
	b.settle(cr)
	b.must(http.MethodDelete, "model-versions/delete", fields{"name": name, "version": "1"})
	b.proxy.Reset()
	b.reconcile(cr)
	if got := told(cr, apis.TypeConnected); got != string(apis.ReasonNotFound) || len(b.writes()) > 0 || cr.Status.AtProvider.Version != "1" {
		t.Errorf("It must say so and do nothing, got %s, %v, %v", got, b.writes(), cr.Status.AtProvider)
	}
	change(b, cr, func(cr *v1alpha1.ModelVersion) { meta.RemoveAnnotations(cr, meta.AnnotationKeyExternalName) })
	b.settle(cr)
	if got := meta.GetExternalName(cr); got != "2" {
		t.Errorf("A person may ask for another one, got version %q", got)
	}
}

// TestObserveByAlias shows that a version that is observed by alias follows it, and that status keeps the last one when the alias
// or the whole registry goes.
func TestObserveByAlias(t *testing.T) {
	b, name := newBench(t), unique(t)
	b.make(name, "s3://models/1", "s3://models/2")
	b.alias(name, "champion", "1")
	b.tag(name, "1", v1alpha1.TagDigest, "sha256:"+strings.Repeat("1", 64))
	b.tag(name, "2", v1alpha1.TagDigest, "2")
	cr := b.version("shop", name, name, "", policies(xpv2.ManagementActionObserve), own)
	change(b, cr, func(cr *v1alpha1.ModelVersion) { cr.Spec.ForProvider.Alias = new("champion") })
	b.settle(cr)
	first := v1alpha1.ModelVersionObservation{
		Model: name, Version: "1", Source: "s3://models/1", ArtifactURI: "s3://models/1", Status: "READY", Aliases: []string{"champion"},
		Digest: "sha256:" + strings.Repeat("1", 64),
	}
	if diff := cmp.Diff(first, cr.Status.AtProvider); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	b.alias(name, "champion", "2")
	b.settle(cr)
	second := first
	second.Version, second.Source, second.ArtifactURI, second.Digest = "2", "s3://models/2", "s3://models/2", ""
	if diff := cmp.Diff(second, cr.Status.AtProvider); diff != "" {
		t.Errorf("It must follow: -want, +got:\n%s", diff)
	}
	if got := cr.GetCondition(xpv2.TypeReady).Message; !strings.Contains(got, "The tag digest of the version is not sha256:") {
		t.Errorf("A digest that is none must be told, got %q", got)
	}

	// A tag that is set later is seen as well.
	b.tag(name, "2", v1alpha1.TagDigest, "sha256:"+strings.Repeat("2", 64))
	b.settle(cr)
	second.Digest = "sha256:" + strings.Repeat("2", 64)
	if diff := cmp.Diff(second, cr.Status.AtProvider); diff != "" || cr.GetCondition(xpv2.TypeReady).Message != "" {
		t.Errorf("A digest that is set must be seen: -want, +got:\n%s", diff)
	}
	b.must(http.MethodDelete, "registered-models/alias", fields{"name": name, "alias": "champion"})
	b.reconcile(cr)
	if got := told(cr, apis.TypeConnected); got != string(apis.ReasonNotFound) ||
		cr.GetCondition(xpv2.TypeSynced).Status != corev1.ConditionFalse || cr.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue {
		t.Errorf("An alias that is gone must be told, got %s", got)
	}
	if diff := cmp.Diff(second, cr.Status.AtProvider); diff != "" {
		t.Errorf("The last version must stay: -want, +got:\n%s", diff)
	}

	// The registry leaves behind aliases of versions that are deleted.
	b.alias(name, "champion", "1")
	b.must(http.MethodDelete, "model-versions/delete", fields{"name": name, "version": "1"})
	b.reconcile(cr)
	if got := told(cr, apis.TypeConnected); got != string(apis.ReasonNotFound) || cr.Status.AtProvider.Version != "2" {
		t.Errorf("An alias that leads nowhere must be told, got %s, %v", got, cr.Status.AtProvider)
	}
}

// TestObserveByNumber shows how versions of others are observed: by the spec or the external name.
func TestObserveByNumber(t *testing.T) {
	b, name := newBench(t), unique(t)
	logged := b.server.Log(name, map[string]string{"k": "v"})
	bySpec := b.version("shop", name+"-spec", name, "", policies(xpv2.ManagementActionObserve), own)
	change(b, bySpec, func(cr *v1alpha1.ModelVersion) { cr.Spec.ForProvider.Version = new("1") })
	byName := b.version("shop", name+"-name", name, "", policies(xpv2.ManagementActionObserve), own, external("1"))
	nothing := b.version("shop", name+"-none", name, "", policies(xpv2.ManagementActionObserve), own)
	b.proxy.Reset()
	b.settle(bySpec, byName)
	b.reconcile(nothing)
	want := v1alpha1.ModelVersionObservation{
		Model: name, Version: "1", Source: logged.Source, ArtifactURI: logged.Source, RunID: logged.RunID, Status: "READY",
	}
	for _, cr := range []*v1alpha1.ModelVersion{bySpec, byName} {
		if diff := cmp.Diff(want, cr.Status.AtProvider); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", cr.GetName(), diff)
		}
	}
	if got := told(nothing, apis.TypeConnected); got != string(apis.ReasonNotFound) {
		t.Errorf("Nothing to observe must be told, got %s", got)
	}
	if got := b.writes(); len(got) > 0 {
		t.Errorf("Observing must write nothing, got %v", got)
	}
}

// TestAliasLife shows what becomes of an alias.
func TestAliasLife(t *testing.T) {
	b, name := newBench(t), unique(t)
	b.settle(add(b, &v1alpha1.RegisteredModel{}, "shop", name))
	for _, s := range []string{"s3://models/1", "s3://models/2"} {
		b.must(http.MethodPost, "model-versions/create", fields{"name": name, "source": s})
	}
	tag := v1alpha1.TagAliasPrefix + "champion"
	cr := b.aliased("shop", name, name, "champion", "1", policies("*"))
	b.settle(cr)
	if m := b.registered(name); m.Alias("champion") != "1" || m.Tags[tag] != cluster+"/shop/"+name {
		t.Errorf("It must be set and tell its owner, got %v", m)
	}
	b.alias(name, "champion", "2")
	b.settle(cr)
	if got := b.registered(name).Alias("champion"); got != "1" {
		t.Errorf("It must be put back, got %s", got)
	}
	b.must(http.MethodDelete, "registered-models/alias", fields{"name": name, "alias": "champion"})
	b.settle(cr)
	if got := b.registered(name).Alias("champion"); got != "1" {
		t.Errorf("It must be set again, got %s", got)
	}
	change(b, cr, func(cr *v1alpha1.ModelAlias) { cr.Spec.ForProvider.Version = "2" })
	b.settle(cr)
	if got := b.registered(name).Alias("champion"); got != "2" || cr.Status.AtProvider.Version != "2" {
		t.Errorf("It must move, got %s", got)
	}
	change(b, cr, func(cr *v1alpha1.ModelAlias) { cr.Spec.ForProvider.Version = "9" })
	b.reconcile(cr)
	if got := cr.GetCondition(xpv2.TypeSynced).Message; !strings.Contains(got, "there is no version 9") || b.registered(name).Alias("champion") != "2" {
		t.Errorf("A version that is not there must be told and leave the alias, got %q", got)
	}
	b.alias(name, "champion", "1")
	b.gone(cr)
	if m := b.registered(name); m.Alias("champion") != "" || m.Tags[tag] != "" {
		t.Errorf("With policy Delete alias and tag must go, wherever it points, got %v", m)
	}
}

// TestAliasOfNothing shows that an alias of a version that is not there claims nothing.
func TestAliasOfNothing(t *testing.T) {
	b, name := newBench(t), unique(t)
	b.settle(add(b, &v1alpha1.RegisteredModel{}, "shop", name))
	b.proxy.Reset()
	cr := b.aliased("shop", name, name, "champion", "1")
	b.reconcile(cr)
	if got := cr.GetCondition(xpv2.TypeSynced).Message; !strings.Contains(got, "there is no version 1") || len(b.writes()) > 0 {
		t.Errorf("It must say so and write nothing, got %q, %v", got, b.writes())
	}
	lonely := b.aliased("shop", name+"-lonely", name+"-lonely", "champion", "1")
	b.reconcile(lonely)
	if got := told(lonely, apis.TypeConnected); got != string(apis.ReasonNotFound) {
		t.Errorf("A model that is not there must be told, got %s", got)
	}
	b.gone(cr)
	b.gone(lonely)
}

// TestPlainUser shows that a user of the registry is enough who may manage a name. MLflow makes the model, fails when it wants to
// note the permission that is there already, and says that something exists: the odd answer costs a second look. It also takes
// the permission away with the model, and then tells nobody that the model is gone: so long nothing is taken for deleted.
func TestPlainUser(t *testing.T) {
	b, name := newBench(t), unique(t)
	s := b.secret("shop")
	s.Data = map[string][]byte{"username": []byte(b.server.OtherUsername), "password": []byte(b.server.OtherPassword)}
	if err := b.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	grant := func() {
		b.must(http.MethodPost, "registered-models/permissions/create",
			fields{"name": name, "username": b.server.OtherUsername, "permission": "MANAGE"})
	}
	grant()
	model := add(b, &v1alpha1.RegisteredModel{}, "shop", name, own, policies("*"))
	version := b.version("shop", name, name, "s3://models/1", own, policies("*"))
	alias := b.aliased("shop", name, name, "champion", "1", own, policies("*"))
	b.settle(model, version, alias)
	b.gone(alias)
	b.gone(version)
	if err := b.Delete(t.Context(), model); err != nil {
		t.Fatal(err)
	}
	b.reconcile(model)
	if !b.reconcile(model) || told(model, apis.TypeConnected) != string(apis.ReasonForbidden) || b.registered(name) != nil {
		t.Errorf("It must wait for an answer that it can trust, got %s", told(model, apis.TypeConnected))
	}
	grant()
	if b.reconcile(model) {
		t.Errorf("It must go, got %s", told(model, apis.TypeConnected))
	}
}

// TestIdle counts the requests of what is as it should be.
func TestIdle(t *testing.T) {
	b, name := newBench(t), unique(t)
	model := add(b, &v1alpha1.RegisteredModel{}, "shop", name)
	version := b.version("shop", name, name, "s3://models/1")
	alias := b.aliased("shop", name, name, "champion", "1")
	said := b.aliased("shop", name+"-said", name, "said", "1")
	change(b, said, says(map[string]string{"a": "1", "b": "1"}))
	ownVersion := b.version("shop", name+"-own", name, "s3://models/1", own)
	observed := b.version("shop", name+"-obs", name, "", policies(xpv2.ManagementActionObserve))
	change(b, observed, func(cr *v1alpha1.ModelVersion) { cr.Spec.ForProvider.Alias = new("champion") })
	b.settle(model, version, alias, said, ownVersion, observed)
	get, one := "GET /api/2.0/mlflow/registered-models/get?name="+name, "GET /api/2.0/mlflow/model-versions/get?name="+name+"&version="
	for _, tc := range []struct {
		reason string
		do     func() bool
		want   []string
	}{
		{"A model is one request.", func() bool { return b.reconcile(model) }, []string{get}},
		{"An alias is one request.", func() bool { return b.reconcile(alias) }, []string{get}},
		{"An alias with evidence is two requests.", func() bool { return b.reconcile(said) }, []string{get, one + "1"}},
		{"On shared ground a version is two requests.", func() bool { return b.reconcile(version) }, []string{get, one + "1"}},
		{"With an own config a version is one request.", func() bool { return b.reconcile(ownVersion) }, []string{one + "2"}},
		{"An alias to follow is two requests.", func() bool { return b.reconcile(observed) }, []string{get, one + "1"}},
	} {
		b.proxy.Reset()
		tc.do()
		if diff := cmp.Diff(tc.want, b.proxy.Requests()); diff != "" {
			t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
		}
	}
}
