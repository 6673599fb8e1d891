// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bucket

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/bucket/feature"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/quiet"
	"github.com/capstan-dev/capstan/provider/internal/s3"
	servers "github.com/capstan-dev/capstan/test/outside"
)

func TestMain(m *testing.M) { os.Exit(servers.Main(m)) }

const (
	namespace = "shop"
	cluster   = "5f7ac46d-6d5e-4b0e-a1c4-3c5a8d1c9b6e"

	// canary is in every secret that is not to be seen anywhere.
	canary = "hunter2"
)

// A bench runs the real managed reconciler against a fake API server and a real S3 server, with a proxy between them.
type bench struct {
	client.Client

	t       *testing.T
	r       *managed.Reconciler
	options []managed.ReconcilerOption
	proxy   *servers.FaultProxy
	server  *servers.S3Server

	// s3 is a client of the server itself, as its administrator.
	s3 *awss3.Client

	// crash makes the next write of annotations after Create fail, as if the process had died.
	crash bool

	// writes of statuses that reach the API server.
	writes int
}

// A setting changes a bench or its config.
type setting func(*bench, *capstan.ClusterProviderConfigSpec)

// timeout of a reconcile.
func timeout(d time.Duration) setting {
	return func(b *bench, _ *capstan.ClusterProviderConfigSpec) {
		b.options = append(b.options, managed.WithTimeout(d))
	}
}

func newBench(t *testing.T, server *servers.S3Server, settings ...setting) *bench {
	t.Helper()
	b := &bench{t: t, server: server, proxy: servers.Proxy(t, server.Endpoint, server.CA)}
	direct, err := s3.New(&outside.Connection{
		Backend: outside.S3,
		S3:      &capstan.S3Config{Endpoint: server.Endpoint, Region: server.Region},
		Key:     outside.AccessKey{ID: server.AccessKey, Secret: server.SecretKey},
		HTTP:    servers.Client(server.CA),
	})
	if err != nil {
		t.Fatal(err)
	}
	b.s3 = direct.In(server.Region)
	spec := capstan.ClusterProviderConfigSpec{
		S3: &capstan.SharedS3Config{
			S3Config: capstan.S3Config{
				Endpoint:            b.proxy.URL,
				Region:              server.Region,
				CABundle:            string(b.proxy.CA),
				Credentials:         capstan.S3Credentials{SecretRef: capstan.SecretReference{Name: "s3"}},
				WorkloadCredentials: &capstan.S3Credentials{SecretRef: capstan.SecretReference{Name: "workload"}},
			},
			BucketPrefix: aws.String("{namespace}-"),
		},
		SecretsNamespace: "crossplane-system",
		Adoption:         capstan.AdoptionUnowned,
	}
	for _, s := range settings {
		s(b, &spec)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, capstan.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Bucket{}).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: cluster}},
		secret("crossplane-system", "s3", server.AccessKey, server.SecretKey),
		secret("crossplane-system", "workload", "workload", "workload-"+canary),
		secret(namespace, "s3", server.AccessKey, server.SecretKey),
		&capstan.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "s3", UID: "shared", Generation: 1}, Spec: spec},
		&capstan.ProviderConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own", UID: "own", Generation: 1},
			Spec: capstan.ProviderConfigSpec{S3: &capstan.S3Config{
				Endpoint:    spec.S3.Endpoint,
				Region:      spec.S3.Region,
				CABundle:    spec.S3.CABundle,
				Credentials: spec.S3.Credentials,
			}},
		},
	).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			b.writes++
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			a := o.GetAnnotations()
			if b.crash && (a[meta.AnnotationKeyExternalCreateSucceeded] != "" || a[meta.AnnotationKeyExternalCreateFailed] != "") {
				return errors.New("the process is dead")
			}
			return c.Update(ctx, o, opts...)
		},
	}).Build()
	b.Client = kube
	return b.restarted()
}

// restarted is the same bench with a new process.
func (b *bench) restarted() *bench {
	q := quiet.Wrap(b.Client)
	guard := &outside.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	pool := outside.NewPool(outside.NewResolver(q, guard), outside.S3, s3.Service())
	mgr := &xpfake.Manager{Client: q, Scheme: b.Scheme()}
	b.r = managed.NewReconciler(mgr, resource.ManagedKind(v1alpha1.BucketGroupVersionKind), append(append(
		options(q, pool),
		managed.WithManagementPolicies(),
		managed.WithPollInterval(time.Hour),
		managed.WithPollIntervalHook(kind.Poll),
		managed.WithFinalizer(kind.NewFinalizer(q)),
		// The servers do not forget what they have just made.
		managed.WithCreationGracePeriod(0),
	), b.options...)...)
	return b
}

func secret(namespace, name, id, key string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)},
		Data:       map[string][]byte{capstan.KeyAccessKeyID: []byte(id), capstan.KeySecretAccessKey: []byte(key)},
	}
}

// bucket that a user asks for. Its name is the test's, so that tests can share a server.
func (b *bench) bucket(edit ...func(*v1alpha1.Bucket)) *v1alpha1.Bucket {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(strings.TrimPrefix(b.t.Name(), "Test")))
	cr := &v1alpha1.Bucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: strings.Trim(name, "-"), UID: types.UID(name), Generation: 1},
		Spec: v1alpha1.BucketSpec{
			ManagementPolicies:      xpv2.ManagementPolicies{xpv2.ManagementActionAll},
			ProviderConfigReference: &xpv2.ProviderConfigReference{Kind: outside.KindClusterProviderConfig, Name: "s3"},
		},
	}
	cr.SetGroupVersionKind(v1alpha1.BucketGroupVersionKind)
	for _, e := range edit {
		e(cr)
	}
	return cr
}

