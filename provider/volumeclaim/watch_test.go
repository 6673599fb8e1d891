// SPDX-License-Identifier: Apache-2.0

package volumeclaim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAfter(t *testing.T) {
	claim := func(phase corev1.PersistentVolumeClaimPhase) client.Object {
		return &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
	}
	for name, tc := range map[string]struct {
		reason string
		was    client.Object
		want   time.Duration
	}{
		"New":     {"Others are made at the same time.", claim(""), arriving},
		"Pending": {"So they are when they are bound.", claim(corev1.ClaimPending), arriving},
		"Bound":   {"Somebody may wait for it to grow.", claim(corev1.ClaimBound), 0},
		"Class":   {"It may let volumes grow that are full.", &storagev1.StorageClass{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := after(tc.was); got != tc.want {
				t.Errorf("\n%s\nafter(...): want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
