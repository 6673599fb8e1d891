// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// newAuthority makes a certificate, and the key of it.
func newAuthority(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

func TestCertificates(t *testing.T) {
	cert, key := newAuthority(t)
	other, _ := newAuthority(t)
	text := func(parts ...[]byte) string { return string(bytes.Join(parts, nil)) }
	cases := map[string]struct {
		reason string
		data   string
		want   string
		says   string
	}{
		"One":       {reason: "A certificate is taken as it is.", data: text(cert), want: text(cert)},
		"Two":       {reason: "So are several.", data: text(cert, other), want: text(cert, other)},
		"Comments":  {reason: "What is around them is left out.", data: "# hunter2\n" + text(cert) + "hunter3\n", want: text(cert)},
		"Key":       {reason: "A private key is not copied.", data: text(key), says: "not a certificate"},
		"KeyAfter":  {reason: "Nor is one that follows a certificate.", data: text(cert, key), says: "not a certificate"},
		"Password":  {reason: "Nor is a password.", data: "hunter2", says: "no certificate in PEM"},
		"Pretender": {reason: "Nor is what only says that it is a certificate.", data: text(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("hunter2")})), says: "cannot be read"},
		"Headers": {
			reason: "Headers of a certificate are left out.",
			data:   strings.Replace(text(cert), "-----\n", "-----\nSecret: hunter2\n\n", 1), want: text(cert),
		},
		"Huge": {reason: "What is too big is not looked at.", data: strings.Repeat(text(cert), biggest/len(cert)+1), says: "more than"},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			got, err := certificates([]byte(tc.data))
			if string(got) != tc.want {
				t.Errorf("\n%s\ncertificates(...): want\n%s\ngot\n%s", tc.reason, tc.want, got)
			}
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("\n%s\ncertificates(...): want an error that says %q, got %v", tc.reason, tc.says, err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter") {
				t.Errorf("\n%s\ncertificates(...): the error tells what was found", tc.reason)
			}
		})
	}
}

func withCA(from v1alpha1.CASource) *v1alpha1.Credential {
	cr := credential(keep)
	cr.Spec.ForProvider.Connection = &v1alpha1.Connection{
		Type: "postgresql", Host: "db", Port: ptr.To[int32](5432), Username: "shop", CAFrom: &from,
	}
	return cr
}

func TestCASource(t *testing.T) {
	cert, key := newAuthority(t)
	meta := metav1.ObjectMeta{Namespace: name.Namespace, Name: "ca"}
	secretRef := v1alpha1.CASource{SecretKeyRef: &v1alpha1.KeyReference{Name: "ca", Key: "ca.crt"}}
	mapRef := v1alpha1.CASource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "ca", Key: "ca.crt"}}
	cases := map[string]struct {
		reason string
		from   v1alpha1.CASource
		source client.Object
		want   string
		says   string
		waits  bool
	}{
		"Secret": {
			reason: "Certificates come from a Secret.",
			from:   secretRef, source: &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"ca.crt": cert}}, want: string(cert),
		},
		"ConfigMap": {
			reason: "Or from a ConfigMap.",
			from:   mapRef, source: &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"ca.crt": string(cert)}}, want: string(cert),
		},
		"Binary": {
			reason: "Whose data may be binary.",
			from:   mapRef, source: &corev1.ConfigMap{ObjectMeta: meta, BinaryData: map[string][]byte{"ca.crt": cert}}, want: string(cert),
		},
		"OtherNamespace": {
			reason: "What is in another namespace is not there.",
			from:   secretRef,
			source: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "ca"}, Data: map[string][]byte{"ca.crt": cert}},
			says:   `key "ca.crt" of Secret "ca" does not exist yet`, waits: true,
		},
		"NoKey": {
			reason: "A key that is not there yet is waited for.",
			from:   mapRef, source: &corev1.ConfigMap{ObjectMeta: meta}, says: `key "ca.crt" of ConfigMap "ca" does not exist yet`, waits: true,
		},
		"Key": {
			reason: "A private key is not copied.",
			from:   secretRef, source: &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"ca.crt": key}}, says: "not to be used",
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			b := newBench(t, interceptor.Funcs{})
			b.apply(tc.source, withCA(tc.from))
			b.settle()
			s, cr := b.secret(), b.credential()
			if got := string(s.Data[v1alpha1.KeyCA]); got != tc.want {
				t.Errorf("\n%s\nca.crt: want %q, got %q", tc.reason, tc.want, got)
			}
			ready, synced := cr.GetCondition(xpv2.TypeReady), cr.GetCondition(xpv2.TypeSynced)
			if tc.says == "" {
				if ready.Status != corev1.ConditionTrue || synced.Status != corev1.ConditionTrue {
					t.Errorf("\n%s\nwant Ready and Synced, got %+v, %+v", tc.reason, ready, synced)
				}
				return
			}
			if ready.Status != corev1.ConditionFalse || !strings.Contains(ready.Message, tc.says) {
				t.Errorf("\n%s\nwant Ready to say %q, got %+v", tc.reason, tc.says, ready)
			}

			// To wait is no error, of which events would tell.
			if tc.waits != (synced.Status == corev1.ConditionTrue) || !tc.waits && !strings.Contains(synced.Message, tc.says) {
				t.Errorf("\n%s\nSynced is %+v", tc.reason, synced)
			}
			if len(s.Data[v1alpha1.KeyPassword]) == 0 || len(s.Data[v1alpha1.KeyURI]) == 0 {
				t.Errorf("\n%s\nwithout certificates the rest should be there", tc.reason)
			}
		})
	}
}

// TestCAThatGoes shows that certificates which cannot be read any more stay.
func TestCAThatGoes(t *testing.T) {
	boom := errors.New("boom")
	fail := false
	b := newBench(t, interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption,
	) error {
		if _, ok := o.(*corev1.ConfigMap); ok && fail {
			return boom
		}
		return c.Get(ctx, k, o, opts...)
	}})
	cert, _ := newAuthority(t)
	source := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: "ca"},
		Data:       map[string]string{"ca.crt": string(cert)},
	}
	b.apply(source, withCA(v1alpha1.CASource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "ca", Key: "ca.crt"}}))
	b.settle()
	check := func(what, says string) {
		t.Helper()
		b.settle()
		if got := string(b.secret().Data[v1alpha1.KeyCA]); got != string(cert) {
			t.Errorf("%s: the certificates should stay", what)
		}
		cr := b.credential()
		if ready := cr.GetCondition(xpv2.TypeReady); ready.Status != corev1.ConditionTrue {
			t.Errorf("%s: the Credential should stay available, got %+v", what, ready)
		}
		if synced := cr.GetCondition(xpv2.TypeSynced); !strings.Contains(synced.Message, says) || synced.Status != corev1.ConditionFalse {
			t.Errorf("%s: want it told with %q, got %+v", what, says, synced)
		}
	}
	fail = true
	check("A fault", `cannot get ConfigMap "ca"`)
	fail = false
	b.remove(source)
	check("A ConfigMap that is gone", "does not exist yet")

	// A new one is taken.
	next, _ := newAuthority(t)
	cert = next
	source.ResourceVersion, source.Data["ca.crt"] = "", string(next)
	b.apply(source)
	b.settle()
	if got := string(b.secret().Data[v1alpha1.KeyCA]); got != string(next) {
		t.Error("New certificates should be taken")
	}
}
