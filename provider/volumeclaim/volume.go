// SPDX-License-Identifier: Apache-2.0

package volumeclaim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// maxMessage bounds in bytes what storage drivers report.
const maxMessage = 512

// A volume is what is known of one.
type volume struct {
	claim *corev1.PersistentVolumeClaim

	// class that it was made by, if it is there.
	class *storagev1.StorageClass

	// size that it should have at least.
	size resource.Quantity

	// refused is why the API server did not take that size, if it was tried.
	refused string
}

// requested and granted size.
func (v volume) requested() resource.Quantity { return *v.claim.Spec.Resources.Requests.Storage() }
func (v volume) granted() resource.Quantity   { return *v.claim.Status.Capacity.Storage() }

// bound claims have a volume.
func (v volume) bound() bool { return v.claim.Status.Phase == corev1.ClaimBound }

// expandable reports whether the class lets volumes grow. One that is gone does not.
func (v volume) expandable() bool {
	return v.class != nil && v.class.AllowVolumeExpansion != nil && *v.class.AllowVolumeExpansion
}

// holdsWAL reports whether it is for the write-ahead log alone.
func (v volume) holdsWAL() bool {
	return v.claim.GetLabels()[observev1alpha1.LabelVolume] == observev1alpha1.VolumeWAL
}

// lacks reports whether more must be requested, and can be.
func (v volume) lacks() bool {
	requested := v.requested()
	return v.bound() && v.claim.GetDeletionTimestamp() == nil && v.expandable() && requested.Cmp(v.size) < 0
}

// observation of a volume.
func (v volume) observation() v1alpha1.VolumeObservation {
	requested, granted := v.requested(), v.granted()
	o := v1alpha1.VolumeObservation{
		Name:      v.claim.GetName(),
		Member:    v.claim.GetLabels()[observev1alpha1.LabelMember],
		Requested: requested.String(),
	}
	if v.holdsWAL() {
		o.Holds = v1alpha1.HoldsWAL
	}
	if v.claim.Spec.StorageClassName != nil {
		o.StorageClass = *v.claim.Spec.StorageClassName
	}
	if !granted.IsZero() {
		o.Granted = granted.String()
	}
	o.State, o.Message = v.state()
	return o
}

// state of a volume, and the cause when a person has to act.
func (v volume) state() (state, message string) {
	size, requested, granted := v.size, v.requested(), v.granted()
	switch {
	case !v.bound():
		return v1alpha1.VolumePending, ""
	case granted.Cmp(size) >= 0 && granted.Cmp(requested) >= 0:
		return v1alpha1.VolumeReady, ""
	case requested.Cmp(size) < 0 && v.class == nil:
		return v1alpha1.VolumeNotExpandable, fmt.Sprintf("its StorageClass %q is not there, so it is unknown whether it may grow", v.className())
	case requested.Cmp(size) < 0 && !v.expandable():
		return v1alpha1.VolumeNotExpandable, fmt.Sprintf(
			"StorageClass %q does not let volumes grow: set its allowVolumeExpansion to true if its driver %s can do so, "+
				"or make another Database of a class that can, and move the data", v.className(), v.class.Provisioner)
	case requested.Cmp(size) < 0 && v.refused != "":
		return v1alpha1.VolumeFailed, v.refused
	case requested.Cmp(size) < 0:
		return v1alpha1.VolumeGrowing, ""
	}
	if told, failed := v.failure(); failed {
		return v1alpha1.VolumeFailed, told
	}
	if v.is(corev1.PersistentVolumeClaimFileSystemResizePending) {
		return v1alpha1.VolumeFileSystemPending, ""
	}
	return v1alpha1.VolumeGrowing, ""
}

// failure of the storage driver. It tries again by itself, unless it says that there is no use.
func (v volume) failure() (string, bool) {
	for _, t := range []corev1.PersistentVolumeClaimConditionType{
		corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
	} {
		for _, c := range v.claim.Status.Conditions {
			if c.Type == t && c.Status == corev1.ConditionTrue {
				return "the storage driver could not let it grow: " + words.Bounded(words.OneLine(c.Message), maxMessage), true
			}
		}
	}
	switch v.claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] {
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		field := "spec.storage"
		if v.holdsWAL() {
			field = "spec.walStorage"
		}
		return "the storage driver cannot give it this size: set " + field + " of the Database to what it can give, which must be more than it has", true
	default:
		return "", false
	}
}

func (v volume) is(t corev1.PersistentVolumeClaimConditionType) bool {
	for _, c := range v.claim.Status.Conditions {
		if c.Type == t && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func (v volume) className() string {
	if v.claim.Spec.StorageClassName == nil {
		return ""
	}
	return *v.claim.Spec.StorageClassName
}
