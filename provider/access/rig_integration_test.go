// SPDX-License-Identifier: Apache-2.0

//go:build integration

package access

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/engine"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	servers "github.com/capstan-dev/capstan/test/outside"
)

func TestMain(m *testing.M) { os.Exit(servers.Main(m)) }

const host = "orders-db-rw.shop.svc"

// A rig is an Access to a real server of some engine, reconciled by hand.
type rig struct {
	client.Client

	t  *testing.T
	c  *connector
	cr *v1alpha1.Access
}

func newRig(t *testing.T, engine string, port int32, password string, ca []byte) *rig {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	b := &rig{
		Client: fake.NewClientBuilder().WithScheme(s).Build(), t: t,
		cr: &v1alpha1.Access{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-db", UID: types.UID(t.Name()), Generation: 1}},
	}
	b.c = newConnector(b.Client, &outside.Guard{
		Allowed:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		APIServer: func(context.Context) ([]netip.Addr, error) { return nil, nil },
	})
	b.c.lookup = func(_ context.Context, name string) ([]string, error) {
		if name != host {
			return nil, fmt.Errorf("unexpected host %q", name)
		}
		return []string{"127.0.0.1"}, nil
	}
	b.secret("orders-db-access", map[string]string{"password": password})
	b.secret("orders-db-members", map[string]string{"ca.crt": string(ca)})
	b.cr.Spec.ForProvider.Server = v1alpha1.Server{
		Engine: engine, Host: host, Port: &port, Username: "capstan",
		PasswordSecretRef: v1alpha1.SecretKeyReference{Name: "orders-db-access", Key: "password"},
		CASecretRef:       v1alpha1.SecretKeyReference{Name: "orders-db-members", Key: "ca.crt"},
	}
	return b
}

// target that a consumer connects with.
func (b *rig) target(name, password string) engine.Target {
	b.t.Helper()
	t, err := (&external{connector: b.c, cr: b.cr}).target(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	t.Username, t.Password = name, password
	return t
}

// secret is made, or gets another content.
func (b *rig) secret(name string, data map[string]string) {
	b.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{credentialsv1alpha1.LabelCredential: name},
	}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	_ = b.Delete(b.t.Context(), s.DeepCopy())
	if err := b.Create(b.t.Context(), s); err != nil {
		b.t.Fatal(err)
	}
}

func (b *rig) databases(names ...string) {
	b.cr.Spec.ForProvider.Databases = nil
	for _, n := range names {
		b.cr.Spec.ForProvider.Databases = append(b.cr.Spec.ForProvider.Databases, v1alpha1.AccessDatabase{Name: n})
	}
}

// login is asked for, with a password of its own.
func (b *rig) login(name, database, access, password string) {
	b.t.Helper()
	b.secret("orders-db-"+name, map[string]string{"password": password})
	l := v1alpha1.Login{
		Name: name, Database: database, Access: access,
		PasswordSecretRef: v1alpha1.SecretKeyReference{Name: "orders-db-" + name, Key: "password"},
	}
	p := &b.cr.Spec.ForProvider
	for i := range p.Logins {
		if p.Logins[i].Name == name {
			p.Logins[i] = l
			return
		}
	}
	p.Logins = append(p.Logins, l)
}

func (b *rig) without(name string) {
	p := &b.cr.Spec.ForProvider
	for i := range p.Logins {
		if p.Logins[i].Name == name {
			p.Logins = append(p.Logins[:i:i], p.Logins[i+1:]...)
			return
		}
	}
}

// reconcile as the managed reconciler does, and report whether anything was changed.
func (b *rig) reconcile() (bool, error) {
	b.t.Helper()
	e, err := outside.Reporting(b.c, explain).Connect(b.t.Context(), b.cr)
	if err != nil {
		return false, err
	}
	defer func() { _ = e.Disconnect(context.Background()) }()
	o, err := e.Observe(b.t.Context(), b.cr)
	if err != nil || o.ResourceUpToDate || !o.ResourceExists {
		return false, err
	}
	_, err = e.Update(b.t.Context(), b.cr)
	return true, err
}

// settles after one reconcile: it is ready, and the next changes nothing.
func (b *rig) settles(what string) {
	b.t.Helper()
	if _, err := b.reconcile(); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
	if c := b.cr.GetCondition(xpv2.TypeReady); c.Status != corev1.ConditionTrue {
		b.t.Fatalf("%s: want it to be ready, got %+v", what, c)
	}
	before := b.cr.DeepCopy()
	changed, err := b.reconcile()
	if err != nil || changed {
		b.t.Fatalf("%s: want nothing more to do, got %t, %v", what, changed, err)
	}
	if diff := cmp.Diff(before.Status, b.cr.Status); diff != "" {
		b.t.Errorf("%s: want a quiet status: -before, +after:\n%s", what, diff)
	}
}
