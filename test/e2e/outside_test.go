// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// outsideNamespace is the namespace of the embedded cluster for servers that are outside a cluster in production.
const outsideNamespace = "outside"

// well returns what blocks a managed resource from being ready and synced.
func well[T resource.Managed](mg T) func(context.Context) error {
	return func(ctx context.Context) error {
		if _, err := get(ctx, mg, mg.GetNamespace(), mg.GetName()); err != nil {
			return err
		}
		for _, ct := range []xpv2.ConditionType{xpv2.TypeReady, xpv2.TypeSynced} {
			if c := mg.GetCondition(ct); c.Status != corev1.ConditionTrue {
				return fmt.Errorf("%s is %s: %s; %s", ct, c.Status, c.Message, mg.GetCondition(v1alpha1.TypeConnected).Message)
			}
		}

		return nil
	}
}

// connected waits for a reason of the condition Connected.
func connected[T interface {
	client.Object
	resource.Conditioned
}](o T, want xpv2.ConditionReason) func(context.Context) error {
	return func(ctx context.Context) error {
		if _, err := get(ctx, o, o.GetNamespace(), o.GetName()); err != nil {
			return err
		}
		if c := o.GetCondition(v1alpha1.TypeConnected); c.Reason != want {
			return fmt.Errorf("the reason is %q: %s", c.Reason, c.Message)
		}

		return nil
	}
}

// scaleOutside starts and stops a server.
func scaleOutside(ctx context.Context, name string, replicas int32) error {
	d, err := get(ctx, &appsv1.Deployment{}, outsideNamespace, name)
	if err != nil {
		return err
	}
	d.Spec.Replicas = new(replicas)

	return kube.Update(ctx, d)
}

