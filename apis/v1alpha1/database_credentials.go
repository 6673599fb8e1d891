// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DatabaseCredentials define how the logins of consumers are rotated. A consumer has two roles that take turns, for
// instance api and api-b. Both are members of the role that owns or reads its database, so ownership never changes. A
// rotation creates the other role with a new password and then writes both into the consumer's Secret at once. The
// previous role stays valid for a while.
type DatabaseCredentials struct {
	// RotateEvery is how long a login is used before it is replaced, in days or hours, for instance 30d. It counts from
	// the creation of its password. Default: no schedule.
	//
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([1-9][0-9]{0,2}d|[1-9][0-9]{0,3}h)$')",message="must be days or hours, for instance 30d"
	// +kubebuilder:example="30d"
	// +optional
	RotateEvery string `json:"rotateEvery,omitempty"`

	// Overlap is the maximum time that the previous login stays valid after a rotation, in days, hours or minutes.
	// Clients must read their Secret again within it. It ends early when the previous login has had no session for ten
	// minutes, except with spec.pooler or for ReadOnly consumers of several members. At the end that login is disabled
	// and its sessions are terminated. 0s ends it at once, for a leaked password. Default: 24h.
	//
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0s|[1-9][0-9]?d|[1-9][0-9]{0,2}h|[1-9][0-9]{0,3}m)$')",message="must be days, hours or minutes, for instance 24h, or 0s"
	// +kubebuilder:example="24h"
	// +optional
	Overlap string `json:"overlap,omitempty"`

	// ID requests a rotation: another ID than before rotates the logins once. The ID that a Database or a consumer is
	// created with rotates nothing. Default: none.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-_.:a-zA-Z0-9]*[a-zA-Z0-9])?$')",message="must be letters, digits, -, _, . and : with a letter or digit at both ends, for instance 2026-11-22"
	// +kubebuilder:example="2026-11-22"
	// +optional
	ID string `json:"id,omitempty"`
}
