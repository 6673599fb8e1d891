// SPDX-License-Identifier: Apache-2.0

//go:build integration

package registry_test

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/modelalias"
	"github.com/capstan-dev/capstan/provider/modelversion"
	"github.com/capstan-dev/capstan/provider/registeredmodel"
	servers "github.com/capstan-dev/capstan/test/outside"
)

func TestMain(m *testing.M) { os.Exit(servers.Main(m)) }

// cluster is the UID that stands for it in owner tags.
const cluster = "5f0c8f0e-0000-4000-8000-000000000001"

// loopback is where the servers of tests are.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// A bench is a real registry behind a proxy, and the reconcilers of the three kinds. The API server is a fake that keeps objects:
// what matters here happens outside of it.
type bench struct {
	client.Client

	t      *testing.T
	server *servers.MLflowServer
	proxy  *servers.FaultProxy

	// later is how much later it is than it is.
	later time.Duration

	// lose makes the API server lose what it is told.
	lose func(client.Object) bool

	reconcilers map[string]reconcile.Reconciler
}

// An option changes the shared config of a bench.
type option func(*apis.ClusterProviderConfig)

func adoption(pc *apis.ClusterProviderConfig) { pc.Spec.Adoption = apis.AdoptionUnowned }

func sources(prefixes ...string) option {
	return func(pc *apis.ClusterProviderConfig) { pc.Spec.MLflow.AllowedSources = prefixes }
}

func newBench(t *testing.T, opts ...option) *bench {
	t.Helper()
	b := &bench{t: t, server: servers.SharedMLflow(t)}
	b.proxy = servers.Proxy(t, b.server.URL, b.server.CA)
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apis.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	shared := &apis.ClusterProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "mlflow", UID: "shared", Generation: 1},
		Spec:       apis.ClusterProviderConfigSpec{MLflow: b.config(), SecretsNamespace: "crossplane-system"},
	}
	for _, o := range opts {
		o(shared)
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: cluster}},
		shared, b.secret("crossplane-system"),
	}
	for _, ns := range []string{"shop", "pay"} {
		objects = append(objects, b.secret(ns), &apis.ProviderConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "own", UID: types.UID("own-" + ns), Generation: 1},
			Spec:       apis.ProviderConfigSpec{MLflow: b.config()},
		})
	}
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.RegisteredModel{}, &v1alpha1.ModelVersion{}, &v1alpha1.ModelAlias{}).Build()
	b.Client = interceptor.NewClient(kube, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if b.lose != nil && b.lose(o) {
				return context.DeadlineExceeded
			}
			return c.Update(ctx, o, opts...)
		},
	})
	r := outside.NewResolver(b, &outside.Guard{Allowed: loopback})
	pool := outside.NewPool(r, outside.MLflow, mlflow.Service())
	mgr := &xpfake.Manager{Client: b, Scheme: s}
	now := func() time.Time { return time.Now().Add(b.later) }
	common := []managed.ReconcilerOption{managed.WithManagementPolicies(), managed.WithTimeout(3 * time.Second)}
	b.reconcilers = map[string]reconcile.Reconciler{}
	for gvk, own := range map[schema.GroupVersionKind][]managed.ReconcilerOption{
		v1alpha1.RegisteredModelGroupVersionKind: registeredmodel.Options(pool),
		v1alpha1.ModelVersionGroupVersionKind:    modelversion.Options(b, pool, now),
		v1alpha1.ModelAliasGroupVersionKind:      modelalias.Options(pool),
	} {
		b.reconcilers[gvk.Kind] = managed.NewReconciler(mgr, resource.ManagedKind(gvk), slices.Concat(common, own)...)
	}
	return b
}

func (b *bench) config() *apis.MLflowConfig {
	return &apis.MLflowConfig{
		URL: b.proxy.URL, CABundle: string(b.proxy.CA),
		Credentials: &apis.HTTPCredentials{Basic: &apis.BasicCredentials{SecretRef: apis.SecretReference{Name: "mlflow"}}},
	}
}

func (b *bench) secret(namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow", UID: types.UID("secret-" + namespace)},
		Data:       map[string][]byte{"username": []byte(b.server.Username), "password": []byte(b.server.Password)},
	}
}

