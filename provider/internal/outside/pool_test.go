// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// made is a client of tests: what it was made of.
type made struct{ *Connection }

func service() Service[*made] {
	return Service[*made]{
		New:     func(c *Connection) (*made, error) { return &made{c}, nil },
		Ask:     func(context.Context, *made) error { return nil },
		Explain: Explain,
	}
}

// bench is an API server with two namespaces, their configs and Secrets.
type bench struct {
	client.Client

	// secrets that were read.
	secrets []types.NamespacedName
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, storagev1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{}
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(append(objects,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "cluster"}})...).Build()
	b.Client = interceptor.NewClient(kube, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*corev1.Secret); ok {
				b.secrets = append(b.secrets, k)
			}
			return c.Get(ctx, k, o, opts...)
		},
	})
	return b
}

func (b *bench) pool() *Pool[*made] { return NewPool(NewResolver(b, open()), S3, service()) }

func keySecret(namespace, name, id string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)},
		Data:       map[string][]byte{v1alpha1.KeyAccessKeyID: []byte(id + "\n"), v1alpha1.KeySecretAccessKey: []byte("x")},
	}
}

func s3Config() *v1alpha1.S3Config {
	return &v1alpha1.S3Config{
		Endpoint:    "https://s3.example.org",
		Credentials: v1alpha1.S3Credentials{SecretRef: v1alpha1.SecretReference{Name: "s3"}},
	}
}

func tenants(namespace string) *v1alpha1.ProviderConfig {
	return &v1alpha1.ProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s3", UID: types.UID("pc-" + namespace), Generation: 1},
		Spec:       v1alpha1.ProviderConfigSpec{S3: s3Config()},
	}
}

func platforms() *v1alpha1.ClusterProviderConfig {
	prefix := "{namespace}-"
	return &v1alpha1.ClusterProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "s3", UID: "cpc", Generation: 1},
		Spec: v1alpha1.ClusterProviderConfigSpec{
			S3:               &v1alpha1.SharedS3Config{S3Config: *s3Config(), BucketPrefix: &prefix},
			SecretsNamespace: "crossplane-system",
		},
	}
}

func bucketOf(namespace, kind, name string) *storagev1alpha1.Bucket {
	b := &storagev1alpha1.Bucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "assets", UID: types.UID("bucket-" + namespace)},
		Spec: storagev1alpha1.BucketSpec{
			ProviderConfigReference: &xpv2.ProviderConfigReference{Kind: kind, Name: name},
		},
	}
	b.SetGroupVersionKind(storagev1alpha1.BucketGroupVersionKind)
	return b
}

