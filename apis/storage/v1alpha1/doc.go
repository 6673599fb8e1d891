// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds for storage: buckets and volumes.
//
// +kubebuilder:object:generate=true
// +groupName=storage.capstan.dev
// +versionName=v1alpha1
package v1alpha1
