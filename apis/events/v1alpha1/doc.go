// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds events from outside the cluster: what is received, and what it does to Algorithms and Databases.
//
// +kubebuilder:object:generate=true
// +groupName=events.capstan.dev
// +versionName=v1alpha1
package v1alpha1
