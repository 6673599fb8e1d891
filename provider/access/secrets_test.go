// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// TestPasswordsAreOfCredentials holds that an Access sends nothing of a Secret that is not meant for it: whoever writes an Access need
// not be able to read Secrets, and chooses the server.
func TestPasswordsAreOfCredentials(t *testing.T) {
	secret := func(name string, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}, Data: map[string][]byte{"password": []byte("precious")},
		}
	}
	kube := fake.NewClientBuilder().WithObjects(
		secret("of-a-credential", map[string]string{credentialsv1alpha1.LabelCredential: "orders"}),
		secret("stranger", map[string]string{"app": "vault"}),
		secret("empty-label", map[string]string{credentialsv1alpha1.LabelCredential: ""}),
	).Build()
	e := &external{connector: &connector{kube: kube}, cr: &v1alpha1.Access{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-db"}}}
	for name, want := range map[string]string{
		"of-a-credential": "", "stranger": "is not of a Credential", "empty-label": "is not of a Credential", "missing": "there is no Secret",
	} {
		ref := v1alpha1.SecretKeyReference{Name: name, Key: "password"}
		e.cr.Spec.ForProvider.Server = v1alpha1.Server{Host: "orders-db-rw.shop.svc", PasswordSecretRef: ref}
		_, ofLogin := e.password(t.Context(), v1alpha1.Login{Name: "api", PasswordSecretRef: ref})
		_, ofServer := e.at(t.Context())
		for what, err := range map[string]error{`login "api"`: ofLogin, "server.passwordSecretRef": ofServer} {
			f := (*outside.Failure)(nil)
			switch {
			case want == "" && err != nil && strings.Contains(err.Error(), `"`+name+`"`):
				t.Errorf("%s of %s should be read, got %v", what, name, err)
			case want != "" && (!errors.As(err, &f) || f.Reason != apis.ReasonCredentialsMissing ||
				!strings.Contains(f.Message, want) || !strings.Contains(f.Message, what)):
				t.Errorf("%s of %s: want %q, got %v", what, name, want, err)
			case err != nil && strings.Contains(err.Error(), "precious"):
				t.Errorf("Nothing of a Secret should be told, got %v", err)
			}
		}
	}
}
