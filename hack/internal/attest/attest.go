// SPDX-License-Identifier: Apache-2.0

// Package attest describes an image for its users: what is in it (an SBOM in CycloneDX), and from what it was built
// (provenance of SLSA in an in-toto statement). The same image always gives the same bytes.
package attest

import (
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A Subject is the image that is described.
type Subject struct {
	// Name of the image, as in companion.
	Name string
	// Repository with its registry, as in ghcr.io/capstan-dev/companion.
	Repository string
	Version    string
	// Digest of the index of all platforms, or of the image that fits all.
	Digest v1.Hash
	// Time of the commit.
	Time time.Time
}
