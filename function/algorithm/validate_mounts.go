// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"path"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
)

func checkSecrets(s *state) []check.Problem {
	var ps []check.Problem

	seen := map[string]bool{}

	for i, secret := range s.spec.Secrets {
		field := fmt.Sprintf("spec.secrets[%d]", i)

		ps = append(ps, check.ObjectName(field+".name", secret.Name)...)
		ps = append(ps, check.Among(field+".rotate", secret.Rotate, v1alpha1.RotateRestartless, v1alpha1.RotateRolling)...)

		if seen[secret.Name] {
			ps = append(ps, check.Invalid(field+".name", secret.Name, "is there twice: remove one"))
		}

		seen[secret.Name] = true
	}

	return ps
}

// A mount is a folder of the container that a field of the spec takes.
type mount struct {
	field, path string
}

// mountsOf the spec, in the order in which they are told.
func mountsOf(s *state) []mount {
	var ms []mount

	if s.spec.Resources.SharedMemory != nil {
		ms = append(ms, mount{"spec.resources.sharedMemory", sharedMemoryPath})
	}

	if s.hasFiles() {
		ms = append(ms, mount{"spec.config.mountPath", s.spec.Config.MountPath})
	}

	for i, secret := range s.spec.Secrets {
		ms = append(ms, mount{fmt.Sprintf("spec.secrets[%d].mountPath", i), secret.MountPath})
	}

	if s.spec.Model != nil {
		ms = append(ms, mount{"spec.model.mountPath", s.spec.Model.MountPath})
	}

	return ms
}

// checkMounts for folders of which one would hide another, or could not be made
// inside another that is mounted read-only.
func checkMounts(s *state) []check.Problem {
	var ps []check.Problem

	ms := mountsOf(s)
	for i, m := range ms {
		if !path.IsAbs(m.path) || path.Clean(m.path) == "/" || strings.Contains(m.path, ":") {
			ps = append(ps, check.Invalid(m.field, m.path, "must be an absolute path other than / and without ':'"))
			continue
		}

		for _, other := range ms[:i] {
			if how := overlap(path.Clean(m.path), path.Clean(other.path)); how != "" {
				ps = append(ps, check.Invalid(m.field, m.path, fmt.Sprintf("%s %s, which is taken by %s: choose another folder", how, other.path, other.field)))
				break
			}
		}
	}

	return ps
}

// overlap of two folders in words, or nothing.
func overlap(a, b string) string {
	switch {
	case a == b:
		return "is the same as"
	case strings.HasPrefix(a, b+"/"):
		return "is inside"
	case strings.HasPrefix(b, a+"/"):
		return "contains"
	default:
		return ""
	}
}
