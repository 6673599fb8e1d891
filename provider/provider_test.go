// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	changelogsv1alpha1 "github.com/crossplane/crossplane-runtime/v2/apis/changelogs/proto/v1alpha1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/gate"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"

	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/signals"
)

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		cli    CLI
		want   string
	}{
		"Good":     {reason: "The defaults are fine.", cli: CLI{PollInterval: 10 * time.Minute, MaxReconcileRate: 10, MaxLookRate: 100}},
		"NoPoll":   {reason: "Polling all the time is no polling.", cli: CLI{MaxReconcileRate: 10, MaxLookRate: 100}, want: "poll interval"},
		"NoRate":   {reason: "A rate of zero does nothing.", cli: CLI{PollInterval: time.Minute}, want: "reconcile rate"},
		"Allowed":  {reason: "Address ranges are prefixes.", cli: CLI{PollInterval: time.Minute, MaxReconcileRate: 1, MaxLookRate: 100, AllowTenantCIDR: []string{"10.0.0.0/8", "fd00::/8"}}},
		"NoRange":  {reason: "An address is no range.", cli: CLI{PollInterval: time.Minute, MaxReconcileRate: 1, MaxLookRate: 100, AllowTenantCIDR: []string{"10.0.0.1"}}, want: `address range "10.0.0.1"`},
		"Hosts":    {reason: "Hosts may begin with a star and name the namespace.", cli: CLI{PollInterval: time.Minute, MaxReconcileRate: 1, MaxLookRate: 1, AllowTenantHost: []string{"ci.tools.svc", "*.{namespace}.example.org"}}},
		"NoHost":   {reason: "A star is only in front.", cli: CLI{PollInterval: time.Minute, MaxReconcileRate: 1, MaxLookRate: 1, AllowTenantHost: []string{"a.*.svc"}}, want: `host "a.*.svc"`},
		"AnyHost":  {reason: "A star alone would be every host: ranges say that better.", cli: CLI{PollInterval: time.Minute, MaxReconcileRate: 1, MaxLookRate: 1, AllowTenantHost: []string{"*"}}, want: `host "*"`},
		"NoLook":   {reason: "A rate of zero looks at nothing.", cli: CLI{PollInterval: time.Minute, MaxReconcileRate: 1}, want: "look rate"},
		"Negative": {reason: "A negative rate is none.", cli: CLI{PollInterval: time.Minute, MaxReconcileRate: -1, MaxLookRate: 100}, want: "reconcile rate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.cli.Validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("\n%s\nValidate(): want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestLogger(t *testing.T) {
	for _, debug := range []bool{false, true} {
		b := &bytes.Buffer{}
		log := logging.NewLogrLogger((&CLI{Debug: debug}).logger(b))
		log.Debug("detail")
		if got := b.Len() > 0; got != debug {
			t.Errorf("With debug %t, a debug message shows: %t", debug, got)
		}
	}
}

func TestFailure(t *testing.T) {
	boom := errors.New("boom")
	stopped, stop := context.WithCancel(t.Context())
	inner, fail := context.WithCancelCause(stopped)
	stop()
	if err := failure(inner); err != nil {
		t.Errorf("Being told to stop is no failure, got %v", err)
	}
	fail(boom)
	failed, fail := context.WithCancelCause(t.Context())
	fail(boom)
	if err := failure(failed); !errors.Is(err, boom) {
		t.Errorf("A failure should be told, want %v, got %v", boom, err)
	}
}

// TestCache holds what must never change by accident: which objects the provider holds in memory.
func TestCache(t *testing.T) {
	o, err := (&CLI{}).options()
	if err != nil {
		t.Fatal(err)
	}
	direct := map[reflect.Type]bool{}
	for _, o := range o.Client.Cache.DisableFor {
		direct[reflect.TypeOf(o)] = true
	}
	if !direct[reflect.TypeFor[*corev1.Secret]()] {
		t.Error("Secrets must not be read from a cache")
	}
	if !o.Cache.ReaderFailOnMissingInformer {
		t.Error("A read must not start a watch by accident")
	}
	for obj, by := range o.Cache.ByObject {
		if _, ok := obj.(*corev1.Pod); ok && (by.Label == nil || by.Label.Empty() || by.Transform == nil) {
			t.Error("Only the pods of Algorithms may be watched, and only what is read of them kept")
		}
	}
	if _, err := o.Scheme.New(credentialsv1alpha1.CredentialGroupVersionKind); err != nil {
		t.Error(err)
	}
	for gvk := range kinds(outside.NewResolver(nil, nil), &outside.Guard{}, new(signals.Board), true) {
		if gvk.Group == v1alpha1.GroupVersion.Group {
			continue // a config is no managed resource
		}
		list, err := o.Scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			t.Error(err)
		}
		if _, ok := list.(resource.ManagedList); !ok {
			t.Errorf("%T cannot be counted by the state metrics", list)
		}
	}
}

func TestServices(t *testing.T) {
	service := func(name string, spec corev1.ServiceSpec) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec}
	}
	kube := fake.NewClientBuilder().WithObjects(
		service("hooks", corev1.ServiceSpec{ClusterIPs: []string{"10.96.7.7", "fd00::7"}}),
		service("headless", corev1.ServiceSpec{ClusterIPs: []string{corev1.ClusterIPNone}}),
		service("external", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "mlflow.ml.svc", ClusterIPs: []string{"10.1.2.3"}}),
	).Build()
	for name, want := range map[string][]netip.Addr{
		"hooks": {netip.MustParseAddr("10.96.7.7"), netip.MustParseAddr("fd00::7")}, "headless": nil, "external": nil, "missing": nil,
	} {
		if got, err := services(kube)(t.Context(), "shop", name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: want %v, got %v, %v", name, want, got, err)
		}
	}
}

