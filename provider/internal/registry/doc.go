// SPDX-License-Identifier: Apache-2.0

// Package registry holds the rules that the kinds of a model registry share: to whom an entry belongs and who may change it, what
// differs in its tags, and which files a version may come from. All of it is pure.
//
// An entry belongs to the managed resource that its owner tag names. What has another owner is never changed. What has no owner
// is taken only when the managed resource asks for it and the config allows it. On shared ground, where many namespaces use the
// same credentials, a namespace also sees and extends only its own models.
package registry
