// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DatabasePromotion lets a standby take writes.
type DatabasePromotion struct {
	// ID of the request. The ID that a Database is created with is not carried out, so that a copied manifest promotes
	// nothing; use another ID.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="2026-11-25-a"
	ID string `json:"id"`
}

// StandbyStatus is the state of a Database with spec.from.backup.follow.
type StandbyStatus struct {
	// Standby reports that the Database is a standby. It is false once it was promoted.
	Standby bool `json:"standby"`

	// Stanza that is followed.
	//
	// +optional
	Stanza string `json:"stanza,omitempty"`

	// ReplayedTo is when the last transaction was committed that is replayed, up to five minutes ago. It does not
	// change while nothing is written to the primary.
	//
	// +optional
	ReplayedTo *metav1.Time `json:"replayedTo,omitempty"`

	// Promotion is the ID that promoted the Database.
	//
	// +optional
	Promotion string `json:"promotion,omitempty"`

	// PromotedAt is when the promotion began.
	//
	// +optional
	PromotedAt *metav1.Time `json:"promotedAt,omitempty"`
}