// own uses the ProviderConfig of the namespace.
func own(cr *v1alpha1.Bucket) {
	cr.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: outside.KindProviderConfig, Name: "own"}
}

// named is the external name of the bench's bucket on shared ground.
func (b *bench) named() string { return namespace + "-" + b.bucket().GetName() }

// apply a Bucket as a user does.
func (b *bench) apply(edit ...func(*v1alpha1.Bucket)) {
	b.t.Helper()
	if err := b.Create(b.t.Context(), b.bucket(edit...)); err != nil {
		b.t.Fatal(err)
	}
}

// get the Bucket as it is now.
func (b *bench) get() *v1alpha1.Bucket {
	b.t.Helper()
	cr := &v1alpha1.Bucket{}
	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(b.bucket()), cr); err != nil {
		b.t.Fatal(err)
	}
	return cr
}

// change the Bucket as a user does.
func (b *bench) change(edit func(*v1alpha1.Bucket)) {
	b.t.Helper()
	cr := b.get()
	edit(cr)
	if err := b.Update(b.t.Context(), cr); err != nil {
		b.t.Fatal(err)
	}
}

// remove the Bucket as a user does.
func (b *bench) remove() {
	b.t.Helper()
	if err := b.Delete(b.t.Context(), b.get()); err != nil {
		b.t.Fatal(err)
	}
}

// reconcile once.
func (b *bench) reconcile() ctrl.Result {
	b.t.Helper()
	r, err := b.r.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b.bucket())})
	if err != nil && !b.crash {
		b.t.Fatal(err)
	}
	return r
}

// settle reconciles until the Bucket is left alone for the poll interval, or is gone.
func (b *bench) settle() {
	b.t.Helper()
	for range 10 {
		if r := b.reconcile(); r.RequeueAfter > time.Minute || b.gone() {
			return
		}
	}
	b.t.Fatalf("the Bucket does not settle: %+v", b.get().Status)
}

func (b *bench) gone() bool {
	return kerrors.IsNotFound(b.Get(b.t.Context(), client.ObjectKeyFromObject(b.bucket()), &v1alpha1.Bucket{}))
}

// quiet checks that another look at the Bucket changes nothing anywhere, and returns the requests that it took.
func (b *bench) quiet() []string {
	b.t.Helper()
	b.proxy.Reset()
	b.writes = 0
	before := b.get()
	b.reconcile()
	for _, r := range b.proxy.Requests() {
		if !strings.HasPrefix(r, "GET ") && !strings.HasPrefix(r, "HEAD ") {
			b.t.Errorf("a Bucket that is as it should be is changed: %s", r)
		}
	}
	if diff := cmp.Diff(before, b.get()); diff != "" || b.writes != 0 {
		b.t.Errorf("a Bucket that is as it should be is written, %d times: -before, +after:\n%s", b.writes, diff)
	}
	return b.proxy.Requests()
}

// connected is the condition Connected as "Reason: message".
func (b *bench) connected() string { return told(b.get().GetCondition(capstan.TypeConnected)) }

func (b *bench) isReady() bool {
	return b.get().GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
}

func told(c xpv2.Condition) string {
	if c.Message == "" {
		return string(c.Reason)
	}
	return string(c.Reason) + ": " + c.Message
}

// make a bucket on the server by other means.
func (b *bench) make(name string, tags map[string]string) {
	b.t.Helper()
	if _, err := b.s3.CreateBucket(b.t.Context(), &awss3.CreateBucketInput{Bucket: aws.String(name)}); err != nil {
		b.t.Fatal(err)
	}
	if tags == nil {
		return
	}
	if _, err := (feature.Bucket{API: b.s3, Name: name}).Retag(b.t.Context(), func(all map[string]string) {
		maps.Copy(all, tags)
	}); err != nil {
		b.t.Fatal(err)
	}
}

// put an object into a bucket.
func (b *bench) put(name, key string) {
	b.t.Helper()
	if _, err := b.s3.PutObject(b.t.Context(), &awss3.PutObjectInput{
		Bucket: aws.String(name), Key: aws.String(key), Body: strings.NewReader(key),
	}); err != nil {
		b.t.Fatal(err)
	}
}

// there reports whether a bucket is on the server.
func (b *bench) there(name string) bool {
	b.t.Helper()
	out, err := b.s3.ListBuckets(b.t.Context(), &awss3.ListBucketsInput{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, o := range out.Buckets {
		if aws.ToString(o.Name) == name {
			return true
		}
	}
	return false
}

// tags of a bucket on the server.
func (b *bench) tags(name string) map[string]string {
	b.t.Helper()
	tags, err := feature.ReadTags(b.t.Context(), b.s3, name)
	if err != nil {
		b.t.Fatal(err)
	}
	return tags.Values
}

// mutations that reached the proxy.
func (b *bench) mutations() []string {
	return slices.DeleteFunc(b.proxy.Requests(), func(r string) bool {
		return strings.HasPrefix(r, "GET ") || strings.HasPrefix(r, "HEAD ")
	})
}

// exactly matches a call and no other of the same path.
func exactly(call string) func(*http.Request) bool {
	matches := servers.Call(call)
	_, want, _ := strings.Cut(call, "?")
	return func(r *http.Request) bool {
		q := r.URL.Query()
		q.Del("x-id")
		return matches(r) && (want != "" || len(q) == 0)
	}
}

// during the first call something else happens, before the server hears of it.
func during(call string, happens func()) func(*http.Request) bool {
	matches, once := exactly(call), sync.Once{}
	return func(r *http.Request) bool {
		if matches(r) {
			once.Do(happens)
		}
		return false
	}
}
