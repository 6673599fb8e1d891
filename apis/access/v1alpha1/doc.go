// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds databases, logins and grants inside a database server.
//
// +kubebuilder:object:generate=true
// +groupName=access.capstan.dev
// +versionName=v1alpha1
package v1alpha1
