// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// annotationSecrets names, on pods, the content of the Secrets whose change makes a revision.
const annotationSecrets = "capstan.dev/secrets" //nolint:gosec // The name of an annotation.

// mountedSecrets of the spec by their names, so that their order in the spec does not count.
func (in Inputs) mountedSecrets() []v1alpha1.MountedSecret {
	return slices.SortedFunc(slices.Values(in.Spec.Secrets), func(a, b v1alpha1.MountedSecret) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// secretVolume is the name of the volume of a Secret. The name of a Secret may have dots, and be longer than a volume's name.
func secretVolume(name string) string {
	if v := "secret-" + name; len(validation.IsDNS1123Label(v)) == 0 {
		return v
	}
	return "secret-" + compose.Hash([]byte(name))
}

func secretVolumes(in Inputs) []*applycorev1.VolumeApplyConfiguration {
	vs := make([]*applycorev1.VolumeApplyConfiguration, 0, len(in.Spec.Secrets))
	for _, secret := range in.mountedSecrets() {
		vs = append(vs, applycorev1.Volume().
			WithName(secretVolume(secret.Name)).
			WithSecret(applycorev1.SecretVolumeSource().WithSecretName(secret.Name)))
	}
	return vs
}

func secretMounts(in Inputs) []*applycorev1.VolumeMountApplyConfiguration {
	ms := make([]*applycorev1.VolumeMountApplyConfiguration, 0, len(in.Spec.Secrets))
	for _, secret := range in.mountedSecrets() {
		ms = append(ms, applycorev1.VolumeMount().
			WithName(secretVolume(secret.Name)).
			WithMountPath(secret.MountPath).
			WithReadOnly(true))
	}
	return ms
}
