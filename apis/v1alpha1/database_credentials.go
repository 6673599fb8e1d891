// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DatabaseCredentials say how the logins of consumers are rotated. A consumer has two
// roles that take turns, for instance api and api-b, both members of the role that
// owns its database, or reads it, so that nothing changes hands. A rotation makes the
// other role with a password of its own, then puts both into the consumer's Secret at
// once; the role before is good for a while longer.
type DatabaseCredentials struct {
	// RotateEvery is how long a login is used before it is replaced, in days or hours,
	// for instance 30d. It counts from when its password was made. Default: no
	// schedule.
	//
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([1-9][0-9]{0,2}d|[1-9][0-9]{0,3}h)$')",message="must be days or hours, for instance 30d"
	// +kubebuilder:example="30d"
	// +optional
	RotateEvery string `json:"rotateEvery,omitempty"`

	// Overlap is how long the login before is good after a rotation, at most, in days,
	// hours or minutes: clients have to read their Secret again within it. It ends
	// sooner once no session of that login was seen for ten minutes; not so for
	// consumers that only read, where several members serve them, and with
	// spec.pooler. At its end that login is shut out and its sessions are ended. 0s
	// ends it at once, for a password that has leaked. Default: 24h.
	//
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0s|[1-9][0-9]?d|[1-9][0-9]{0,2}h|[1-9][0-9]{0,3}m)$')",message="must be days, hours or minutes, for instance 24h, or 0s"
	// +kubebuilder:example="24h"
	// +optional
	Overlap string `json:"overlap,omitempty"`

	// ID of the logins that are wanted: another id than before rotates them, once. One
	// that the Database, or a consumer, is made with rotates nothing. Default: none.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-_.:a-zA-Z0-9]*[a-zA-Z0-9])?$')",message="must be letters, digits, -, _, . and : with a letter or digit at both ends, for instance 2026-11-22"
	// +kubebuilder:example="2026-11-22"
	// +optional
	ID string `json:"id,omitempty"`
}