func TestClient(t *testing.T) {
	objects := func() []client.Object {
		return []client.Object{
			tenants("shop"), platforms(),
			keySecret("shop", "s3", "shops"), keySecret("bank", "s3", "banks"), keySecret("crossplane-system", "s3", "platforms"),
			keySecret("crossplane-system", "workload", "shared"), keySecret("crossplane-system", "workload-shop", "of-shop"),
			&v1alpha1.ProviderConfig{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "models", UID: "pc-models"},
				Spec:       v1alpha1.ProviderConfigSpec{MLflow: &v1alpha1.MLflowConfig{URL: "https://mlflow.example.org"}},
			},
		}
	}
	type want struct {
		key    string
		tenant Tenant
		reason xpv2.ConditionReason
	}
	cases := map[string]struct {
		reason string
		change func([]client.Object)
		mg     *storagev1alpha1.Bucket
		want   want
	}{
		"Own": {
			reason: "A ProviderConfig reads the Secret of its own namespace.",
			mg:     bucketOf("shop", KindProviderConfig, "s3"),
			want: want{key: "shops", tenant: Tenant{
				Cluster: "cluster", Namespace: "shop", Config: `ProviderConfig "s3"`, Adoption: true,
			}},
		},
		"Shared": {
			reason: "A ClusterProviderConfig reads the platform's Secret and gives each namespace its ground.",
			mg:     bucketOf("shop", KindClusterProviderConfig, "s3"),
			want: want{key: "platforms", tenant: Tenant{
				Cluster: "cluster", Namespace: "shop", Config: `ClusterProviderConfig "s3"`, Shared: true, BucketPrefix: "shop-",
			}},
		},
		"OfAnotherNamespace": {
			reason: "The ProviderConfig of another namespace is not there.",
			mg:     bucketOf("bank", KindProviderConfig, "s3"),
			want:   want{reason: v1alpha1.ReasonConfigNotFound},
		},
		"OtherBackend": {
			reason: "A Bucket cannot live in MLflow.",
			mg:     bucketOf("shop", KindProviderConfig, "models"),
			want:   want{reason: v1alpha1.ReasonConfigOfOtherBackend},
		},
		"OtherKind": {
			reason: "A kind that is none is told.",
			mg:     bucketOf("shop", "Secret", "s3"),
			want:   want{reason: v1alpha1.ReasonConfigNotFound},
		},
		"NotAllowed": {
			reason: "The platform says who may use a config.",
			change: func(all []client.Object) {
				all[1].(*v1alpha1.ClusterProviderConfig).Spec.AllowedNamespaces = []string{"bank", "team-*"}
			},
			mg:   bucketOf("shop", KindClusterProviderConfig, "s3"),
			want: want{reason: v1alpha1.ReasonNamespaceNotAllowed},
		},
		"AllowedByPattern": {
			reason: "A pattern stands for many.",
			change: func(all []client.Object) {
				all[1].(*v1alpha1.ClusterProviderConfig).Spec.AllowedNamespaces = []string{"sh*"}
			},
			mg: bucketOf("shop", KindClusterProviderConfig, "s3"),
			want: want{key: "platforms", tenant: Tenant{
				Cluster: "cluster", Namespace: "shop", Config: `ClusterProviderConfig "s3"`, Shared: true, BucketPrefix: "shop-",
			}},
		},
		"KeyPerNamespace": {
			reason: "Each namespace gets its own key, which opens no bucket of others.",
			change: func(all []client.Object) {
				s := all[1].(*v1alpha1.ClusterProviderConfig).Spec.S3
				s.WorkloadCredentials = &v1alpha1.S3Credentials{SecretRef: v1alpha1.SecretReference{Name: "workload"}}
				s.WorkloadKeyPerNamespace = true
			},
			mg: bucketOf("shop", KindClusterProviderConfig, "s3"),
			want: want{key: "platforms", tenant: Tenant{
				Cluster: "cluster", Namespace: "shop", Config: `ClusterProviderConfig "s3"`, Shared: true, BucketPrefix: "shop-",
				Workload: AccessKey{ID: "of-shop", Secret: "x"},
			}},
		},
		"NoKeyOfTheNamespace": {
			reason: "A namespace without a key gets none of others.",
			change: func(all []client.Object) {
				s := all[1].(*v1alpha1.ClusterProviderConfig).Spec.S3
				s.WorkloadCredentials = &v1alpha1.S3Credentials{SecretRef: v1alpha1.SecretReference{Name: "workload"}}
				s.WorkloadKeyPerNamespace = true
			},
			mg:   bucketOf("bank", KindClusterProviderConfig, "s3"),
			want: want{reason: v1alpha1.ReasonCredentialsMissing},
		},
		"NoSecret": {
			reason: "A missing Secret is told with its keys.",
			change: func(all []client.Object) {
				all[0].(*v1alpha1.ProviderConfig).Spec.S3.Credentials.SecretRef.Name = "gone"
			},
			mg:   bucketOf("shop", KindProviderConfig, "s3"),
			want: want{reason: v1alpha1.ReasonCredentialsMissing},
		},
		"EmptyKey": {
			reason: "A Secret without what is needed is told.",
			change: func(all []client.Object) {
				all[2].(*corev1.Secret).Data[v1alpha1.KeySecretAccessKey] = nil
			},
			mg:   bucketOf("shop", KindProviderConfig, "s3"),
			want: want{reason: v1alpha1.ReasonCredentialsMissing},
		},
		"BadBundle": {
			reason: "Certificates that are none are told.",
			change: func(all []client.Object) {
				all[0].(*v1alpha1.ProviderConfig).Spec.S3.CABundle = "nonsense"
			},
			mg:   bucketOf("shop", KindProviderConfig, "s3"),
			want: want{reason: v1alpha1.ReasonInvalidConfig},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := objects()
			if tc.change != nil {
				tc.change(all)
			}
			b := newBench(t, all...)
			c, tenant, err := b.pool().Client(t.Context(), tc.mg)
			if tc.want.reason != "" {
				if f := (*Failure)(nil); !errors.As(err, &f) || f.Reason != tc.want.reason || f.Remedy == "" {
					t.Errorf("\n%s\nClient(...): want %q with a remedy, got %v", tc.reason, tc.want.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("\n%s\nClient(...): unexpected error: %v", tc.reason, err)
			}
			if c.Key.ID != tc.want.key || tenant != tc.want.tenant {
				t.Errorf("\n%s\nClient(...): want %+v, got key %q, tenant %+v", tc.reason, tc.want, c.Key.ID, tenant)
			}
			u := &v1alpha1.ProviderConfigUsage{}
			if err := b.Get(t.Context(), types.NamespacedName{Namespace: tc.mg.Namespace, Name: string(tc.mg.UID)}, u); err != nil {
				t.Errorf("\n%s\nThe use of the config should be recorded: %v", tc.reason, err)
			}
			for _, s := range b.secrets {
				if tenant.Shared == (s.Namespace == tc.mg.Namespace) {
					t.Errorf("\n%s\nSecret %s must not be read", tc.reason, s)
				}
			}
		})
	}
}

