// SPDX-License-Identifier: Apache-2.0

package release

import "testing"

func TestComplete(t *testing.T) {
	const digests = "ghcr.io/capstan-dev/companion@sha256:0a ghcr.io/capstan-dev/postgres@sha256:0b"
	cases := map[string]struct {
		reason, digests, image, want string
	}{
		"Released": {
			reason: "an image that was released with the function is the one that was released", digests: digests,
			image: "ghcr.io/capstan-dev/postgres", want: "ghcr.io/capstan-dev/postgres:v0.3.0@sha256:0b",
		},
		"NoRelease": {
			reason: "without a release there are no digests",
			image:  "ghcr.io/capstan-dev/postgres", want: "ghcr.io/capstan-dev/postgres:v0.3.0",
		},
		"Platform": {
			reason: "a platform may build the same version itself, with another digest", digests: digests,
			image: "registry.example.org:5000/capstan-dev/postgres", want: "registry.example.org:5000/capstan-dev/postgres:v0.3.0",
		},
		"LongerName": {
			reason: "the name of a repository is compared as a whole", digests: digests,
			image: "ghcr.io/capstan-dev/post", want: "ghcr.io/capstan-dev/post:v0.3.0",
		},
		"Tag": {
			reason: "what the platform chose stays", digests: digests,
			image: "ghcr.io/capstan-dev/postgres:v0.2.0", want: "ghcr.io/capstan-dev/postgres:v0.2.0",
		},
		"Digest": {
			reason: "what the platform chose stays", digests: digests,
			image: "ghcr.io/capstan-dev/postgres@sha256:0c", want: "ghcr.io/capstan-dev/postgres@sha256:0c",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (Release{Version: "v0.3.0", Digests: tc.digests}).Complete(tc.image); got != tc.want {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
