// SPDX-License-Identifier: Apache-2.0

package volumeclaim

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
)

// claimOf member orders-db-a, with what it asks for and what it has.
func claimOf(requested, granted string, modify ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "data-orders-db-a-0", UID: "1",
			Labels: map[string]string{
				observev1alpha1.LabelDatabase: "orders-db", observev1alpha1.LabelMember: "orders-db-a", observev1alpha1.LabelIdentity: "3f2a",
			},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("fast"),
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(requested)}},
		},
		Status: corev1.PersistentVolumeClaimStatus{
			Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(granted)},
		},
	}
	for _, m := range modify {
		m(c)
	}
	return c
}

func saying(t corev1.PersistentVolumeClaimConditionType, message string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Status.Conditions = append(c.Status.Conditions,
			corev1.PersistentVolumeClaimCondition{Type: t, Status: corev1.ConditionTrue, Message: message})
	}
}

func classOf(expandable *bool) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "disks.example.org", AllowVolumeExpansion: expandable}
}

func TestTell(t *testing.T) {
	grows := classOf(new(true))
	cases := map[string]struct {
		reason string
		volume volume
		want   v1alpha1.VolumeObservation
		words  string
		lacks  bool
	}{
		"Pending": {
			reason: "A claim that waits for its pod has no volume.",
			volume: volume{class: grows, claim: claimOf("50Gi", "50Gi", func(c *corev1.PersistentVolumeClaim) {
				c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
			})},
			want: v1alpha1.VolumeObservation{Requested: "50Gi", State: v1alpha1.VolumePending},
		},
		"Ready": {
			reason: "It is as large as it should be.",
			volume: volume{class: grows, claim: claimOf("80Gi", "80Gi")},
			want:   v1alpha1.VolumeObservation{Requested: "80Gi", Granted: "80Gi", State: v1alpha1.VolumeReady},
		},
		"Larger": {
			reason: "What is larger stays so.",
			volume: volume{class: grows, claim: claimOf("100Gi", "100Gi")},
			want:   v1alpha1.VolumeObservation{Requested: "100Gi", Granted: "100Gi", State: v1alpha1.VolumeReady},
		},
		"ReadyWithoutClass": {
			reason: "What has its size needs no class.",
			volume: volume{claim: claimOf("80Gi", "80Gi")},
			want:   v1alpha1.VolumeObservation{Requested: "80Gi", Granted: "80Gi", State: v1alpha1.VolumeReady},
		},
		"Small": {
			reason: "More is to be requested.",
			volume: volume{class: grows, claim: claimOf("50Gi", "50Gi")},
			want:   v1alpha1.VolumeObservation{Requested: "50Gi", Granted: "50Gi", State: v1alpha1.VolumeGrowing},
			lacks:  true,
		},
		"Growing": {
			reason: "More is requested and not there yet.",
			volume: volume{class: grows, claim: claimOf("80Gi", "50Gi", saying(corev1.PersistentVolumeClaimResizing, ""))},
			want:   v1alpha1.VolumeObservation{Requested: "80Gi", Granted: "50Gi", State: v1alpha1.VolumeGrowing},
		},
		"GrowingByHand": {
			reason: "Somebody has asked for more by hand: it is on its way, too.",
			volume: volume{class: grows, claim: claimOf("100Gi", "80Gi")},
			want:   v1alpha1.VolumeObservation{Requested: "100Gi", Granted: "80Gi", State: v1alpha1.VolumeGrowing},
		},
		"FileSystem": {
			reason: "The storage is larger, the file system not yet.",
			volume: volume{class: grows, claim: claimOf("80Gi", "50Gi", saying(corev1.PersistentVolumeClaimFileSystemResizePending, "Waiting for user to (re-)start a pod"))},
			want:   v1alpha1.VolumeObservation{Requested: "80Gi", Granted: "50Gi", State: v1alpha1.VolumeFileSystemPending},
		},
		"NotExpandable": {
			reason: "The class does not let it grow.",
			volume: volume{class: classOf(nil), claim: claimOf("50Gi", "50Gi")},
			want:   v1alpha1.VolumeObservation{Requested: "50Gi", Granted: "50Gi", State: v1alpha1.VolumeNotExpandable},
			words:  `StorageClass "fast" does not let volumes grow: set its allowVolumeExpansion to true if its driver disks.example.org can do so`,
		},
		"NoClass": {
			reason: "Without its class nobody says whether it may grow.",
			volume: volume{claim: claimOf("50Gi", "50Gi")},
			want:   v1alpha1.VolumeObservation{Requested: "50Gi", Granted: "50Gi", State: v1alpha1.VolumeNotExpandable},
			words:  `"fast" is not there`,
		},
		"Refused": {
			reason: "The API server did not take it, and it is tried again.",
			volume: volume{class: grows, claim: claimOf("50Gi", "50Gi"), refused: "exceeded quota"},
			want:   v1alpha1.VolumeObservation{Requested: "50Gi", Granted: "50Gi", State: v1alpha1.VolumeFailed},
			words:  "exceeded quota", lacks: true,
		},
		"ControllerFailed": {
			reason: "What the driver tells is passed on, in one line.",
			volume: volume{class: grows, claim: claimOf("80Gi", "50Gi", saying(corev1.PersistentVolumeClaimControllerResizeError, "pool is\nfull"))},
			want:   v1alpha1.VolumeObservation{Requested: "80Gi", Granted: "50Gi", State: v1alpha1.VolumeFailed},
			words:  "could not let it grow: pool is full",
		},
		"NodeFailed": {
			reason: "And so is what the node tells.",
			volume: volume{class: grows, claim: claimOf("80Gi", "50Gi",
				saying(corev1.PersistentVolumeClaimFileSystemResizePending, ""), saying(corev1.PersistentVolumeClaimNodeResizeError, "xfs_growfs: no"))},
			want:  v1alpha1.VolumeObservation{Requested: "80Gi", Granted: "50Gi", State: v1alpha1.VolumeFailed},
			words: "xfs_growfs: no",
		},
		"Infeasible": {
			reason: "There is no use in waiting.",
			volume: volume{class: grows, claim: claimOf("80Gi", "50Gi", func(c *corev1.PersistentVolumeClaim) {
				c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
					corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInfeasible,
				}
			})},
			want:  v1alpha1.VolumeObservation{Requested: "80Gi", Granted: "50Gi", State: v1alpha1.VolumeFailed},
			words: "cannot give it this size",
		},
		"InfeasibleLog": {
			reason: "What cannot be given to a volume of the write-ahead log is another field.",
			volume: volume{class: grows, claim: claimOf("80Gi", "50Gi", func(c *corev1.PersistentVolumeClaim) {
				c.Labels[observev1alpha1.LabelVolume] = observev1alpha1.VolumeWAL
				c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInfeasible}
			})},
			want:  v1alpha1.VolumeObservation{Requested: "80Gi", Granted: "50Gi", Holds: v1alpha1.HoldsWAL, State: v1alpha1.VolumeFailed},
			words: "set spec.walStorage",
		},
		"Going": {
			reason: "A claim that is being deleted is left alone.",
			volume: volume{class: grows, claim: claimOf("50Gi", "50Gi", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} })},
			want:   v1alpha1.VolumeObservation{Requested: "50Gi", Granted: "50Gi", State: v1alpha1.VolumeGrowing},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.volume.size = resource.MustParse("80Gi")
			tc.want.Name, tc.want.Member, tc.want.StorageClass = "data-orders-db-a-0", "orders-db-a", "fast"
			got := tc.volume.observation()
			if !strings.Contains(got.Message, tc.words) || (got.Message == "") != (tc.words == "") {
				t.Errorf("\n%s\nwant %q in message %q", tc.reason, tc.words, got.Message)
			}
			got.Message = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\ntell(...): -want, +got:\n%s", tc.reason, diff)
			}
			if got := tc.volume.lacks(); got != tc.lacks {
				t.Errorf("\n%s\nlacks(...): want %t, got %t", tc.reason, tc.lacks, got)
			}
		})
	}
}