func TestPoolKeepsAndRenews(t *testing.T) {
	b := newBench(t, tenants("shop"), keySecret("shop", "s3", "first"))
	p := b.pool()
	mg := bucketOf("shop", KindProviderConfig, "s3")
	ask := func() *made {
		t.Helper()
		c, _, err := p.Client(t.Context(), mg)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	expire := func() { p.entries["pc-shop"].checked = time.Now().Add(-2 * trusted) }
	first := ask()
	if ask() != first || len(b.secrets) != 1 {
		t.Errorf("In a moment nothing is read again, got %d reads", len(b.secrets))
	}
	expire()
	if ask() != first || len(b.secrets) != 2 {
		t.Errorf("A Secret that is the same gives the same client, got %d reads", len(b.secrets))
	}
	s := &corev1.Secret{}
	if err := b.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "s3"}, s); err != nil {
		t.Fatal(err)
	}
	s.Data[v1alpha1.KeyAccessKeyID] = []byte("second")
	if err := b.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	expire()
	second := ask()
	if second == first || second.Key.ID != "second" {
		t.Errorf("A rotated Secret gives a new client, got %q", second.Key.ID)
	}
	pc := tenants("shop")
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(pc), pc); err != nil {
		t.Fatal(err)
	}
	pc.Status.Users = 7
	if err := b.Update(t.Context(), pc); err != nil {
		t.Fatal(err)
	}
	if ask() != second {
		t.Error("Counting users is no change of the config")
	}
	pc.Generation, pc.Spec.S3.Region = 2, "eu-central-1"
	if err := b.Update(t.Context(), pc); err != nil {
		t.Fatal(err)
	}
	if c := ask(); c == second || c.S3.Region != "eu-central-1" {
		t.Error("A changed config gives a new client at once")
	}
}

func TestPoolForgets(t *testing.T) {
	b := newBench(t, tenants("shop"), tenants("bank"), keySecret("shop", "s3", "a"), keySecret("bank", "s3", "b"))
	p := b.pool()
	for _, ns := range []string{"shop", "bank"} {
		if _, _, err := p.Client(t.Context(), bucketOf(ns, KindProviderConfig, "s3")); err != nil {
			t.Fatal(err)
		}
		if e := p.entries["pc-shop"]; e != nil {
			e.used = time.Now().Add(-2 * forgotten)
		}
	}
	if _, ok := p.entries["pc-shop"]; ok || len(p.entries) != 1 {
		t.Errorf("A client that nobody asks for should be dropped, got %d", len(p.entries))
	}
}

func TestOwner(t *testing.T) {
	shop := Tenant{Cluster: "c1", Namespace: "shop"}
	cases := map[string]struct {
		reason string
		tag    string
		want   bool
	}{
		"Own":              {reason: "What this namespace made is its own.", tag: shop.Owner("assets"), want: true},
		"Neighbour":        {reason: "What another made is not.", tag: Tenant{Cluster: "c1", Namespace: "bank"}.Owner("assets")},
		"LongerName":       {reason: "A namespace whose name begins alike is another.", tag: Tenant{Cluster: "c1", Namespace: "shop-2"}.Owner("assets")},
		"OtherCluster":     {reason: "The same namespace of another cluster is another.", tag: Tenant{Cluster: "c2", Namespace: "shop"}.Owner("assets")},
		"Nobody":           {reason: "What has no tag is nobody's.", tag: ""},
		"NoName":           {reason: "A tag without a name is no owner.", tag: "c1/shop/"},
		"NamespaceInTitle": {reason: "A name cannot pretend to be a namespace.", tag: "c1/bank/shop/assets"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := shop.Owns(tc.tag); got != tc.want {
				t.Errorf("\n%s\nOwns(%q): want %t, got %t", tc.reason, tc.tag, tc.want, got)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	b := newBench(t, keySecret("shop", "s3", "a"))
	failing := service()
	failing.Ask = func(context.Context, *made) error {
		return &Failure{Reason: v1alpha1.ReasonCredentialsRefused, Message: "no", Remedy: "yes"}
	}
	cases := map[string]struct {
		reason  string
		service Service[*made]
		pc      *v1alpha1.ProviderConfig
		want    xpv2.ConditionReason
	}{
		"Answers":  {reason: "A service that answers.", service: service(), pc: tenants("shop"), want: v1alpha1.ReasonAnswered},
		"Refuses":  {reason: "A service that does not know us.", service: failing, pc: tenants("shop"), want: v1alpha1.ReasonCredentialsRefused},
		"NoSecret": {reason: "A config without its Secret.", service: service(), pc: tenants("bank"), want: v1alpha1.ReasonCredentialsMissing},
		"Empty":    {reason: "A config of nothing.", service: service(), pc: &v1alpha1.ProviderConfig{}, want: v1alpha1.ReasonInvalidConfig},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Check(t.Context(), tc.pc, NewPool(NewResolver(b, open()), S3, tc.service))
			if err != nil || got.Reason != tc.want {
				t.Errorf("\n%s\nCheck(...): want %q, got %q, %v", tc.reason, tc.want, got.Reason, err)
			}
		})
	}
}
