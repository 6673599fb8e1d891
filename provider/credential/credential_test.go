// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolsevents "k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apisv1alpha1 "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/quiet"
)

var (
	name = client.ObjectKey{Namespace: "shop", Name: "orders"}

	// keep are the policies that the schema defaults to.
	keep = xpv2.ManagementPolicies{"Observe", "Create", "Update", "LateInitialize"}
	all  = xpv2.ManagementPolicies{"*"}

	// start of every test, with less than a second to lose.
	start = time.Date(2026, time.November, 1, 12, 0, 0, 1, time.UTC)
)

// A bench runs the real managed reconciler against a fake API server.
type bench struct {
	client.Client

	t *testing.T
	r *managed.Reconciler

	// now is the time that the reconciler believes it is.
	now time.Time

	// writes to the API server, other than those of the test itself.
	writes []string
	silent bool

	log      bytes.Buffer
	events   *toolsevents.FakeRecorder
	metrics  *prometheus.Registry
	recorder *managed.MRMetricRecorder
}

func newBench(t *testing.T, funcs interceptor.Funcs) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{t: t, now: start, events: toolsevents.NewFakeRecorder(1000), metrics: prometheus.NewRegistry()}
	kube := fake.NewClientBuilder().
		WithScheme(scheme).
		WithStatusSubresource(&v1alpha1.Credential{}).
		WithInterceptorFuncs(funcs).
		Build()
	b.Client = interceptor.NewClient(kube, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			b.wrote("create", o)
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			b.wrote("update", o)
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			b.wrote("patch", o)
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			b.wrote("delete", o)
			return c.Delete(ctx, o, opts...)
		},
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			b.wrote("update "+sub, o)
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("nothing may be listed")
		},
	})
	b.recorder = managed.NewMRMetricRecorder()
	b.metrics.MustRegister(b.recorder)
	b.r = b.reconciler()
	return b
}