func TestStartWithoutCRDs(t *testing.T) {
	boom := errors.New("boom")
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"}
	cases := map[string]struct {
		reason  string
		allowed map[string]bool
		add     error
		started bool
		failed  error
	}{
		"NotAllowed": {reason: "Without the right to watch CRDs all kinds start.", started: true},
		"NotQuite":   {reason: "Half the rights are none.", allowed: map[string]bool{"get": true, "list": true}, started: true},
		"CannotAdd":  {reason: "A controller that cannot be added ends the provider.", add: boom, started: true, failed: boom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme, err := newScheme()
			if err != nil {
				t.Fatal(err)
			}
			kube := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					r, ok := o.(*authorizationv1.SelfSubjectAccessReview)
					if !ok {
						return boom
					}
					r.Status.Allowed = tc.allowed[r.Spec.ResourceAttributes.Verb]
					return nil
				},
			}).Build()
			started := make(chan struct{})
			ctx, fail := context.WithCancelCause(t.Context())
			o := controller.Options{Logger: logging.NewNopLogger(), Gate: new(gate.Gate[schema.GroupVersionKind])}
			all := map[schema.GroupVersionKind]setup{kind: func(ctrl.Manager, controller.Options) error {
				defer close(started)
				return tc.add
			}}

			// Discovery learns of the kind only at the second question.
			mapper := &lateMapper{DefaultRESTMapper: meta.NewDefaultRESTMapper(nil)}
			mapper.Add(kind, meta.RESTScopeNamespace)
			mgr := &xpfake.Manager{Client: kube, Scheme: scheme, RESTMapper: mapper}
			if err := start(ctx, mgr, o, all, fail); err != nil {
				t.Fatal(err)
			}
			select {
			case <-started:
			case <-time.After(10 * time.Second):
				t.Fatalf("\n%s\nThe controller was not started", tc.reason)
			}
			if tc.failed == nil {
				return
			}
			<-ctx.Done()
			if err := failure(ctx); !errors.Is(err, tc.failed) {
				t.Errorf("\n%s\nwant %v, got %v", tc.reason, tc.failed, err)
			}
		})
	}
}

type lateMapper struct {
	*meta.DefaultRESTMapper

	asked atomic.Int32
}

func (m *lateMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.asked.Add(1) == 1 {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return m.DefaultRESTMapper.RESTMapping(gk, versions...)
}

func TestStartCannotAsk(t *testing.T) {
	boom := errors.New("boom")
	kube := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return boom },
	}).Build()
	o := controller.Options{Logger: logging.NewNopLogger(), Gate: new(gate.Gate[schema.GroupVersionKind])}
	if err := start(t.Context(), &xpfake.Manager{Client: kube}, o, nil, func(error) {}); !errors.Is(err, boom) {
		t.Errorf("start(...): want %v, got %v", boom, err)
	}
}

// changeLog is a sidecar that takes down what it is told.
type changeLog struct {
	changelogsv1alpha1.UnimplementedChangeLogServiceServer

	told chan *changelogsv1alpha1.ChangeLogEntry
}

func (l *changeLog) SendChangeLog(
	_ context.Context, r *changelogsv1alpha1.SendChangeLogRequest,
) (*changelogsv1alpha1.SendChangeLogResponse, error) {
	l.told <- r.GetEntry()
	return &changelogsv1alpha1.SendChangeLogResponse{}, nil
}

func TestChanges(t *testing.T) {
	if o, err := (&CLI{}).changes(t.Context()); o != nil || err != nil {
		t.Errorf("Without a socket there should be no change log, got %v and %v", o, err)
	}
	socket := filepath.Join(t.TempDir(), "log")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	sidecar := &changeLog{told: make(chan *changelogsv1alpha1.ChangeLogEntry, 1)}
	s := grpc.NewServer()
	changelogsv1alpha1.RegisterChangeLogServiceServer(s, sidecar)
	go func() { _ = s.Serve(l) }()
	defer s.Stop()
	o, err := (&CLI{ChangeLogSocket: socket}).changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cr := &credentialsv1alpha1.Credential{ObjectMeta: metav1.ObjectMeta{Name: "orders"}}
	if err := o.ChangeLogger.Log(t.Context(), cr, changelogsv1alpha1.OperationType_OPERATION_TYPE_CREATE, nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := (<-sidecar.told).GetName(); got != "orders" {
		t.Errorf("The sidecar should be told of every change, want orders, got %q", got)
	}
}
