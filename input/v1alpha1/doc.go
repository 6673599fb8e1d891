// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the platform's settings: the input of function-capstan in a Composition, and the data of the
// EnvironmentConfig named capstan, which overrides the input field by field.
//
// +kubebuilder:object:generate=true
// +groupName=capstan.dev
// +versionName=v1alpha1
package v1alpha1