// reconciler of a provider that was just started.
func (b *bench) reconciler() *managed.Reconciler {
	q := quiet.Wrap(b.Client)
	log := logr.FromSlogHandler(slog.NewJSONHandler(&b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	mgr := &xpfake.Manager{Client: q, Scheme: b.Scheme()}
	return managed.NewReconciler(mgr, resource.ManagedKind(v1alpha1.CredentialGroupVersionKind), append(
		options(q, q, b.clock),
		managed.WithManagementPolicies(),
		managed.WithFinalizer(kind.NewFinalizer(q)),
		managed.WithLogger(logging.NewLogrLogger(log)),
		managed.WithRecorder(event.NewAPIRecorder(b.events)),
		managed.WithMetricRecorder(b.recorder),
		managed.WithPollInterval(10*time.Minute),
	)...)
}

func (b *bench) clock() time.Time { return b.now }

// external is what the reconciler calls, to be called alone.
func (b *bench) external() *external {
	return &external{kube: b, reader: b, now: b.clock, memory: newMemory()}
}

func (b *bench) wrote(verb string, o client.Object) {
	if gvk, err := b.GroupVersionKindFor(o); err == nil && !b.silent {
		b.writes = append(b.writes, verb+" "+gvk.Kind)
	}
}

// apply objects as a user does.
func (b *bench) apply(objects ...client.Object) {
	b.t.Helper()
	b.silent = true
	defer func() { b.silent = false }()
	for _, o := range objects {
		if err := b.Create(b.t.Context(), o); err != nil {
			b.t.Fatal(err)
		}
	}
}

// remove an object as a user does.
func (b *bench) remove(o client.Object) {
	b.t.Helper()
	b.silent = true
	defer func() { b.silent = false }()
	if err := b.Delete(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

// change an object as a user does.
func (b *bench) change(o client.Object) {
	b.t.Helper()
	b.silent = true
	defer func() { b.silent = false }()
	if err := b.Update(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

// ask for other parameters, as a user does.
func (b *bench) ask(edit func(p *v1alpha1.CredentialParameters)) {
	b.t.Helper()
	cr := b.credential()
	edit(&cr.Spec.ForProvider)
	b.change(cr)
}

// reconcile once.
func (b *bench) reconcile() ctrl.Result {
	b.t.Helper()
	r, err := b.r.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: name})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// settle reconciles more often than anything needs.
func (b *bench) settle() {
	b.t.Helper()
	for range 6 {
		b.reconcile()
	}
}

func (b *bench) credential() *v1alpha1.Credential {
	b.t.Helper()
	cr := &v1alpha1.Credential{}
	if err := b.Get(b.t.Context(), name, cr); err != nil {
		b.t.Fatal(err)
	}
	return cr
}

func (b *bench) secret() *corev1.Secret {
	b.t.Helper()
	s := &corev1.Secret{}
	if err := b.Get(b.t.Context(), name, s); err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bench) gone(o client.Object) bool {
	return kerrors.IsNotFound(b.Get(b.t.Context(), name, o))
}

func credential(p xpv2.ManagementPolicies) *v1alpha1.Credential {
	return &v1alpha1.Credential{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Spec:       v1alpha1.CredentialSpec{ManagementPolicies: p},
	}
}

func secret(labels map[string]string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: labels},
		Data:       data,
	}
}

func ours() map[string]string {
	return map[string]string{v1alpha1.LabelCredential: name.Name, labelManagedBy: managedBy}
}

func TestLife(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.apply(credential(keep))
	b.settle()
	first := b.secret()
	if got := len(first.Data[v1alpha1.KeyPassword]); got != defaultLength {
		t.Errorf("A new Credential should have a password of %d characters, got %d", defaultLength, got)
	}
	if diff := cmp.Diff(ours(), first.Labels); diff != "" {
		t.Errorf("The Secret should be labelled ours: -want, +got:\n%s", diff)
	}
	if len(first.OwnerReferences) != 0 {
		t.Errorf("The Secret should have no owner, got %v", first.OwnerReferences)
	}
	cr := b.credential()
	made := metav1.NewTime(start.Truncate(time.Second))
	want := v1alpha1.CredentialObservation{
		SecretName:   name.Name,
		Keys:         []string{v1alpha1.KeyPassword},
		Identity:     first.Annotations[v1alpha1.AnnotationIdentity],
		LastRotation: &made,
	}
	if diff := cmp.Diff(want, cr.Status.AtProvider); diff != "" {
		t.Errorf("The status should tell about the Secret: -want, +got:\n%s", diff)
	}
	if got := cr.GetCondition(xpv2.TypeReady); got.Reason != xpv2.ReasonAvailable {
		t.Errorf("The Credential should be available, got %+v", got)
	}
	b.writes = nil
	b.settle()
	if !identity.MatchString(want.Identity) {
		t.Errorf("The Secret should have an identity of 32 hexadecimal digits, got %q", want.Identity)
	}
	if len(b.writes) != 0 {
		t.Errorf("An idle Credential should cause no write, got %v", b.writes)
	}
	b.remove(cr)
	if !b.gone(&v1alpha1.Credential{}) {
		t.Error("A Credential that keeps its Secret should go at once, even while the provider is stopped")
	}
	b.settle()
	if diff := cmp.Diff(first, b.secret()); diff != "" {
		t.Errorf("The Secret should stay as it is when its Credential goes: -want, +got:\n%s", diff)
	}
	b.apply(credential(keep))
	b.settle()
	if diff := cmp.Diff(first, b.secret()); diff != "" {
		t.Errorf("A Credential that comes back should find its Secret unchanged: -want, +got:\n%s", diff)
	}
	back := b.credential()
	if got := back.GetCondition(xpv2.TypeReady); got.Reason != xpv2.ReasonAvailable {
		t.Errorf("A Credential that comes back should be available, got %+v", got)
	}
	if got := back.Status.AtProvider.Identity; got != want.Identity {
		t.Errorf("A Credential that comes back should have the identity %q, got %q", want.Identity, got)
	}
}

func TestExistingSecret(t *testing.T) {
	precious := map[string][]byte{v1alpha1.KeyPassword: []byte("precious")}
	type want struct {
		secret *corev1.Secret
		writes []string
		ready  xpv2.ConditionReason
		// says is part of what the conditions tell.
		says string
	}
	cases := map[string]struct {
		reason string
		secret *corev1.Secret
		want   want
	}{
		"Ours": {
			reason: "A Secret that is labelled ours is adopted with its bytes.",
			secret: secret(ours(), precious),
			want: want{
				secret: secret(ours(), precious),
				// The record.
				writes: []string{"patch Secret"},
				ready:  xpv2.ReasonAvailable,
			},
		},
		"LostLabel": {
			reason: "The label that tells who manages the Secret is put back, and nothing else is changed.",
			secret: secret(map[string]string{v1alpha1.LabelCredential: name.Name, "a": "b"}, precious),
			want: want{
				secret: secret(map[string]string{v1alpha1.LabelCredential: name.Name, labelManagedBy: managedBy, "a": "b"}, precious),
				writes: []string{"patch Secret"},
				ready:  xpv2.ReasonAvailable,
			},
		},
		"Stranger": {
			reason: "A Secret that is not ours is not touched, and the remedy is told.",
			secret: secret(nil, precious),
			want: want{
				secret: secret(nil, precious),
				ready:  xpv2.ReasonUnavailable,
				says:   "label it " + v1alpha1.LabelCredential + "=" + name.Name,
			},
		},
		"OfAnother": {
			reason: "The Secret of another Credential is a stranger's.",
			secret: secret(map[string]string{v1alpha1.LabelCredential: "customers"}, precious),
			want: want{
				secret: secret(map[string]string{v1alpha1.LabelCredential: "customers"}, precious),
				ready:  xpv2.ReasonUnavailable,
				says:   `secret "orders" exists`,
			},
		},
		"LostPassword": {
			reason: "A password that was lost is not generated again: what it opens still expects the old one.",
			secret: secret(ours(), map[string][]byte{"user": []byte("shop")}),
			want: want{
				secret: secret(ours(), map[string][]byte{"user": []byte("shop")}),
				ready:  xpv2.ReasonUnavailable,
				says:   `secret "orders" has no "password" any more`,
			},
		},
		"EmptyPassword": {
			reason: "An empty password is a lost one.",
			secret: secret(ours(), map[string][]byte{v1alpha1.KeyPassword: {}}),
			want: want{
				secret: secret(ours(), map[string][]byte{v1alpha1.KeyPassword: {}}),
				ready:  xpv2.ReasonUnavailable,
				says:   "put the password back",
			},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			b := newBench(t, interceptor.Funcs{})
			b.apply(tc.secret, credential(keep))
			b.settle()
			got := b.secret()
			got.ResourceVersion = ""
			if len(tc.want.writes) > 0 {
				got.Annotations = nil
			}
			if diff := cmp.Diff(tc.want.secret, got); diff != "" {
				t.Errorf("\n%s\nSecret: -want, +got:\n%s", tc.reason, diff)
			}
			var writes []string
			for _, w := range b.writes {
				if strings.HasSuffix(w, " Secret") {
					writes = append(writes, w)
				}
			}
			if diff := cmp.Diff(tc.want.writes, writes); diff != "" {
				t.Errorf("\n%s\nwrites: -want, +got:\n%s", tc.reason, diff)
			}
			cr := b.credential()
			if ready := cr.GetCondition(xpv2.TypeReady); ready.Reason != tc.want.ready {
				t.Errorf("\n%s\nReady: want %q, got %+v", tc.reason, tc.want.ready, ready)
			}
			if synced := cr.GetCondition(xpv2.TypeSynced); !strings.Contains(synced.Message, tc.want.says) {
				t.Errorf("\n%s\nSynced: want %q, got %+v", tc.reason, tc.want.says, synced)
			}
			b.writes = nil
			b.settle()
			if len(b.writes) != 0 {
				t.Errorf("\n%s\nOnce told there should be no more writes, got %v", tc.reason, b.writes)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	cases := map[string]struct {
		reason string
		secret *corev1.Secret
		policy xpv2.ManagementPolicies
		gone   bool
	}{
		"Kept": {
			reason: "Without the policy Delete the Secret stays.",
			secret: secret(ours(), map[string][]byte{v1alpha1.KeyPassword: []byte("precious")}),
			policy: keep,
		},
		"Deleted": {
			reason: "With the policy Delete the Secret goes, too.",
			secret: secret(ours(), map[string][]byte{v1alpha1.KeyPassword: []byte("precious")}),
			policy: all,
			gone:   true,
		},
		"WithoutPassword": {
			reason: "A Secret that lost its password holds up nobody.",
			secret: secret(ours(), nil),
			policy: all,
			gone:   true,
		},
		"Stranger": {
			reason: "A stranger's Secret stays and holds up nobody.",
			secret: secret(nil, nil),
			policy: all,
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			b := newBench(t, interceptor.Funcs{})
			cr := credential(tc.policy)
			cr.Finalizers = []string{managed.FinalizerName}
			b.apply(tc.secret, cr)
			b.settle()
			b.remove(b.credential())
			b.settle()
			if !b.gone(&v1alpha1.Credential{}) {
				t.Errorf("\n%s\nThe Credential should be gone", tc.reason)
			}
			if got := b.gone(&corev1.Secret{}); got != tc.gone {
				t.Errorf("\n%s\nSecret gone: want %t, got %t", tc.reason, tc.gone, got)
			}
		})
	}
}

func TestFinalizerFollowsPolicies(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.apply(credential(all))
	for _, step := range []struct {
		policy xpv2.ManagementPolicies
		want   []string
	}{
		{policy: all, want: []string{managed.FinalizerName}},
		{policy: keep},
		{policy: xpv2.ManagementPolicies{"Observe", "Create", "Delete"}, want: []string{managed.FinalizerName}},
	} {
		cr := b.credential()
		cr.Spec.ManagementPolicies = step.policy
		if err := b.Update(t.Context(), cr); err != nil {
			t.Fatal(err)
		}
		b.settle()
		if diff := cmp.Diff(step.want, b.credential().Finalizers); diff != "" {
			t.Errorf("Finalizers with policies %v: -want, +got:\n%s", step.policy, diff)
		}
	}
}

func TestDeleteNamesTheOneThatWasSeen(t *testing.T) {
	var got client.DeleteOptions
	b := newBench(t, interceptor.Funcs{Delete: func(
		ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption,
	) error {
		got.ApplyOptions(opts)
		return c.Delete(ctx, o)
	}})
	s := secret(ours(), nil)
	s.UID = "seen"
	b.apply(s)
	if _, err := b.external().Delete(t.Context(), named()); err != nil {
		t.Fatal(err)
	}
	if p := got.Preconditions; p == nil || p.UID == nil || *p.UID != "seen" || p.ResourceVersion == nil {
		t.Errorf("Delete(...): want a precondition on the Secret that was seen, got %+v", p)
	}
}

// TestWritesUntilReady: each write to a Credential wakes the composite resource that it is of.
func TestWritesUntilReady(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		policies xpv2.ManagementPolicies
		want     []string
	}{
		"Keep": {
			"The Secret, and how it is.", keep, []string{"create Secret", "update status Credential"},
		},
		"All": {
			"What is deleted with it has a finalizer.", all, []string{"update Credential", "create Secret", "update status Credential"},
		},
		"NeverChanged": {
			"It may be made and not changed, which the runtime guards.",
			xpv2.ManagementPolicies{"Observe", "Create"},
			[]string{"update Credential", "create Secret", "update Credential", "update status Credential", "update status Credential"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, interceptor.Funcs{})
			cr := named()
			cr.Spec.ManagementPolicies = tc.policies
			b.apply(cr)
			b.settle()
			if diff := cmp.Diff(tc.want, b.writes); diff != "" {
				t.Errorf("%s\nwrites: -want, +got:\n%s", tc.reason, diff)
			}
			if got := b.credential().GetCondition(xpv2.TypeReady).Status; got != corev1.ConditionTrue {
				t.Errorf("%s\nReady is %s", tc.reason, got)
			}
		})
	}
}

func TestCreateIsRepeatable(t *testing.T) {
	cases := map[string]struct {
		reason string
		secret *corev1.Secret
		failed bool
	}{
		"Ours": {
			reason: "A Secret that a Create before a crash has left is ours.",
			secret: secret(ours(), map[string][]byte{v1alpha1.KeyPassword: []byte("first")}),
		},
		"Stranger": {
			reason: "A Secret that somebody else was quicker to make is not ours.",
			secret: secret(nil, map[string][]byte{v1alpha1.KeyPassword: []byte("first")}),
			failed: true,
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			b := newBench(t, interceptor.Funcs{})
			b.apply(tc.secret)
			_, err := b.external().Create(t.Context(), named())
			if (err != nil) != tc.failed {
				t.Errorf("\n%s\nCreate(...): unexpected error: %v", tc.reason, err)
			}
			if got := string(b.secret().Data[v1alpha1.KeyPassword]); got != "first" {
				t.Errorf("\n%s\nCreate(...) has written over a password", tc.reason)
			}
		})
	}
}

func TestErrorsAreWrapped(t *testing.T) {
	boom := errors.New("boom")
	b := newBench(t, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return boom
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return boom
		},
	})
	e := b.external()
	verbs := map[string]func() error{
		"Observe": func() error { _, err := e.Observe(t.Context(), named()); return err },
		"Create":  func() error { _, err := e.Create(t.Context(), named()); return err },
		"Update":  func() error { _, err := e.Update(t.Context(), named()); return err },
		"Delete":  func() error { _, err := e.Delete(t.Context(), named()); return err },
	}
	for verb, call := range verbs {
		if err := call(); !errors.Is(err, boom) || !strings.Contains(err.Error(), `Secret "orders"`) {
			t.Errorf("%s(...): want an error that names the Secret and its cause, got %v", verb, err)
		}
	}
}

