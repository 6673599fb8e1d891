// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/podhealth"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// userByName is how the kubelet quotes a user that it cannot tell from root.
var userByName = regexp.MustCompile(`non-numeric user \(([^)]*)\)`)

// config finds a container that cannot be made from its configuration.
func config(s subject) *podhealth.Hindrance {
	h := s.Config("correct the container's fields of the spec")
	if h == nil {
		return nil
	}

	if strings.Contains(h.Detail, "runAsNonRoot") || strings.Contains(h.Detail, "non-root policy") {
		return root(s, h.Detail)
	}

	switch lower := strings.ToLower(h.Detail); {
	case strings.Contains(lower, "no command specified"):
		h.Remedy = "the image has no entrypoint: set spec.command"
	case strings.Contains(lower, "secret"):
		h.Remedy = "make the Secret or key, or correct spec.env"
	case strings.Contains(lower, "configmap"):
		h.Remedy = "make the ConfigMap or key, or correct spec.env"
	}

	return h
}

// root is a container whose image would run as root, or might.
func root(s subject, said string) *podhealth.Hindrance {
	image := words.Bounded(s.Spec.Image, words.MaxDetail)

	h := &podhealth.Hindrance{
		Reason: v1alpha1.ReasonRunsAsRoot,
		What:   fmt.Sprintf("image %q runs as root, which pods must not", image),
		Remedy: "set spec.runAsUser to a number above 0, or give the image a numeric USER",
	}

	if m := userByName.FindStringSubmatch(said); m != nil {
		h.What = fmt.Sprintf("image %q runs as user %q, which may be root as far as its name tells",
			image, words.Bounded(m[1], words.MaxDetail))
	}

	return h
}
