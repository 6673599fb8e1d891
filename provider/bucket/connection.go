// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
)

// details for those who use the bucket. The provider's own key is never among
// them.
func (e *external) details(b *bucket, endpoint string) managed.ConnectionDetails {
	d := managed.ConnectionDetails{
		v1alpha1.KeyEndpoint: []byte(endpoint),
		v1alpha1.KeyRegion:   []byte(b.region),
		v1alpha1.KeyBucket:   []byte(b.name),
	}

	k := e.client.Workload
	if k == nil {
		return d
	}

	d[v1alpha1.KeyAccessKeyID] = []byte(k.ID)
	d[v1alpha1.KeySecretAccessKey] = []byte(k.Secret)

	if k.Session != "" {
		d[v1alpha1.KeySessionToken] = []byte(k.Session)
	}

	return d
}