// named is a Credential as verbs see it, with its external name set.
func named() *v1alpha1.Credential {
	cr := credential(keep)
	cr.Annotations = map[string]string{"crossplane.io/external-name": name.Name}
	return cr
}

func TestDatabaseLabel(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	cr := credential(keep)
	cr.Labels = map[string]string{observev1alpha1.LabelDatabase: "orders-db"}
	b.apply(cr)
	b.settle()
	want := ours()
	want[observev1alpha1.LabelDatabase] = "orders-db"
	if diff := cmp.Diff(want, b.secret().Labels); diff != "" {
		t.Errorf("The Secret of a Database's Credential should carry the label that guards it: -want, +got:\n%s", diff)
	}
	cr = b.credential()
	cr.Labels = nil
	if err := b.Update(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	b.settle()
	if diff := cmp.Diff(want, b.secret().Labels); diff != "" {
		t.Errorf("A Credential that loses the label should not take it off the Secret: -want, +got:\n%s", diff)
	}
}

// TestPreview: the Secret of a Preview is marked when it is made and goes with it. One that another has left is neither used nor deleted.
func TestPreview(t *testing.T) {
	of := func(preview string) *v1alpha1.Credential {
		cr := credential(append(slices.Clone(keep), xpv2.ManagementActionDelete))
		cr.Labels = map[string]string{observev1alpha1.LabelDatabase: "pr-1-db", apisv1alpha1.LabelPreview: preview}
		return cr
	}
	b := newBench(t, interceptor.Funcs{})
	b.apply(of("pr-1"))
	b.settle()
	if got := b.secret().Labels[apisv1alpha1.LabelPreview]; got != "pr-1" {
		t.Errorf("The Secret should be marked, got %q", got)
	}
	if err := b.Delete(t.Context(), b.credential()); err != nil {
		t.Fatal(err)
	}
	b.settle()
	if err := b.Get(t.Context(), name, &corev1.Secret{}); !kerrors.IsNotFound(err) {
		t.Errorf("The Secret should go with its Credential, got %v", err)
	}

	b = newBench(t, interceptor.Funcs{})
	left := secret(ours(), map[string][]byte{v1alpha1.KeyPassword: []byte("of-an-earlier-database")})
	if err := b.Create(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	b.apply(of("pr-1"))
	b.settle()
	if c := b.credential().GetCondition(xpv2.TypeReady); c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, `is not the one of Preview "pr-1"`) {
		t.Errorf("The Credential should say that the Secret is of another, got %+v", c)
	}
	if err := b.Delete(t.Context(), b.credential()); err != nil {
		t.Fatal(err)
	}
	b.settle()
	if diff := cmp.Diff(left.Data, b.secret().Data); diff != "" {
		t.Errorf("The Secret should stay as it is: -want, +got:\n%s", diff)
	}
}
