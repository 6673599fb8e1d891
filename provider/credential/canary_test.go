// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// TestCanary looks for every value that a Secret ever held wherever it must not be, with every log message on.
func TestCanary(t *testing.T) {
	canaries := map[string]string{}
	fail := false

	// An admission policy may quote what it refuses.
	refuse := func(o client.Object) error {
		s, ok := o.(*corev1.Secret)
		if !ok || !fail {
			return nil
		}
		quote, err := json.Marshal(s.Data)
		if err != nil {
			return err
		}
		why := []string{string(quote)}
		for k, v := range s.Data {
			canaries["refused "+k] = string(v)
			why = append(why, string(v))
		}
		return kerrors.NewForbidden(corev1.Resource("secrets"), o.GetName(), errors.New(strings.Join(why, " ")))
	}
	b := newBench(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := refuse(o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := refuse(o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	failing := func(step string) {
		t.Helper()
		b.settle()

		// Something must have been told, or this proves nothing.
		if got := b.credential().GetCondition(xpv2.TypeSynced); got.Reason != xpv2.ReasonReconcileError {
			t.Errorf("%s should have failed, got %+v", step, got)
		}
	}
	seen := func(step string) {
		t.Helper()
		b.settle()
		for k, v := range b.secret().Data {
			canaries[step+" "+k] = string(v)
		}
	}

	// Certificates are no secret, but what is found in their place may be.
	stray := "stray-" + newIdentity()
	b.apply(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: "ca"},
		Data:       map[string]string{"ca.crt": stray},
	})
	canaries["stray"] = stray
	cr := everything()
	cr.Spec.ForProvider.Keys[1].Alphabet = v1alpha1.AlphabetPrintable
	cr.Spec.ForProvider.Connection.CAFrom = &v1alpha1.CASource{
		ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "ca", Key: "ca.crt"},
	}
	b.apply(cr)

	// Failure is where secrets leak.
	fail = true
	failing("Create")
	fail = false
	seen("created")
	failing("Certificates that are none")
	b.ask(func(p *v1alpha1.CredentialParameters) { p.Connection.CAFrom = nil })
	seen("connected")
	b.now = start.Add(720 * time.Hour)
	fail = true
	failing("A rotation")
	fail = false
	seen("rotated")
	s := b.secret()
	s.Data["password"] = []byte("unfit-Wörter-" + newIdentity())
	s.Data["note"] = []byte("note-" + newIdentity())
	b.change(s)
	b.ask(func(p *v1alpha1.CredentialParameters) {
		p.Keys[1].Derive = []v1alpha1.Derivation{{Format: v1alpha1.FormatBcrypt, Key: "note"}}
	})
	seen("changed")
	failing("What cannot be derived")
	s = b.secret()
	delete(s.Data, "token")
	b.change(s)
	failing("A lost value")
	found := b.sinks()
	for what, canary := range canaries {
		// What everybody may know.
		if k := what[strings.LastIndex(what, " ")+1:]; k == v1alpha1.KeyHost || k == v1alpha1.KeyPort || k == v1alpha1.KeyType ||
			k == v1alpha1.KeyDatabase || k == v1alpha1.KeyUsername || k == v1alpha1.KeyJDBCURL {
			continue
		}
		for _, form := range forms(canary) {
			for sink, got := range found {
				if strings.Contains(got, form) {
					t.Errorf("A value (%s) is in the %s", what, sink)
				}
			}
		}
	}
	if len(canaries) < 40 {
		t.Errorf("Only %d values were looked for", len(canaries))
	}
}

// forms that a value may leak in.
func forms(value string) []string {
	all := []string{
		value, base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte(value)),
		hex.EncodeToString([]byte(value)), url.QueryEscape(value), url.PathEscape(value), escape(value),
	}
	if quoted, err := json.Marshal(value); err == nil {
		all = append(all, strings.Trim(string(quoted), `"`))
	}
	return all
}

// sinks are all that leaves the provider, but the Secret.
func (b *bench) sinks() map[string]string {
	b.t.Helper()
	sinks := map[string]string{"log": b.log.String()}
	status, err := json.Marshal(b.credential())
	if err != nil {
		b.t.Fatal(err)
	}

	// With what the record tells, which people may see who may not see the values.
	record, err := json.Marshal(b.secret().ObjectMeta)
	if err != nil {
		b.t.Fatal(err)
	}
	sinks["credential"], sinks["record"] = string(status), string(record)
	close(b.events.Events)
	for e := range b.events.Events {
		sinks["events"] += e
	}
	families, err := b.metrics.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range families {
		sinks["metrics"] += f.String()
	}
	for sink, got := range sinks {
		if got == "" {
			b.t.Errorf("Nothing was told to the %s", sink)
		}
	}
	return sinks
}
