// SPDX-License-Identifier: Apache-2.0

package podhealth

import (
	"fmt"
	"regexp"
	"strings"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// A PullFault is what keeps an image from being pulled, as far as it takes another remedy.
type PullFault int

// Faults of pulling.
const (
	// PullReference: the name of the image is none.
	PullReference PullFault = iota
	// PullMissing: the registry does not have it, or it is unknown.
	PullMissing
	// PullAccess: the registry does not give it.
	PullAccess
	// PullNetwork: the registry cannot be spoken to.
	PullNetwork
	// PullPlatform: it is for other nodes.
	PullPlatform
	// PullRoom: the node has no room for it.
	PullRoom
	// PullRate: the registry limits the rate of pulls.
	PullRate

	pullFaults
)

// PullRemedies say what helps against each fault.
type PullRemedies [pullFaults]string

// SpecImage has the remedies for an image that spec.image names.
var SpecImage = PullRemedies{
	PullReference: "correct spec.image",
	PullMissing:   "correct spec.image, or push the image",
	PullAccess:    "name a Secret that opens the registry in spec.pod.imagePullSecrets, or correct spec.image",
	PullNetwork:   "see that the nodes reach the registry, or name another one in spec.image",
	PullPlatform:  "build the image for the platform of the nodes, or choose other nodes by spec.pod.nodeSelector",
	PullRoom:      "make room on the nodes, or make the image smaller",
	PullRate:      "name a Secret with a greater allowance in spec.pod.imagePullSecrets, or another registry in spec.image",
}

// refusals of registries and of the way to them. The first that matches wins:
// trouble on the way comes first, because its words may quote a registry.
var refusals = []struct {
	said  *regexp.Regexp
	what  string
	fault PullFault
}{
	{regexp.MustCompile(`dial tcp: lookup|no such host|server misbehaving`), "the name of the registry cannot be resolved", PullNetwork},
	{regexp.MustCompile(`connection refused`), "the registry refuses connections", PullNetwork},
	{
		regexp.MustCompile(`i/o timeout|deadline exceeded|no route to host|network is unreachable|handshake timeout`),
		"the registry does not answer", PullNetwork,
	},
	{regexp.MustCompile(`HTTP response to HTTPS client`), "the registry speaks plain HTTP", PullNetwork},
	{regexp.MustCompile(`x509:|tls: `), "the certificate of the registry is not trusted", PullNetwork},
	{regexp.MustCompile(`(?i)too ?many ?requests|\b429\b`), "the registry limits the rate of pulls", PullRate},
	{regexp.MustCompile(`no space left`), "the node has no room for it", PullRoom},
	{regexp.MustCompile(`no match for platform|no matching manifest`), "it is not built for the platform of the node", PullPlatform},
	{
		regexp.MustCompile(`(?i)unauthorized|authorization failed|authentication required|denied|forbidden|basic auth`),
		"the registry gives no access, or has no such repository", PullAccess,
	},
	{regexp.MustCompile(`(?i)not found|(manifest|name) unknown`), "the registry has no such image or tag", PullMissing},
	{regexp.MustCompile(`\b50[0-4] [A-Z]`), "the registry fails", PullNetwork},
}

// cause of a fault. A registry that does not answer, or that answers later, says nothing about the image.
func (f PullFault) cause() observev1alpha1.FindingCause {
	switch f {
	case PullNetwork, PullRoom, PullRate:
		return observev1alpha1.FindingOutside
	default:
		return observev1alpha1.FindingOfRevision
	}
}

// Pull finds that an image cannot be had which the container waits for: its own, or the image of a volume.
func (s Subject) Pull(image string, remedies PullRemedies) *Hindrance {
	w := s.Status.State.Waiting
	if w == nil {
		return nil
	}
	h := &Hindrance{
		Reason: v1alpha1.ReasonImagePullFailed,
		What:   fmt.Sprintf("image %q cannot be pulled", words.Bounded(image, words.MaxDetail)),
		Remedy: remedies[PullMissing],
	}
	switch w.Reason {
	case "InvalidImageName":
		h.What = fmt.Sprintf("image %q is not a valid reference", words.Bounded(image, words.MaxDetail))
		h.Remedy, h.Cause = remedies[PullReference], PullReference.cause()
		return h
	case "ErrImageNeverPull":
		h.Detail, h.Cause = "it is not on the node, and the pull policy forbids to pull it", PullMissing.cause()
		return h
	case "ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
	default:
		return nil
	}

	// The reference may itself hold words that we look for.
	said := words.Bounded(w.Message, words.MaxHeard)
	if image != "" {
		said = strings.ReplaceAll(said, image, "")
	}
	for _, r := range refusals {
		if r.said.MatchString(said) {
			h.What += ": " + r.what
			h.Remedy, h.Cause = remedies[r.fault], r.fault.cause()
			return h
		}
	}
	h.Detail = words.Steady(registrysWords(w.Message), s.Pod.GetName())
	return h
}

// registrysWords are the end of the chain of errors, where the registry speaks. While the kubelet backs off it adds that it does.
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
