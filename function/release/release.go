// SPDX-License-Identifier: Apache-2.0

// Package release knows which images were released with the function.
package release

import "strings"

// A Release of the function.
type Release struct {
	// Version of the function, which images without a tag have, too.
	Version string

	// Digests of the images that were released with it, as references: ghcr.io/capstan-dev/companion@sha256:0a1b…, separated by
	// spaces. Empty for what is built without a release.
	Digests string
}

// Complete an image of the settings: one with neither a tag nor a digest is of this release, as in ghcr.io/capstan-dev/companion. One that was
// released with the function is named by its digest, too, so that a write to the registry cannot replace it. Repositories of a platform may
// have other builds of the same version.
func (r Release) Complete(image string) string {
	if strings.ContainsAny(image[strings.LastIndex(image, "/")+1:], ":@") {
		return image
	}
	tagged := image + ":" + r.Version
	for released := range strings.FieldsSeq(r.Digests) {
		if digest, ok := strings.CutPrefix(released, image+"@"); ok {
			return tagged + "@" + digest
		}
	}
	return tagged
}
