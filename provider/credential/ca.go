// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// biggest bundle of certificates that is read. The whole of what browsers trust has a quarter of it.
const biggest = 1 << 20 / 2

// awaited certificates are not there yet. Their issuer makes them, and there is nothing to solve.
type awaited struct{ what string }

func (a awaited) Error() string {
	return fmt.Sprintf("connection.caFrom: %s does not exist yet, or is empty: put certificates there, or name another", a.what)
}

// authorities are the certificates that cr asks for, if it does. They are read in the namespace of cr and nowhere else, from the
// API server and never from a cache.
func (e *external) authorities(ctx context.Context, cr *v1alpha1.Credential) ([]byte, error) {
	if c := cr.Spec.ForProvider.Connection; c == nil || c.CAFrom == nil {
		return nil, nil
	}
	what, data, err := e.source(ctx, cr.GetNamespace(), cr.Spec.ForProvider.Connection.CAFrom)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, awaited{what: what}
	}
	certs, err := certificates(data)
	if err != nil {
		return nil, fmt.Errorf("connection.caFrom: %s is not to be used: %w", what, err)
	}
	return certs, nil
}

// source reads a key of a Secret or a ConfigMap, and says what it is. What is not there is empty.
func (e *external) source(ctx context.Context, namespace string, from *v1alpha1.CASource) (string, []byte, error) {
	switch {
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		what := fmt.Sprintf("key %q of Secret %q", ref.Key, ref.Name)
		s := &corev1.Secret{}
		if err := e.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, s); client.IgnoreNotFound(err) != nil {
			return what, nil, fmt.Errorf("cannot get Secret %q of connection.caFrom: %w", ref.Name, err)
		}
		return what, s.Data[ref.Key], nil
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		what := fmt.Sprintf("key %q of ConfigMap %q", ref.Key, ref.Name)
		m := &corev1.ConfigMap{}
		if err := e.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, m); client.IgnoreNotFound(err) != nil {
			return what, nil, fmt.Errorf("cannot get ConfigMap %q of connection.caFrom: %w", ref.Name, err)
		}
		if text, ok := m.Data[ref.Key]; ok {
			return what, []byte(text), nil
		}
		return what, m.BinaryData[ref.Key], nil
	default:
		return "what it names", nil, nil
	}
}

// certificates in data, and nothing else of it: a person who may make a Credential must not get a private key or a password copied by
// it. No error says what was found.
func certificates(data []byte) ([]byte, error) {
	if len(data) > biggest {
		return nil, fmt.Errorf("it has more than %d bytes", biggest)
	}
	var out bytes.Buffer
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, errors.New("it holds something that is not a certificate")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, errors.New("it holds a certificate that cannot be read")
		}
		if err := pem.Encode(&out, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return nil, fmt.Errorf("cannot write a certificate: %w", err)
		}
	}
	if out.Len() == 0 {
		return nil, errors.New("it holds no certificate in PEM")
	}
	return out.Bytes(), nil
}
