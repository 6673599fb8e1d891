// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DatabaseWorkloadIdentity is who the pods of a Database are in the cloud: the role that its trust policy gives to the
// ServiceAccount of the members.
type DatabaseWorkloadIdentity struct {
	// RoleARN of an IAM role of AWS. Its trust policy has to name the ServiceAccount DATABASE-members of this namespace, and the
	// audience sts.amazonaws.com.
	//
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^arn:aws[-a-z]*:iam::[0-9]{12}:role/[-A-Za-z0-9_+=,.@/]+$')",message="must be the ARN of an IAM role, for instance arn:aws:iam::123456789012:role/shop/backups"
	// +kubebuilder:example="arn:aws:iam::123456789012:role/shop/backups"
	RoleARN string `json:"roleArn"`
}
