// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	accessv1alpha1 "github.com/capstan-dev/capstan/apis/access/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// othersServer is a server that an Access of bank must not reach: a Service of shop, and names that only look like a
// Service of its own namespace.
func othersServer(t *testing.T, s *stage) {
	t.Helper()

	for _, host := range []string{"orders-db-rw.shop.svc", "kubernetes.default.svc"} {
		a := &accessv1alpha1.Access{ObjectMeta: meta("bank", s.name())}
		a.Spec.ForProvider.Server = accessv1alpha1.Server{
			Host:              host,
			PasswordSecretRef: accessv1alpha1.SecretKeyReference{Name: "x", Key: "password"},
			CASecretRef:       accessv1alpha1.SecretKeyReference{Name: "x", Key: "ca.crt"},
		}
		a.Spec.ForProvider.Databases = []accessv1alpha1.AccessDatabase{{Name: "orders"}}
		s.apply(a)
		s.eventually(time.Minute, host+" being refused", func() string {
			s.get(a)

			if c := a.GetCondition(v1alpha1.TypeConnected); c.Reason != v1alpha1.ReasonAddressRefused {
				return "the condition Connected is " + string(c.Reason) + " " + c.Message
			}

			return ""
		})
	}

	for _, host := range []string{"127.0.0.1", "bank.svc", "a.b.bank.svc", "orders-db-rw.bank.svc.cluster.local", "orders-db-rw.bank.svc:22"} {
		a := &accessv1alpha1.Access{ObjectMeta: meta("bank", s.name())}
		a.Spec.ForProvider.Server = accessv1alpha1.Server{
			Host:              host,
			PasswordSecretRef: accessv1alpha1.SecretKeyReference{Name: "x", Key: "password"},
			CASecretRef:       accessv1alpha1.SecretKeyReference{Name: "x", Key: "ca.crt"},
		}

		if err := s.Create(t.Context(), a); err == nil {
			t.Errorf("%q should be refused by the schema", host)
		}
	}
}

// strangersSecret is a Secret of the own namespace that is no Credential's: who writes an Access need not be able to read it.
func strangersSecret(t *testing.T, s *stage) {
	t.Helper()

	secret := &corev1.Secret{ObjectMeta: meta("bank", s.name()), StringData: map[string]string{"password": "precious", "ca.crt": string(s.s3.CA)}}
	s.apply(secret)

	a := &accessv1alpha1.Access{ObjectMeta: meta("bank", s.name())}
	a.Spec.ForProvider.Server = accessv1alpha1.Server{
		Host:              "orders-db-rw.bank.svc",
		PasswordSecretRef: accessv1alpha1.SecretKeyReference{Name: secret.Name, Key: "password"},
		CASecretRef:       accessv1alpha1.SecretKeyReference{Name: secret.Name, Key: "ca.crt"},
	}
	a.Spec.ForProvider.Databases = []accessv1alpha1.AccessDatabase{{Name: "orders"}}
	s.apply(a)
	s.eventually(time.Minute, "the Secret being refused", func() string {
		s.get(a)

		c := a.GetCondition(v1alpha1.TypeConnected)
		if c.Reason != v1alpha1.ReasonCredentialsMissing || !strings.Contains(c.Message, "is not of a Credential") {
			return "the condition Connected is " + string(c.Reason) + " " + c.Message
		}

		return ""
	})
}
