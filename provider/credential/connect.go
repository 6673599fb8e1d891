// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

var (
	_ managed.TypedExternalConnector[*v1alpha1.Credential] = &connector{}
	_ managed.TypedExternalClient[*v1alpha1.Credential]    = &external{}
)

// A connector has nothing to connect to: Secrets are in the cluster itself.
type connector struct {
	kube   client.Client
	reader client.Reader
	now    func() time.Time
	memory *memory
}

// Connect to the Secrets of the cluster.
func (c *connector) Connect(
	context.Context, *v1alpha1.Credential,
) (managed.TypedExternalClient[*v1alpha1.Credential], error) {
	return &external{kube: c.kube, reader: c.reader, now: c.now, memory: c.memory}, nil
}

// external is the Secret of a Credential. Its client must read Secrets from the API server, not from a cache.
type external struct {
	kube client.Client

	// reader of certificates, which never reads from a cache.
	reader client.Reader

	now    func() time.Time
	memory *memory
}

// Disconnect does nothing: there is no connection.
func (e *external) Disconnect(context.Context) error { return nil }
