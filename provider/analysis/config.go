// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// userByName is how the kubelet quotes a user that it cannot tell from root.
var userByName = regexp.MustCompile(`non-numeric user \(([^)]*)\)`)

// config finds a container that cannot be made from its configuration.
func config(s subject) *cause {
	w := s.status.State.Waiting
	if w == nil || (w.Reason != "CreateContainerConfigError" && w.Reason != "CreateContainerError") {
		return nil
	}

	said := steady(w.Message, s.pod)

	// The kubelet says so for seconds after its own start.
	if strings.Contains(said, "services have not yet been read") {
		return nil
	}

	if strings.Contains(said, "runAsNonRoot") || strings.Contains(said, "non-root policy") {
		return root(s, said)
	}

	c := &cause{
		reason: v1alpha1.ReasonConfigError,
		what:   "the container cannot be made",
		detail: said,
		remedy: "correct the container's fields of the spec",
	}

	switch lower := strings.ToLower(said); {
	case strings.Contains(lower, "no command specified"):
		c.remedy = "the image has no entrypoint: set spec.command"
	case strings.Contains(lower, "secret"):
		c.remedy = "make the Secret or key, or correct spec.env"
	case strings.Contains(lower, "configmap"):
		c.remedy = "make the ConfigMap or key, or correct spec.env"
	}

	return c
}

// root is a container whose image would run as root, or might.
func root(s subject, said string) *cause {
	c := &cause{
		reason: v1alpha1.ReasonRunsAsRoot,
		what:   fmt.Sprintf("image %q runs as root, which pods must not", bounded(s.spec.Image, maxDetail)),
		remedy: "set spec.runAsUser to a number above 0, or give the image a numeric USER",
	}

	if m := userByName.FindStringSubmatch(said); m != nil {
		c.what = fmt.Sprintf("image %q runs as user %q, which may be root as far as its name tells",
			bounded(s.spec.Image, maxDetail), bounded(m[1], maxDetail))
	}

	return c
}