// TestMissing claims are those of write-ahead logs of members that have none.
func TestMissing(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.VolumeClaim)
		found  []string
		want   []string
	}{
		"None":    {reason: "Each member gets one.", want: []string{"wal-orders-db-a-0", "wal-orders-db-b-0"}},
		"One":     {reason: "One that is there stays.", found: []string{"data-orders-db-a-0", "wal-orders-db-a-0"}, want: []string{"wal-orders-db-b-0"}},
		"Without": {reason: "Without the field none is made.", change: func(v *v1alpha1.VolumeClaim) { v.Spec.ForProvider.WALVolumes = nil }},
		"Unknown": {reason: "A claim without an identity would be nobody's.", change: func(v *v1alpha1.VolumeClaim) { v.Spec.ForProvider.Identity = "" }},
		"Going":   {reason: "Nothing is made for a Database that goes.", change: func(v *v1alpha1.VolumeClaim) { v.DeletionTimestamp = &metav1.Time{} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := &v1alpha1.VolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-db"}}
			v.Spec.ForProvider = v1alpha1.VolumeClaimParameters{
				Database: "orders-db", Identity: "3f2a", Members: []string{"orders-db-b", "orders-db-a"}, Size: resource.MustParse("50Gi"),
				WALVolumes: &v1alpha1.WALVolumes{Size: resource.MustParse("20Gi"), StorageClassName: "fast"},
			}
			if tc.change != nil {
				tc.change(v)
			}
			var found []volume
			for _, name := range tc.found {
				found = append(found, volume{claim: claimOf("50Gi", "50Gi", func(c *corev1.PersistentVolumeClaim) { c.Name = name })})
			}
			var got []string
			for _, c := range missing(v, found) {
				got = append(got, c.Name)
				if c.Labels[observev1alpha1.LabelVolume] != observev1alpha1.VolumeWAL || c.Spec.Resources.Requests.Storage().String() != "20Gi" || *c.Spec.StorageClassName != "fast" {
					t.Errorf("\n%s\na claim of another kind: %+v", tc.reason, c)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nmissing(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFilled volume: its claim is made once, with the snapshot.
func TestFilled(t *testing.T) {
	v := &v1alpha1.VolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-db"}}
	v.Spec.ForProvider = v1alpha1.VolumeClaimParameters{
		Database: "orders-db", Identity: "3f2a", Members: []string{"orders-db-a"}, Size: resource.MustParse("50Gi"),
		Filled: &v1alpha1.FilledVolume{Member: "orders-db-a", Snapshot: "stock-db-1", StorageClassName: "fast", Labels: map[string]string{"capstan.dev/generation": "1", observev1alpha1.LabelIdentity: "another"}},
	}
	want := []*corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-orders-db-a-0", UID: "shop/data-orders-db-a-0", Labels: map[string]string{
			observev1alpha1.LabelDatabase: "orders-db", observev1alpha1.LabelMember: "orders-db-a", observev1alpha1.LabelIdentity: "3f2a", "capstan.dev/generation": "1",
		}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("50Gi")}},
			StorageClassName: new("fast"),
			DataSource:       &corev1.TypedLocalObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: "stock-db-1"},
		},
	}}
	if diff := cmp.Diff(want, missing(v, nil)); diff != "" {
		t.Errorf("missing(...): -want, +got:\n%s", diff)
	}
	found := []volume{{claim: claimOf("50Gi", "50Gi", func(c *corev1.PersistentVolumeClaim) { c.Name = "data-orders-db-a-0" })}}
	if got := missing(v, found); len(got) > 0 {
		t.Errorf("a volume that is there must stay, and %v is made", got)
	}
}

func TestRefusals(t *testing.T) {
	claim, size := claimOf("50Gi", "50Gi"), resource.MustParse("80Gi")
	forbidden := kerrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, claim.Name, errors.New("exceeded quota: storage"))
	r := newRefusals()
	r.note(claim, size, errors.New("connection refused"))
	if got := r.of(claim, size); got != "" {
		t.Errorf("What passes by itself is no refusal, got %q", got)
	}
	r.note(claim, size, forbidden)
	r.note(claim, size, errors.New("connection refused"))
	if got := r.of(claim, size); !strings.Contains(got, "exceeded quota") {
		t.Errorf("A refusal holds until a size is taken, got %q", got)
	}
	if got := r.of(claim, resource.MustParse("60Gi")); got != "" {
		t.Errorf("Another size was not refused, got %q", got)
	}
	r.note(claim, size, nil)
	if got := r.of(claim, size); got != "" {
		t.Errorf("A size that was taken is not refused, got %q", got)
	}
}
