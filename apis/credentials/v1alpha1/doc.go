// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds generated credentials.
//
// +kubebuilder:object:generate=true
// +groupName=credentials.capstan.dev
// +versionName=v1alpha1
package v1alpha1
