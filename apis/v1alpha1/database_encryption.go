// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// BackupEncryption encrypts backups before they leave the cluster. Access to the bucket alone is then not enough to
// read them.
type BackupEncryption struct {
	// SecretRef names the key.
	SecretRef BackupKeyReference `json:"secretRef"`
}

// BackupKeyReference names the key of backups. You create and keep it: if you lose it, you lose the backups.
type BackupKeyReference struct {
	// Name of a Secret of this namespace.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="orders-backup-key"
	Name string `json:"name"`

	// Key in the Secret whose value encrypts backups: one line of 24 to 1024 printable ASCII characters, for instance
	// from openssl rand -base64 48. Default: passphrase.
	//
	// +kubebuilder:default=passphrase
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="must be a key of a Secret: letters, digits, '-', '_' and '.'"
	// +kubebuilder:example="passphrase"
	// +optional
	Key string `json:"key,omitempty"`
}
