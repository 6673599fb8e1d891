// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the composite resources that application teams write. The Go types are the single source of
// the XRDs in apis/ and of the API reference in docs/: run `make generate` after an edit.
//
// +kubebuilder:object:generate=true
// +groupName=capstan.dev
// +versionName=v1alpha1
package v1alpha1
