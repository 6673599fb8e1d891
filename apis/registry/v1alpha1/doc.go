// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the entries of a model registry.
//
// +kubebuilder:object:generate=true
// +groupName=registry.capstan.dev
// +versionName=v1alpha1
package v1alpha1
