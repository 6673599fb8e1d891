// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

const (
	remedyImage    = "correct spec.image, or push the image"
	remedyAccess   = "name a Secret that opens the registry in spec.imagePullSecrets, or correct spec.image"
	remedyNetwork  = "see that the nodes reach the registry, or name another one in spec.image"
	remedyPlatform = "build the image for the platform of the nodes, or choose other nodes by spec.scheduling.nodeSelector"
)

// refusals of registries and of the way to them. The first that matches wins:
// trouble on the way comes first, because its words may quote a registry.
var refusals = []struct { //nolint:gochecknoglobals // A constant table.
	said         *regexp.Regexp
	what, remedy string
}{
	{
		regexp.MustCompile(`dial tcp: lookup|no such host|server misbehaving`),
		"the name of the registry cannot be resolved", remedyNetwork,
	},
	{regexp.MustCompile(`connection refused`), "the registry refuses connections", remedyNetwork},
	{
		regexp.MustCompile(`i/o timeout|deadline exceeded|no route to host|network is unreachable|handshake timeout`),
		"the registry does not answer", remedyNetwork,
	},
	{regexp.MustCompile(`HTTP response to HTTPS client`), "the registry speaks plain HTTP", remedyNetwork},
	{regexp.MustCompile(`x509:|tls: `), "the certificate of the registry is not trusted", remedyNetwork},
	{regexp.MustCompile(`(?i)too ?many ?requests|\b429\b`), "the registry limits the rate of pulls", remedyAccess},
	{regexp.MustCompile(`no space left`), "the node has no room for it", "make room on the nodes, or make the image smaller"},
	{
		regexp.MustCompile(`no match for platform|no matching manifest`),
		"it is not built for the platform of the node", remedyPlatform,
	},
	{
		regexp.MustCompile(`(?i)unauthorized|authorization failed|authentication required|denied|forbidden|basic auth`),
		"the registry gives no access, or has no such repository", remedyAccess,
	},
	{regexp.MustCompile(`(?i)not found|(manifest|name) unknown`), "the registry has no such image or tag", remedyImage},
	{regexp.MustCompile(`\b50[0-4] [A-Z]`), "the registry fails", remedyNetwork},
}

// imagePull finds a container whose image cannot be had.
func imagePull(s subject) *cause {
	w := s.status.State.Waiting
	if w == nil {
		return nil
	}

	image, about := s.spec.Image, remedyOf
	if v := s.volumeImage(w.Message); v != "" {
		image, about = v, ofModel
	}

	if s.companion() {
		about = ofCompanion
	}

	c := &cause{
		reason: v1alpha1.ReasonImagePullFailed,
		what:   fmt.Sprintf("image %q cannot be pulled", bounded(image, maxDetail)),
		remedy: about(remedyImage),
	}

	switch w.Reason {
	case "InvalidImageName":
		c.what = fmt.Sprintf("image %q is not a valid reference", bounded(image, maxDetail))
		c.remedy = about("correct spec.image")

		return c
	case "ErrImageNeverPull":
		c.detail = "it is not on the node, and the pull policy forbids to pull it"

		return c
	case "ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
	default:
		return nil
	}

	// The reference may itself hold words that we look for.
	said := bounded(w.Message, maxHeard)
	if image != "" {
		said = strings.ReplaceAll(said, image, "")
	}

	for _, r := range refusals {
		if r.said.MatchString(said) {
			c.what += ": " + r.what
			c.remedy = about(r.remedy)

			return c
		}
	}

	c.detail = steady(registrysWords(w.Message), s.pod)

	return c
}

// remedyOf an image that spec.image names.
func remedyOf(remedy string) string { return remedy }

// ofModel is the same of the image of a volume.
func ofModel(remedy string) string {
	return strings.ReplaceAll(remedy, "spec.image,", "spec.model.oci.reference,") + " (the image is that of spec.model.oci.reference)"
}

// ofCompanion is what helps when the image is the platform's own.
func ofCompanion(string) string { return remedyCompanion }

// registrysWords are the end of the chain of errors, where the registry speaks.
// While the kubelet backs off it adds that it does.
func registrysWords(message string) string {
	if strings.HasPrefix(message, "Back-off pulling image") {
		_, after, ok := strings.Cut(message, "\": ")
		if !ok {
			return ""
		}

		message = after
	}

	message = strings.TrimPrefix(message, "ErrImagePull: ")

	if strings.HasPrefix(message, "rpc error: code = ") {
		if _, after, ok := strings.Cut(message, " desc = "); ok {
			message = after
		}
	}

	return message
}
