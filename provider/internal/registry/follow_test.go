// SPDX-License-Identifier: Apache-2.0

//go:build integration

package registry_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimemeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	servers "github.com/capstan-dev/capstan/test/outside"
)

// TestFollow shows on a real API server what somebody may rely on who serves what an alias points to: it is noticed within the
// poll interval of the annotation when the alias moves, status.atProvider is of the spec whose generation Synced has when it is
// True, and it survives an outage of the registry and an alias that is not there.
func TestFollow(t *testing.T) {
	b := &bench{t: t, server: servers.SharedMLflow(t)}
	b.proxy = servers.Proxy(t, b.server.URL, b.server.CA)
	kube, start := controllers(t)
	name := unique(t)
	b.make(name, "s3://models/1", "s3://models/2", "s3://models/3")
	b.alias(name, "champion", "1")
	b.alias(name, "challenger", "3")
	pc := &apis.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "own"}}
	pc.Spec.MLflow = b.config()
	cr := &v1alpha1.ModelVersion{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}
	cr.Spec.ForProvider = v1alpha1.ModelVersionParameters{Model: name, Alias: new("champion")}
	cr.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve})
	own(cr)

	// The controllers would look once a minute.
	runtimemeta.AddAnnotations(cr, map[string]string{runtimemeta.AnnotationKeyPollInterval: "1s"})
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, b.secret(name), pc, cr} {
		o.SetUID("")
		if err := kube.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}

	// seen is what can be relied on: version, then generation and reason of conditions.
	seen := func() string {
		s, r, c := cr.GetCondition(xpv2.TypeSynced), cr.GetCondition(xpv2.TypeReady), cr.GetCondition(apis.TypeConnected)
		return fmt.Sprintf("version %s, synced %s@%d, ready %s@%d, %s", cr.Status.AtProvider.Version,
			s.Status, s.ObservedGeneration, r.Status, r.ObservedGeneration, c.Reason)
	}
	becomes := func(want string) {
		t.Helper()
		eventually(t, want, func(ctx context.Context) bool {
			return kube.Get(ctx, client.ObjectKeyFromObject(cr), cr) == nil && seen() == want
		})
	}
	start()
	becomes("version 1, synced True@1, ready True@1, Answered")

	// Nothing changes, and nothing is written.
	was := cr.GetResourceVersion()
	b.proxy.Reset()
	eventually(t, "it was looked at three times", func(context.Context) bool { return b.proxy.Count() >= 7 })
	get, one := "GET /api/2.0/mlflow/registered-models/get?name="+name, "GET /api/2.0/mlflow/model-versions/get?name="+name+"&version=1"
	looks := b.proxy.Requests()
	// The first request may be the last of a look that had begun before.
	looks = looks[max(0, slices.Index(looks, get)):]
	if diff := cmp.Diff([]string{get, one, get, one, get, one}, looks[:6]); diff != "" {
		t.Errorf("Requests of three looks: -want, +got:\n%s", diff)
	}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(cr), cr); err != nil || cr.GetResourceVersion() != was {
		t.Errorf("A look that sees nothing new must write nothing: %v, resource version %s, then %s", err, was, cr.GetResourceVersion())
	}
	b.alias(name, "champion", "2")
	b.proxy.Reset()
	becomes("version 2, synced True@1, ready True@1, Answered")
	// The first request may be the last of a look that had begun before the alias moved.
	looks = b.proxy.Requests()
	looks = looks[max(0, slices.Index(looks, get)):]
	if diff := cmp.Diff([]string{get, "GET /api/2.0/mlflow/model-versions/get?name=" + name + "&version=2"}, looks[:min(2, len(looks))]); diff != "" {
		t.Errorf("The first look after an alias moved must see it: -want, +got:\n%s", diff)
	}

	// The registry is down, and comes back with the alias elsewhere.
	b.proxy.Fail(nil, servers.Answer(503, "<html>503</html>"))
	becomes("version 2, synced False@1, ready True@1, ServerError")
	b.alias(name, "champion", "1")
	b.proxy.Clear()
	becomes("version 1, synced True@1, ready True@1, Answered")

	// Another alias is to be followed, and the registry is down: what is in the status is of the spec before.
	b.proxy.Fail(nil, servers.Close())
	cr.Spec.ForProvider.Alias = new("challenger")
	if err := kube.Update(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	becomes("version 1, synced False@2, ready True@1, UnknownAnswer")
	b.proxy.Clear()
	becomes("version 3, synced True@2, ready True@2, Answered")

	// An alias that is not there.
	cr.Spec.ForProvider.Alias = new("ghost")
	if err := kube.Update(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	becomes("version 3, synced False@3, ready True@2, NotFound")
	b.alias(name, "ghost", "2")
	becomes("version 2, synced True@3, ready True@3, Answered")
	if err := kube.Delete(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is gone", func(ctx context.Context) bool {
		err := kube.Get(ctx, client.ObjectKeyFromObject(cr), cr)
		return err != nil && client.IgnoreNotFound(err) == nil
	})
}