func TestOutside(t *testing.T) {
	ns := namespace(t)
	since := audit(t)

	for _, pc := range []string{v1alpha1.DefaultS3Config, v1alpha1.DefaultMLflowConfig} {
		eventually(t, "the service of the ClusterProviderConfig "+pc+" answers",
			connected(&v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: pc}}, v1alpha1.ReasonAnswered))
	}

	at := func(name string) metav1.ObjectMeta {
		// Short, so that the outage below is detected soon.
		return metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: map[string]string{"crossplane.io/poll-interval": "3s"}}
	}
	bucket := &storagev1alpha1.Bucket{ObjectMeta: at("assets"), Spec: storagev1alpha1.BucketSpec{
		ForProvider:                      storagev1alpha1.BucketParameters{Versioning: new("Enabled"), Tags: map[string]string{"team": "shop"}},
		WriteConnectionSecretToReference: &xpv2.LocalSecretReference{Name: "assets-s3"},
	}}
	// Models of a shared registry have no prefix.
	name := "reco-" + ns
	model := &registryv1alpha1.RegisteredModel{ObjectMeta: at(name)}
	version := &registryv1alpha1.ModelVersion{ObjectMeta: at("reco-1"), Spec: registryv1alpha1.ModelVersionSpec{
		ForProvider: registryv1alpha1.ModelVersionParameters{Model: name, Source: new("s3://models/reco/1")},
	}}
	alias := &registryv1alpha1.ModelAlias{ObjectMeta: at("champion"), Spec: registryv1alpha1.ModelAliasSpec{
		ForProvider: registryv1alpha1.ModelAliasParameters{Model: name, Alias: "champion", Version: "1"},
	}}
	for _, mg := range []resource.Managed{bucket, model, version, alias} {
		if err := apply(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the Bucket is Ready", well(bucket))
	eventually(t, "the RegisteredModel is Ready", well(model))
	eventually(t, "the ModelVersion is Ready", well(version))
	eventually(t, "the ModelAlias is Ready", well(alias))

	if got, want := bucket.Status.AtProvider.BucketName, ns+"-assets"; got != want {
		t.Errorf("on shared ground a bucket has the prefix of its namespace: want %q, got %q", want, got)
	}
	secret, err := get(t.Context(), &corev1.Secret{}, ns, "assets-s3")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(secret.Data[storagev1alpha1.KeyEndpoint]); got != "https://s3.outside.svc" {
		t.Errorf("the connection Secret has the endpoint %q", got)
	}
	wantKeys := []string{
		storagev1alpha1.KeyAccessKeyID, storagev1alpha1.KeyBucket, storagev1alpha1.KeyCA, storagev1alpha1.KeyEndpoint,
		storagev1alpha1.KeyRegion, storagev1alpha1.KeySecretAccessKey,
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(wantKeys)), slices.Sorted(maps.Keys(secret.Data))); diff != "" {
		t.Errorf("the connection Secret has what a user of the bucket needs: -want, +got:\n%s", diff)
	}

	// The server stops and starts again.
	t.Cleanup(func() { _ = scaleOutside(context.Background(), "s3", 1) })
	if err := scaleOutside(t.Context(), "s3", 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the outage is reported", func(ctx context.Context) error {
		if _, err := get(ctx, bucket, ns, "assets"); err != nil {
			return err
		}
		if c := bucket.GetCondition(v1alpha1.TypeConnected); c.Status != corev1.ConditionFalse {
			return errors.New("Connected is still true")
		}

		return nil
	})
	if c := bucket.GetCondition(xpv2.TypeReady); c.Status != corev1.ConditionTrue {
		t.Errorf("a bucket that was ready stays so while nobody can look at it, got %s: %s", c.Status, c.Message)
	}
	if err := scaleOutside(t.Context(), "s3", 1); err != nil {
		t.Fatal(err)
	}
	within(t, 2*time.Minute, "the Bucket is well again", well(bucket))

	if err := kube.Delete(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the empty bucket is gone", func(ctx context.Context) error {
		_, err := get(ctx, &storagev1alpha1.Bucket{}, ns, "assets")
		if err == nil {
			return errors.New("it is still there")
		}

		return client.IgnoreNotFound(err)
	})

	for _, e := range since() {
		provider := strings.HasPrefix(e.User.Username, "system:serviceaccount:crossplane-system:provider-capstan")
		// Secrets that Algorithms mount are watched, each by its name.
		byName := e.Verb == "watch" && e.ObjectRef.Name != ""
		if provider && e.ObjectRef.Resource == "secrets" && !byName && !slices.Contains([]string{"get", "create", "update", "patch", "delete"}, e.Verb) {
			t.Errorf("the provider must not %s Secrets", e.Verb)
		}
		if provider && e.ResponseStatus.Code == 403 {
			t.Errorf("the provider has not the rights it needs: %s", e)
		}
	}
}

func TestTenantCannotReachTheAPIServer(t *testing.T) {
	ns := namespace(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s3"}, StringData: map[string]string{
		v1alpha1.KeyAccessKeyID: "a", v1alpha1.KeySecretAccessKey: "b",
	}}
	if err := kube.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	elsewhere := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "leads-elsewhere"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeExternalName, ExternalName: "s3.outside.svc.cluster.local",
	}}
	if err := kube.Create(t.Context(), elsewhere); err != nil {
		t.Fatal(err)
	}
	for i, url := range []string{
		"https://kubernetes.default.svc", "https://kubernetes.default.svc.cluster.local:6443", "http://169.254.169.254", "http://localhost:8080",
		"https://s3.outside.svc", "https://leads-elsewhere." + ns + ".svc",
	} {
		pc := &v1alpha1.ProviderConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("attack-%d", i)},
			Spec: v1alpha1.ProviderConfigSpec{S3: &v1alpha1.S3Config{
				Endpoint: url, Credentials: v1alpha1.S3Credentials{SecretRef: v1alpha1.SecretReference{Name: "s3"}},
			}},
		}
		if err := kube.Create(t.Context(), pc); err != nil {
			t.Fatal(err)
		}
		eventually(t, url+" is refused", connected(pc, v1alpha1.ReasonAddressRefused))
	}
}
