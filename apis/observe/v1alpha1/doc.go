// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the quiet observers: managed resources that watch what changes every few seconds, and report
// only when a fact has changed.
//
// +kubebuilder:object:generate=true
// +groupName=observe.capstan.dev
// +versionName=v1alpha1
package v1alpha1
