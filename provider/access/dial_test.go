// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// authority is a certificate in PEM.
func authority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestServerIsTheService holds that a host that leads elsewhere than its Service is not connected with: the name is looked up before the
// address is dialled, and a Service of type ExternalName leads anywhere.
func TestServerIsTheService(t *testing.T) {
	kube := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "orders-db-access", Labels: map[string]string{credentialsv1alpha1.LabelCredential: "orders-db-access"},
		},
		Data: map[string][]byte{"password": []byte("secret"), "ca.crt": authority(t)},
	}).Build()
	guard := &outside.Guard{
		APIServer: func(context.Context) ([]netip.Addr, error) { return nil, nil },
		Services: func(_ context.Context, namespace, name string) ([]netip.Addr, error) {
			if namespace != "shop" || name != "orders-db-rw" {
				return nil, nil
			}
			return []netip.Addr{netip.MustParseAddr("10.96.7.7")}, nil
		},
	}
	e := &external{connector: newConnector(kube, guard), cr: &v1alpha1.Access{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-db"}}}
	e.cr.Spec.ForProvider.Server = v1alpha1.Server{
		Host: "orders-db-rw.shop.svc", Username: "capstan",
		PasswordSecretRef: v1alpha1.SecretKeyReference{Name: "orders-db-access", Key: "password"},
		CASecretRef:       v1alpha1.SecretKeyReference{Name: "orders-db-access", Key: "ca.crt"},
	}
	to, err := e.target(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for address, refused := range map[string]bool{"10.96.7.7:5432": false, "10.1.2.3:5432": true} {
		// No server listens there.
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		conn, err := to.Dial(ctx, "tcp", address)
		cancel()
		if err == nil {
			_ = conn.Close()
		}
		if got := errors.As(err, new(*outside.AddressError)); got != refused {
			t.Errorf("%s: want refused %t, got %v", address, refused, err)
		}
	}
}
