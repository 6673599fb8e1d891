// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// secretsPath is the folder that Secrets are mounted below by default.
const secretsPath = "/etc/secrets/" //nolint:gosec // A path.

// annotationSecrets names, on pods, the content of the Secrets whose change makes
// a revision.
const annotationSecrets = "capstan.dev/secrets" //nolint:gosec // The name of an annotation.

// mountedSecrets of the spec by their names, so that their order in the spec does
// not count.
func (s *state) mountedSecrets() []v1alpha1.MountedSecret {
	return slices.SortedFunc(slices.Values(s.spec.Secrets), func(a, b v1alpha1.MountedSecret) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// secretVolume is the name of the volume of a Secret. The name of a Secret may be
// longer than that of a volume, and have dots.
func secretVolume(name string) string {
	if v := "secret-" + name; len(validation.IsDNS1123Label(v)) == 0 {
		return v
	}

	return "secret-" + compose.Hash([]byte(name))
}

func secretVolumes(s *state) []*applycorev1.VolumeApplyConfiguration {
	vs := make([]*applycorev1.VolumeApplyConfiguration, 0, len(s.spec.Secrets))
	for _, secret := range s.mountedSecrets() {
		vs = append(vs, applycorev1.Volume().
			WithName(secretVolume(secret.Name)).
			WithSecret(applycorev1.SecretVolumeSource().WithSecretName(secret.Name)))
	}

	return vs
}

func secretMounts(s *state) []*applycorev1.VolumeMountApplyConfiguration {
	ms := make([]*applycorev1.VolumeMountApplyConfiguration, 0, len(s.spec.Secrets))
	for _, secret := range s.mountedSecrets() {
		ms = append(ms, applycorev1.VolumeMount().
			WithName(secretVolume(secret.Name)).
			WithMountPath(secret.MountPath).
			WithReadOnly(true))
	}

	return ms
}

// secretAnnotations of the pods. Their value is a hash of fingerprints, which say
// nothing about what is in a Secret.
func secretAnnotations(s *state) map[string]string {
	if len(s.fingerprints) == 0 {
		return nil
	}

	raw, _ := json.Marshal(s.fingerprints) //nolint:errchkjson // A map of strings always marshals.

	return map[string]string{annotationSecrets: compose.Hash(raw)}
}
