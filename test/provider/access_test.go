// SPDX-License-Identifier: Apache-2.0

//go:build integration

package provider

import (
	"testing"
	"time"

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
