// SPDX-License-Identifier: Apache-2.0

// Package store keeps models on a volume that many pods on many nodes may share, on any file system that has exclusive
// creation and atomic renames:
//
//	KEY/                     a finished model; it never changes
//	.capstan/KEY.model       what it consists of
//	.capstan/KEY.used        written whenever a pod starts with it
//	.capstan/KEY.lock        who downloads it now
//	.capstan/KEY.*.partial/  a download under way, or what is left of one
//
// A model appears by a rename, after all of it was written, verified and flushed. So correctness needs no lock; the lock only
// keeps pods from downloading the same thing at once.
package store