// unique name of a model, so that tests can share a server.
func unique(t *testing.T) string {
	t.Helper()
	return strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())) + fmt.Sprintf("-%d", time.Now().UnixNano()%1e9)
}

// An edit changes a managed resource.
type edit func(resource.ModernManaged)

func own(mg resource.ModernManaged) {
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: outside.KindProviderConfig, Name: "own"})
}

func policies(p ...xpv2.ManagementAction) edit {
	return func(mg resource.ModernManaged) { mg.SetManagementPolicies(p) }
}

func external(name string) edit {
	return func(mg resource.ModernManaged) { meta.SetExternalName(mg, name) }
}

// add a managed resource as the API server would store it.
func add[T resource.ModernManaged](b *bench, mg T, namespace, name string, edits ...edit) T {
	b.t.Helper()
	mg.SetNamespace(namespace)
	mg.SetName(name)
	mg.SetUID(types.UID(fmt.Sprintf("%T/%s/%s/%d", mg, namespace, name, time.Now().UnixNano())))
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: outside.KindClusterProviderConfig, Name: "mlflow"})
	mg.SetManagementPolicies(xpv2.ManagementPolicies{"Observe", "Create", "Update", "LateInitialize"})
	for _, e := range edits {
		e(mg)
	}
	if err := b.Create(b.t.Context(), mg); err != nil {
		b.t.Fatal(err)
	}
	return mg
}

// change a managed resource, as a person would.
func change[T resource.ModernManaged](b *bench, mg T, fn func(T)) {
	b.t.Helper()
	b.read(mg)
	fn(mg)
	if err := b.Update(b.t.Context(), mg); err != nil {
		b.t.Fatal(err)
	}
}

// read mg again. It reports whether it is still there.
func (b *bench) read(mg client.Object) bool {
	b.t.Helper()
	err := b.Get(b.t.Context(), client.ObjectKeyFromObject(mg), mg)
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	return err == nil
}

// reconcile mg once, and read it again. It reports whether it is still there.
func (b *bench) reconcile(mg resource.ModernManaged) bool {
	b.t.Helper()
	kind := strings.TrimPrefix(fmt.Sprintf("%T", mg), "*v1alpha1.")
	// What goes wrong is in the conditions.
	_, _ = b.reconcilers[kind].Reconcile(b.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(mg)})
	return b.read(mg)
}

// settle mg: reconcile it as often as it takes when nothing is in its way.
func (b *bench) settle(all ...resource.ModernManaged) {
	b.t.Helper()
	for _, mg := range all {
		for range 4 {
			b.reconcile(mg)
		}
		if s, r := mg.GetCondition(xpv2.TypeSynced), mg.GetCondition(xpv2.TypeReady); s.Status != corev1.ConditionTrue || r.Status != corev1.ConditionTrue {
			b.t.Fatalf("%T %q: Synced=%s (%s), Ready=%s (%s)", mg, mg.GetName(), s.Status, s.Message, r.Status, r.Message)
		}
	}
}

// gone deletes mg and reconciles until it is away.
func (b *bench) gone(mg resource.ModernManaged) {
	b.t.Helper()
	if err := b.Delete(b.t.Context(), mg); err != nil {
		b.t.Fatal(err)
	}
	for range 4 {
		if !b.reconcile(mg) {
			return
		}
	}
	b.t.Fatalf("%T %q is not gone: %s", mg, mg.GetName(), mg.GetCondition(xpv2.TypeSynced).Message)
}

// writes that reached the proxy: all requests that are not GET.
func (b *bench) writes() []string {
	return slices.DeleteFunc(b.proxy.Requests(), func(r string) bool { return strings.HasPrefix(r, "GET ") })
}

// admin of the registry: a client of the administrator's, past the proxy.
func (b *bench) must(method, path string, body any) string {
	b.t.Helper()
	status, answer := b.server.Call(method, path, body)
	if status != 200 {
		b.t.Fatalf("cannot %s %s: %d: %s", method, path, status, answer)
	}
	return answer
}

type fields = map[string]any

// told is a condition of mg in short.
func told(mg resource.Managed, t xpv2.ConditionType) string {
	c := mg.GetCondition(t)
	return cmp.Or(string(c.Reason), "none")
}
