// SPDX-License-Identifier: Apache-2.0

package podhealth

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

const (
	remedyImage   = "see that the image is there, and that the platform's settings name it"
	remedyAccess  = "see that the nodes have access to the registry"
	remedyNetwork = "see that the nodes reach the registry"
)

// refusals of registries and of the way to them. The first that matches wins:
// trouble on the way comes first, because its words may quote a registry.
var refusals = []struct {
	said         *regexp.Regexp
	what, remedy string
}{
	{regexp.MustCompile(`dial tcp: lookup|no such host|server misbehaving`), "the name of the registry cannot be resolved", remedyNetwork},
	{regexp.MustCompile(`connection refused`), "the registry refuses connections", remedyNetwork},
	{
		regexp.MustCompile(`i/o timeout|deadline exceeded|no route to host|network is unreachable|handshake timeout`),
		"the registry does not answer", remedyNetwork,
	},
	{regexp.MustCompile(`HTTP response to HTTPS client`), "the registry speaks plain HTTP", remedyNetwork},
	{regexp.MustCompile(`x509:|tls: `), "the certificate of the registry is not trusted", remedyNetwork},
	{regexp.MustCompile(`(?i)too ?many ?requests|\b429\b`), "the registry limits the rate of pulls", remedyAccess},
	{regexp.MustCompile(`no space left`), "the node has no room for it", "make room on the nodes"},
	{
		regexp.MustCompile(`no match for platform|no matching manifest`),
		"it is not built for the platform of the node", "choose an image that is, or other nodes",
	},
	{
		regexp.MustCompile(`(?i)unauthorized|authorization failed|authentication required|denied|forbidden|basic auth`),
		"the registry gives no access, or has no such repository", remedyAccess,
	},
	{regexp.MustCompile(`(?i)not found|(manifest|name) unknown`), "the registry has no such image or tag", remedyImage},
	{regexp.MustCompile(`\b50[0-4] [A-Z]`), "the registry fails", remedyNetwork},
}

// imagePull finds a container whose image cannot be had.
func imagePull(s subject) *Hindrance {
	w := s.status.State.Waiting
	if w == nil {
		return nil
	}

	h := &Hindrance{
		Reason: v1alpha1.ReasonImagePullFailed,
		What:   fmt.Sprintf("image %q cannot be pulled", Bounded(s.spec.Image, maxDetail)),
		Remedy: remedyImage,
	}

	switch w.Reason {
	case "InvalidImageName":
		h.What = fmt.Sprintf("image %q is not a valid reference", Bounded(s.spec.Image, maxDetail))

		return h
	case "ErrImageNeverPull":
		h.Detail = "it is not on the node, and the pull policy forbids to pull it"

		return h
	case "ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
	default:
		return nil
	}

	// The reference may itself hold words that we look for.
	said := Bounded(w.Message, maxHeard)
	if s.spec.Image != "" {
		said = strings.ReplaceAll(said, s.spec.Image, "")
	}

	for _, r := range refusals {
		if r.said.MatchString(said) {
			h.What += ": " + r.what
			h.Remedy = r.remedy

			return h
		}
	}

	h.Detail = Steady(registrysWords(w.Message), s.pod.GetName())

	return h
}

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
