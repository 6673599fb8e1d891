// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds what stores data outside the cluster's own objects.
//
// +kubebuilder:object:generate=true
// +groupName=storage.capstan.dev
// +versionName=v1alpha1
package v1alpha1
