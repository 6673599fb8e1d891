// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"testing"

	storagev1alpha1 "github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

// TestKeyOfTheNamespace holds that clients of buckets get the key of their namespace where there is one, and never the provider's.
func TestKeyOfTheNamespace(t *testing.T) {
	shared, own := &outside.AccessKey{ID: "shared", Secret: "a"}, outside.AccessKey{ID: "of-shop", Secret: "b"}
	for name, tc := range map[string]struct {
		reason string
		shared *outside.AccessKey
		own    outside.AccessKey
		want   string
	}{
		"Own":    {"The namespace has a key.", nil, own, "of-shop"},
		"Both":   {"A key of the namespace comes before one of all.", shared, own, "of-shop"},
		"Shared": {"All have the same key.", shared, outside.AccessKey{}, "shared"},
		"None":   {"Keys are given out elsewhere.", nil, outside.AccessKey{}, ""},
	} {
		e := &external{client: &s3.Client{Workload: tc.shared}, tenant: outside.Tenant{Workload: tc.own}}
		d, err := e.details(t.Context(), &storagev1alpha1.Bucket{}, found{})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(d[storagev1alpha1.KeyAccessKeyID]); got != tc.want {
			t.Errorf("%s: %s want %q, got %q", name, tc.reason, tc.want, got)
		}
	}
}
