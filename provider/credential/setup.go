// SPDX-License-Identifier: Apache-2.0

// Package credential reconciles Credentials: generated passwords in Secrets.
//
// The Secret is the external resource. It is read by its name and never listed, watched or cached, so that the provider holds no
// Secret in memory and needs no right to list them. It has no owner: it stays when its Credential goes (unless the policies
// include Delete), and is found again, never generated again, when the Credential comes back. The label of apis/credentials marks
// it as ours; without it a Secret is neither adopted, nor changed, nor deleted.
//
// All that decides is in a draft: what the Secret should be, as a list of steps that begin with what it is. What has to be
// remembered (when values were rotated, which keys are ours) is in annotations of the Secret and written with the values.
package credential

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

// Setup adds a controller of Credentials to mgr.
func Setup(mgr ctrl.Manager, o controller.Options) error {
	return kind.Setup(mgr, o, v1alpha1.CredentialGroupVersionKind, options(mgr.GetClient(), mgr.GetAPIReader(), time.Now))
}

func options(kube client.Client, reader client.Reader, now func() time.Time) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.CredentialGroupVersionKind, &connector{kube: kube, reader: reader, now: now, memory: newMemory()}),
		managed.WithPollIntervalHook(wake(now)),

		// The Secret's name is known beforehand and Create never makes a second one, so a crash in the middle of Create needs no
		// help.
		managed.WithDeterministicExternalName(true),

		// The API server does not forget what it has just stored.
		managed.WithCreationGracePeriod(0),
	}
}
